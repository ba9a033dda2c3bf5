"""Synthetic edge lists whose rows are a function of their number and the seed alone.

Row ``i`` is made from Philox4x32-10 words with counter ``(i, block)`` and the seed as key
(Salmon et al., SC 2011), so any range of rows can be made by anyone, in any order. All
choices are comparisons of 32-bit words with integer thresholds: no floating point, hence
the same rows on every machine and device.

Kronecker graphs follow the Graph500 specification: at each of ``scale`` levels one of four
quadrants is chosen with probabilities A, B, C, D = 0.57, 0.19, 0.19, 0.05, and vertex
numbers are permuted afterwards. Duplicates and self-loops stay in.

Blocks (a planted partition, or stochastic block model) are ranges of places. An edge begins at any
place. It ends in another block if its word says so, otherwise elsewhere in the same block. Places
are permuted, too, so that ids tell nothing of blocks.
"""

import numpy as np

from ..base.compiled import Several, compiled, i32s, i64, kernel, u64, u64s

_IDS = Several("ids")

# Words below them choose quadrant A, A or B, all but D.
A = round(0.57 * 2**32)
AB = round((0.57 + 0.19) * 2**32)
ABC = round((0.57 + 0.19 + 0.19) * 2**32)

# Words with these block numbers make the key of the permutation, and weights, not edges.
_PERMUTATION_BLOCK = 0xFFFFFFFF
_PERMUTATION_ROUNDS = 4
_WEIGHTS_BLOCK = 0xFFFFFFFE

HEAVIEST = 255  # as the GAP benchmark suite's (Beamer et al., arXiv:1508.03619)


@compiled
def philox(counter, block, seed):
    """Return four 32-bit words (as uint64) for a 64-bit counter, a 32-bit block and a seed."""
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    c0 = np.uint64(counter) & mask
    c1 = np.uint64(counter) >> half
    c2 = np.uint64(block)
    c3 = np.uint64(0)
    k0 = np.uint64(seed) & mask
    k1 = np.uint64(seed) >> half
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c0
        p1 = np.uint64(0xCD9E8D57) * c2
        c0 = (p1 >> half) ^ c1 ^ k0
        c1 = p1 & mask
        c2 = (p0 >> half) ^ c3 ^ k1
        c3 = p0 & mask
        k0 = (k0 + np.uint64(0x9E3779B9)) & mask
        k1 = (k1 + np.uint64(0xBB67AE85)) & mask
    return c0, c1, c2, c3


@kernel(u64)
def permutation_keys(seed):
    """Return the addend and the factor of each round, in turns: uint64 (2 * rounds,)."""
    keys = np.empty(2 * _PERMUTATION_ROUNDS, np.uint64)
    for r in range(_PERMUTATION_ROUNDS):
        a, b, c, d = philox(r, _PERMUTATION_BLOCK, seed)
        keys[2 * r] = a | (b << np.uint64(32))
        keys[2 * r + 1] = c | (d << np.uint64(32)) | np.uint64(1)  # odd: invertible modulo 2^k
    return keys


@compiled
def _permute(vertex, scale, keys):
    """Map ``[0, 2**scale)`` onto itself, one to one, by rounds of add, multiply by an odd number,
    fold down.
    """
    mask = (np.uint64(1) << np.uint64(scale)) - np.uint64(1)
    fold = np.uint64((scale + 1) // 2)
    for r in range(_PERMUTATION_ROUNDS):
        vertex = ((vertex + keys[2 * r]) * keys[2 * r + 1]) & mask
        vertex ^= vertex >> fold
    return vertex


@kernel(i64, i64, u64, _IDS, _IDS)
def kronecker(first, scale, seed, src, dst):
    """Fill ``src`` and ``dst`` with rows ``first ..`` of the Kronecker graph of that scale."""
    keys = permutation_keys(seed)
    one = np.uint64(1)
    words = np.empty(4, np.uint64)
    for i in range(src.shape[0]):
        u = np.uint64(0)
        v = np.uint64(0)
        for level in range(scale):
            if level & 3 == 0:
                words[0], words[1], words[2], words[3] = philox(first + i, level >> 2, seed)
            word = words[level & 3]
            # Quadrants by falling probability: A (0,0), B (0,1), C (1,0), D (1,1).
            past_a = np.uint64(word >= np.uint64(A))
            past_b = np.uint64(word >= np.uint64(AB))
            past_c = np.uint64(word >= np.uint64(ABC))
            u = (u << one) | past_b
            v = (v << one) | (past_a ^ past_b ^ past_c)
        src[i] = _permute(u, scale, keys)
        dst[i] = _permute(v, scale, keys)


@kernel(i64, i64, u64, _IDS, _IDS)
def uniform(first, scale, seed, src, dst):
    """Fill ``src`` and ``dst`` with rows ``first ..``: both ends uniform in ``[0, 2**scale)``."""
    mask = (np.uint64(1) << np.uint64(scale)) - np.uint64(1)
    half = np.uint64(32)
    for i in range(src.shape[0]):
        a, b, c, d = philox(first + i, 0, seed)
        src[i] = (a | (b << half)) & mask
        dst[i] = (c | (d << half)) & mask


@kernel(i64, i64, i64, i64, i64, u64, _IDS, _IDS)
def grid(first, last, height, width, keep_below, seed, src, dst):
    """Write the kept candidates ``first <= k < last`` of a grid. Returns their number.

    Candidate ``k`` joins cell ``k // 2`` (row-major) to its right neighbour when ``k`` is even,
    to the one below when odd, and is kept when its Philox word is below ``keep_below`` (0 to 2^32).
    """
    count = 0
    for k in range(first, last):
        cell = k >> 1
        if k & 1:
            if cell >= (height - 1) * width:
                continue
            neighbour = cell + width
        else:
            if cell % width == width - 1:
                continue
            neighbour = cell + 1
        word, _, _, _ = philox(k, 0, seed)
        if word < np.uint64(keep_below):
            src[count] = cell
            dst[count] = neighbour
            count += 1
    return count


@compiled
def _vertex_at(place, vertices, keys):
    """Map ``[0, vertices)`` onto itself, one to one: permute until the number is small enough."""
    scale = 1
    while np.uint64(1) << np.uint64(scale) < vertices:
        scale += 1
    place = _permute(place, scale, keys)
    while place >= vertices:
        place = _permute(place, scale, keys)
    return place


@compiled
def _block_of(place, bounds):
    """Return the last block that begins at a place or before."""
    low, high = 0, bounds.shape[0] - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if bounds[middle] <= place:
            low = middle
        else:
            high = middle
    return low


@kernel(i64, u64s, u64, u64, _IDS, _IDS)
def blocks(first, bounds, leave_below, seed, src, dst):
    """Fill ``src`` and ``dst`` with rows ``first ..`` of a graph of blocks.

    bounds: where each block begins, followed by the number of vertices; at least two in each block.
    An edge leaves its block when its Philox word is below ``leave_below`` (0 to 2^32).
    """
    keys = permutation_keys(seed)
    one, half = np.uint64(1), np.uint64(32)
    vertices = bounds[-1]
    for i in range(src.shape[0]):
        a, b, word, _ = philox(first + i, 0, seed)
        c, d, _, _ = philox(first + i, 1, seed)
        place = (a | (b << half)) % vertices
        other = c | (d << half)
        block = _block_of(place, bounds)
        begin = bounds[block]
        size = bounds[block + 1] - begin
        if word < leave_below:
            other %= vertices - size
            if other >= begin:
                other += size
        else:
            other = begin + other % (size - one)
            if other >= place:
                other += one
        src[i] = _vertex_at(place, vertices, keys)
        dst[i] = _vertex_at(other, vertices, keys)


@kernel(i64, u64s, u64, _IDS, i32s)
def vertices_of_blocks(first, bounds, seed, vertex, block):
    """Fill ``vertex`` and ``block`` with the vertices at places ``first ..`` and their blocks."""
    keys = permutation_keys(seed)
    for i in range(vertex.shape[0]):
        place = np.uint64(first + i)
        vertex[i] = _vertex_at(place, bounds[-1], keys)
        block[i] = _block_of(place, bounds)


@kernel(u64, _IDS, _IDS, i32s)
def weights(seed, src, dst, weight):
    """Fill ``weight`` with integers from 1 to HEAVIEST that depend on a row's two ends, in either
    order.
    """
    half = np.uint64(32)
    for i in range(weight.shape[0]):
        least = np.uint64(min(src[i], dst[i]))
        most = np.uint64(max(src[i], dst[i]))
        ends = least ^ (most << half) ^ (most >> half)
        word, _, _, _ = philox(ends, _WEIGHTS_BLOCK, seed)
        weight[i] = np.int32(1 + word % np.uint64(HEAVIEST))
