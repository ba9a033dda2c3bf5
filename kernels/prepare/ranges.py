"""Sorting of ids by range: an id's range says between which cuts it lies."""

import numpy as np
from numba import types

from ..base.compiled import compiled, i64, i64s, kernel, u8s, u16s, u32s, u64s
from ..base.intrinsics import copy_bytes, leading_zeros, load_word

_texts = types.Array(types.uint8, 1, "C", readonly=True)
_CELLS = 1 << 12

_ends = types.Array(types.int64, 1, "C", readonly=True)


@kernel(u64s, u64s, u16s)
def find_ranges(keys, cuts, ranges):
    """Write each key's range into ``ranges``: the number of cuts that are not above the key.

    cuts: uint64, rising. ranges: uint16, as long as the keys (uint64).
    """
    count = cuts.shape[0]
    if count == 0:
        ranges[:] = 0
        return
    least, greatest = cuts[0], cuts[count - 1]
    shift, below = _cells(cuts)
    for i in range(keys.shape[0]):
        key = keys[i]
        if key < least:
            ranges[i] = 0
        elif key >= greatest:
            ranges[i] = count
        else:
            cell = np.int64((key - least) >> shift)
            low, high = np.int64(below[cell]), np.int64(below[cell + 1])
            while low < high:
                middle = (low + high) // 2
                if key < cuts[middle]:
                    high = middle
                else:
                    low = middle + 1
            ranges[i] = low


@compiled
def _cells(cuts):
    """Cut the keys from the first to the last cut into equal cells, by their high bits.

    Returns the number of low bits, and, for each cell, the number of cuts in earlier cells. Where
    keys are spread evenly, a cell has few cuts or none.
    """
    width = cuts[cuts.shape[0] - 1] - cuts[0]
    shift = np.uint64(0)
    while width >> shift >= np.uint64(_CELLS):
        shift += np.uint64(1)
    below = np.zeros(_CELLS + 1, np.uint16)
    for cut in cuts:
        below[np.int64((cut - cuts[0]) >> shift) + 1] += 1
    for cell in range(_CELLS):
        below[cell + 1] += below[cell]
    return shift, below


@kernel(_texts, _ends, _texts, _ends, u16s)
def find_text_ranges(texts, ends, cuts, cut_ends, ranges):
    """Write each string's range into ``ranges`` (uint16): how many cuts are not above the string.

    texts: the bytes of all strings; string i has those from ends[i] to ends[i + 1]. cuts, cut_ends:
    at least one cut likewise, rising. Strings are ordered by their bytes.

    The eight bytes after what all cuts have in common are a string's key. Where a cut has the same
    key, the strings are compared.
    """
    last = cut_ends.shape[0] - 2
    begin = cut_ends[0]
    common = _common(cuts, begin, cut_ends[1], cuts, cut_ends[last], cut_ends[last + 1], 0)
    keys = np.empty(last + 1, np.uint64)
    for i in range(last + 1):
        keys[i] = _key(cuts, cut_ends[i] + common, cut_ends[i + 1])
    shift, below = _cells(keys)
    for i in range(ranges.shape[0]):
        first, end = ends[i], ends[i + 1]
        shared = _common(texts, first, end, cuts, begin, begin + common, 0)
        low, high = 0, last + 1
        if shared < common:  # above all cuts, or below all
            above = shared < end - first and texts[first + shared] > cuts[begin + shared]
            ranges[i] = high if above else low
            continue
        key = _key(texts, first + common, end)
        if key < keys[0]:
            ranges[i] = low
            continue
        if key > keys[last]:
            ranges[i] = high
            continue
        cell = np.int64((key - keys[0]) >> shift)
        low, high = np.int64(below[cell]), np.int64(below[cell + 1])
        while low < high:
            middle = (low + high) // 2
            if key == keys[middle]:
                low, high = _search(texts, first, end, cuts, cut_ends, common, low, high)
            elif key < keys[middle]:
                high = middle
            else:
                low = middle + 1
        ranges[i] = low


@compiled
def _key(texts, first, end):
    """Return the key of a string: its eight bytes from ``first`` on, with zeros after its end. Keys
    are in the order of the strings.
    """
    if first + 8 <= end:
        return load_word(texts, first)
    key = np.uint64(0)
    for i in range(8):
        byte = np.uint64(texts[first + i]) if first + i < end else np.uint64(0)
        key = (key << np.uint64(8)) | byte
    return key


@compiled
def _search(texts, first, end, cuts, cut_ends, common, low, high):
    """Count the cuts that a string is not below, at least ``low`` and at most ``high``. Returns
    this number twice.

    This is a search by halves that compares each byte of a string about once: the bytes that a
    string has in common with the cuts above and below it, it has in common with all cuts between
    them (U. Manber and G. Myers, "Suffix arrays", 1993).
    """
    with_lower = with_upper = common
    while low < high:
        middle = (low + high) // 2
        start, stop = cut_ends[middle], cut_ends[middle + 1]
        shared = _common(texts, first, end, cuts, start, stop, min(with_lower, with_upper))
        if shared == stop - start:
            below = False
        else:
            below = shared == end - first or texts[first + shared] < cuts[start + shared]
        if below:
            high, with_upper = middle, shared
        else:
            low, with_lower = middle + 1, shared
    return low, low


@compiled
def _common(texts, first, end, other_texts, start, stop, known):
    """Count the bytes that two strings have in common at their beginning. known: a number of bytes
    that they are known to have in common.
    """
    at = known
    most = min(end - first, stop - start)
    while at + 8 <= most:
        differ = load_word(texts, first + at) ^ load_word(other_texts, start + at)
        if differ:
            return at + np.int64(leading_zeros(differ) >> np.uint64(3))
        at += 8
    while at < most and texts[first + at] == other_texts[start + at]:
        at += 1
    return at


@kernel(u16s, i64s, u32s)
def sort_by_range(ranges, starts, order):
    """Write the places of ids, range after range, into ``order`` (uint32).

    starts: int64 (ranges + 1,), receives where each range begins in ``order``, and the end.
    """
    starts[:] = 0
    for number in ranges:
        starts[number + 1] += 1
    _add_up(starts)
    at = starts.copy()
    for i in range(ranges.shape[0]):
        order[at[ranges[i]]] = i
        at[ranges[i]] += 1


@kernel(_ends, u16s, i64s)
def count_bytes(ends, ranges, sizes):
    """Count the bytes of strings in each range. sizes: int64 (ranges,)."""
    sizes[:] = 0
    for i in range(ranges.shape[0]):
        sizes[ranges[i]] += ends[i + 1] - ends[i]


@kernel(_texts, _ends, u32s, u8s, i64s, i64)
def gather_texts(texts, ends, places, gathered, gathered_ends, first):
    """Copy the strings at ``places`` (uint32) to the places from ``first`` on in ``gathered`` and
    ``gathered_ends``, which are laid out as ``texts`` and ``ends`` are.

    gathered_ends[first] says where to begin.
    """
    into = gathered_ends[first]
    for i in range(places.shape[0]):
        begin = ends[places[i]]
        size = ends[np.int64(places[i]) + 1] - begin
        copy_bytes(texts, begin, gathered, into, size)
        into += size
        gathered_ends[first + i + 1] = into


@compiled
def _add_up(counts):
    for i in range(1, counts.shape[0]):
        counts[i] += counts[i - 1]
