"""Counting of degrees, and positions of vertices, in spans of ids.

A span is a range of dense ids whose tables fit in memory; if possible, one span has all ids. Each
task counts in one span, over some chunks of the input. The counts of tasks are added up. Positions
follow from the number of vertices of each degree in each span (kernels/prepare/positions.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...kernels.base import bitmap
from ...kernels.prepare import csr
from ..disk.scratch import Scratch
from ..input.sources import EdgeSource
from .order import Order, VertexOrder, degree_histogram, permuted, positions_of_span

_WINDOW = 1 << 18


def spans_of(domain: int, spans: int) -> list[range]:
    """Cut the dense ids into ``spans`` ranges of equal size, at multiples of 64.

    >>> spans_of(200, 2)
    [range(0, 128), range(128, 200)]
    """
    size = -(-domain // spans // 64) * 64
    return [range(first, min(first + size, domain)) for first in range(0, domain, size)]


# Degrees and order


def count_degrees(
    chunks: Sequence[int],
    span: range,
    name: str,
    source: EdgeSource,
    scratch: Scratch,
    rows: int,
    dtype: DTypeLike,
    directed: bool,
) -> int:
    """Write ``degree-NAME``, ``looped-NAME`` and, if directed, ``out_degree-NAME``. Returns the
    number of self-loops in the span.
    """
    degree = np.zeros(len(span), dtype)
    out_degree = np.zeros(len(span) if directed else 0, dtype)
    looped = np.zeros(-(-len(span) // bitmap.WORD), np.uint64)
    loops = 0
    for src, dst in source.batches(chunks, rows):
        loops += csr.count_degrees(src, dst, span.start, degree, looped)
        if directed:
            csr.count_sources(src, dst, span.start, out_degree)
        del src, dst  # freed before the next batch is read
    scratch.save(f"degree-{name}", degree)
    scratch.save(f"looped-{name}", looped)
    if directed:
        scratch.save(f"out_degree-{name}", out_degree)
    return loops


def add_degrees(span: int, counted: Sequence[str], scratch: Scratch, directed: bool) -> None:
    """Add up the counts of several tasks in span ``span``, and write its ``histogram-SPAN``."""
    kinds = ("degree", "looped", *(("out_degree",) if directed else ()))
    for kind in kinds:
        total = scratch.load(f"{kind}-{counted[0]}")
        for name in counted[1:]:
            addend = scratch.load(f"{kind}-{name}")
            if kind == "looped":
                total |= addend
            else:
                total += addend
        scratch.save(f"{kind}-{span}", total)
    distinct, counts = degree_histogram(
        scratch.load(f"degree-{span}"), scratch.load(f"looped-{span}")
    )
    scratch.save(f"histogram-{span}", np.stack([distinct.astype(np.int64), counts]))


def merge_histograms(spans: int, scratch: Scratch, dtype: DTypeLike) -> VertexOrder:
    """Return the order of all vertices; write ``following-SPAN``, each span's first position of
    each degree.
    """
    histograms = [scratch.load(f"histogram-{span}") for span in range(spans)]
    distinct = np.unique(np.concatenate([h[0] for h in histograms]))[::-1]
    counts = np.zeros((spans, len(distinct)), np.int64)
    for row, (degrees, times) in zip(counts, histograms, strict=True):
        row[np.searchsorted(-distinct, -degrees)] = times
    order = VertexOrder(distinct.astype(dtype), counts.sum(axis=0))
    following = order.first_positions()[:-1]
    for span in range(spans):
        scratch.save(f"following-{span}", following)
        following = following + counts[span]
    return order


def position_vertices(span: int, scratch: Scratch, distinct: NDArray[np.unsignedinteger]) -> None:
    """Write ``position-SPAN``: positions by dense id, UNREACHED for ids that are no vertices."""
    positions = positions_of_span(
        scratch.load(f"degree-{span}"),
        scratch.load(f"looped-{span}"),
        distinct,
        scratch.load(f"following-{span}"),
    )
    scratch.save(f"position-{span}", positions)


def number_globally(
    order: Order, positions: Iterable[NDArray[np.uint32]], vertices: int
) -> NDArray:
    """Return the global id by position, for the orders in which the two differ. positions: of each
    span in turn, by rising id.
    """
    global_of_position = np.empty(vertices, np.uint32)
    place = 0
    for span in positions:
        for first in range(0, len(span), _WINDOW):
            position = span[first : first + _WINDOW]
            position = position[position != csr.UNREACHED]
            places = np.arange(place, place + len(position), dtype=np.uint32)
            global_of_position[position] = places if order == "none" else permuted(places, vertices)
            place += len(position)
    return global_of_position
