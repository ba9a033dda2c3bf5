"""Findings of results on disk, and their lines for people: what a command prints after its run, and
what ``info`` shows of a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import floor, log2
from typing import Any

import pyarrow as pa

from ..partition.input.arrow import compute
from ..partition.input.id_types import stored
from .questions import FORMS
from .questions.facts import plural
from .results.findings import SIZE, TOP, Findings, GroupSizes, Range, has_equal_ranges
from .results.result import Result, open_result

_GROUPS = 1 << 24
"""Rows whose groups are counted at the same time."""

_MOST_LINES = 24
"""Lines of a distribution."""

_MOST_OCTAVES = 1 << 12
"""More than a float has."""

_WIDTH = 40
"""Letters of the longest bar."""

MARK = "#"
"""The letter that bars are made of, where a terminal may not know others."""

_HEADS = {"values": "the greatest", "distances": "the farthest", "groups": "the largest"}


def find(batches: Iterable[pa.RecordBatch], findings: Findings) -> Findings:
    """Add all batches, and return the findings."""
    for batch in batches:
        findings.add(batch)
    return findings


def findings_of(result: Result, top: int = TOP) -> Findings:
    """Return the findings of a result on disk, with distributions."""
    findings = Findings(result.algorithm, result.values, top, distributes=True)
    if findings.kind == "groups":
        return find(_group_sizes(result, findings.read), findings)
    return find(_stored(result.batches(1 << 20, ("vertex", findings.column))), findings)


def _stored(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches of ids in plain types, which can be compared and counted."""
    for batch in batches:
        columns = [_plain(stored(column)) for column in batch.columns]
        yield pa.record_batch(columns, batch.schema.names)


def _plain(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        kind = pa.large_string()
    return column if kind == column.type else column.cast(kind)


def _group_sizes(result: Result, column: str) -> Iterator[pa.RecordBatch]:
    """Yield a row for each group, by its rising name: ``vertex``, and its size.

    The result is read once to see how many groups there are, and then once for each 2^24 of them.
    """
    ends: list[Any] = []
    groups = 0
    for batch in _stored(result.batches(1 << 20, ("vertex", column))):
        names = batch.column(0).filter(compute("equal", batch.column(0), batch.column(1)))
        if groups // _GROUPS < (groups + len(names)) // _GROUPS:
            ends.append(names[len(names) - 1])
        groups += len(names)
    for low, high in zip([None, *ends], [*ends, None], strict=True):
        sizes: GroupSizes | None = None
        for batch in _stored(result.batches(1 << 20, (column,))):
            names = batch.column(0)
            if low is not None:
                names = names.filter(compute("greater", names, low))
            if high is not None:
                names = names.filter(compute("less_equal", names, high))
            sizes = sizes or GroupSizes(names.type)
            sizes.add(names)
        if sizes is not None:
            yield from sizes.batches()


def table_lines(rows: Sequence[tuple[str, str]]) -> str:
    """Return rows of a name and a text as lines, with the texts below each other."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {told}".rstrip() for name, told in rows)


_LETTERS = 40
"""Letters of an id that are shown."""


def shortened(text: object) -> str:
    r"""Return a text as one short line: without its middle, and with escapes for what a terminal
    would not print.

    >>> shortened("a" * 99), shortened("a\x1b[31m\nb")
    ('aaaaaaaaaaaaaaaaaaa…aaaaaaaaaaaaaaaaaaaa', 'a\\x1b[31m\\x0ab')
    """
    whole = str(text)
    half = _LETTERS // 2
    cut = whole if len(whole) <= _LETTERS else f"{whole[: half - 1]}\u2026{whole[-half:]}"
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in cut)


def _escaped(letter: str) -> str:
    code = ord(letter)
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"
    )


def top_rows(form: str, found: Mapping[str, Any], top: int) -> list[tuple[str, str]]:
    """Return a heading and a row for each of the first vertices or groups; nothing if there are
    none.
    """
    if not found.get("top") or not top:
        return []
    kind, column = finding_of(form, found)
    head = (column, SIZE) if kind == "groups" else ("vertex", column)
    rows = [(f"  {shortened(vertex)}", _exact(value)) for vertex, value in found["top"][:top]]
    return [(head[0], f"{head[1]}, {_HEADS[kind]}"), *rows]


def finding_of(form: str, found: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of a result's findings, and the column that they are of."""
    kind, column = FORMS[form].finding or ("", "distance")
    return kind, found.get("column", column)  # which records of older versions do not name


def _exact(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def found_lines(form: str, found: Mapping[str, Any], top: int) -> str:
    """Return the lines of ``top_rows``; empty text if there are none."""
    rows = top_rows(form, found, top)
    return table_lines(rows) if rows else ""


def with_top(form: str, record: Mapping[str, Any], output: str, top: int) -> dict[str, Any]:
    """Return the record of a result that was there already, with at least ``top`` vertices: the
    result is read where its record names fewer.
    """
    if FORMS[form].finding is None:
        return {**record}
    named = len(record["found"]["top"]) if "found" in record else -1
    if named >= top or 0 <= named < TOP:  # a record names fewer than usual if there are no more
        return {**record}
    found = findings_of(open_result(output), max(top, TOP)).facts()
    return {**record, "found": {name: found[name] for name in found if name != "distribution"}}


def distribution_head(form: str, found: Mapping[str, Any]) -> tuple[str, str]:
    """Return what the ranges of a distribution are of, and what is counted in them."""
    kind, column = finding_of(form, found)
    if kind == "groups":
        return SIZE, plural(column)
    return column, "vertices" if kind else "rows"


def distribution_rows(
    form: str, found: Mapping[str, Any], mark: str = MARK
) -> list[tuple[str, str]]:
    """Return a heading and a row for each range of values, with a bar of marks; nothing if there
    are no values.
    """
    if not found["distribution"]:
        return []
    joined = join_ranges(found["distribution"], _MOST_LINES, has_equal_ranges(form))
    most = max(count for _, _, count in joined)
    width = len(f"{most:,}")
    rows = [
        (f"  {range_name(low, high)}", f"{count:>{width},}  {mark * -(-count * _WIDTH // most)}")
        for low, high, count in joined
    ]
    values, counted = distribution_head(form, found)
    if not has_equal_ranges(form):
        counted += ", in ranges of growing width"
    return [(values, counted), *rows]


def range_name(low: float, high: float) -> str:
    """Return the name of a range of numbers.

    >>> range_name(3, 3), range_name(1000, 1999), range_name(0.5, 0.625)
    ('3', '1,000 to 1,999', '0.5 to 0.625')
    """
    return shown(low) if low == high else f"{shown(low)} to {shown(high)}"


def degree_range(bucket: int) -> str:
    """Return the degrees that a bucket of a store's histogram counts.

    >>> degree_range(0), degree_range(1), degree_range(3)
    ('0', '1', '4 to 7')
    """
    return range_name(1 << bucket >> 1, max(0, (1 << bucket) - 1))


def shown(value: float) -> str:
    """Return a number as text.

    >>> shown(2048), shown(2048.0), shown(0.0625), shown(4e6)
    ('2,048', '2,048', '0.0625', '4e+06')
    """
    if isinstance(value, int) or 999.5 <= value < 1_000_000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def join_ranges(ranges: Sequence[Range], most: int, equal: bool) -> list[Range]:
    """Join neighbouring ranges until at most ``most`` remain, beside that of 0.

    equal: whether ranges have equal lengths. Then they are joined by equal steps, with those that
    hold nothing; otherwise between powers of two, without these.

    >>> join_ranges([(0, 0, 5), (1, 1, 2), (3, 3, 1)], 2, True)
    [(0, 1, 7), (2, 3, 1)]
    >>> join_ranges([(1.0, 1.25, 1), (1.25, 1.5, 1), (8.0, 10.0, 1)], 2, False)
    [(1.0, 1.5, 2), (8.0, 10.0, 1)]
    """
    if len(ranges) < 2:
        return list(ranges)
    if equal:
        low, high, _ = ranges[0]
        return _joined_by_steps(ranges, high - low + isinstance(low, int), most)
    joined, octaves = list(ranges), 0
    while len(joined) > most and octaves < _MOST_OCTAVES:  # 0 stays apart, whatever is joined
        octaves = 2 * octaves or 1
        groups = groupby(
            ranges, key=lambda bounds: bounds[0] and floor(log2(bounds[0])) // octaves + 2000
        )
        joined = [_joined(list(group)) for _, group in groups]
    return joined


def _joined_by_steps(ranges: Sequence[Range], length: float, most: int) -> list[Range]:
    steps = round(ranges[-1][0] / length) + 1
    together = -(-steps // most) * length
    counts: dict[int, int] = {}
    for low, _, count in ranges:
        key = int(low // together)
        counts[key] = counts.get(key, 0) + count
    last, whole = ranges[-1][1], isinstance(ranges[0][0], int)
    return [
        (key * together, min(last, (key + 1) * together - whole), counts.get(key, 0))
        for key in range(min(counts), max(counts) + 1)
    ]


def _joined(group: Sequence[Range]) -> Range:
    return group[0][0], group[-1][1], sum(count for _, _, count in group)
