"""Copying of edges, as dense ids and weights, to a device by several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ...kernels.gpu.device import Device
from ...kernels.gpu.prepare import Columns
from ...partition.errors import InputError
from ...partition.input.sources import EdgeSource
from ...partition.input.weights import Rounding, total_rounding
from ...partition.store.long_rows import too_large_a_sum

Spread = Callable[[Callable[[int], None], list[int], Sequence[int]], object]
"""Function that runs a task on each item. Its last argument is the number of rows of each item."""


def copy_edges(
    device: Device, source: EdgeSource, batch_rows: int, spread: Spread, weights: bool = False
) -> tuple[Columns, Rounding]:
    """Copy all edges to the device; each task reads a chunk, batch by batch. weights: whether
    weights are copied. Returns the columns, and the rounding of weights to 32 bits if they were
    read for the copy.
    """
    rows = source.chunk_rows
    starts = list(accumulate(rows, initial=0))
    with device.use() as cupy:
        columns = tuple(cupy.empty(starts[-1], np.uint32) for _ in range(2 + weights))
    roundings = [Rounding() for _ in rows]

    def copy(chunk: int) -> None:
        batches = source.batches([chunk], batch_rows, weights, roundings[chunk])
        copy_batches(device, batches, columns, starts[chunk], starts[chunk + 1])

    spread(copy, list(range(len(rows))), rows)
    return columns, total_rounding(rounding.as_tuple() for rounding in roundings)


@contextmanager
def sums_that_fit() -> Iterator[None]:
    """Turn the overflow of a sum of weights of one edge into an InputError."""
    try:
        yield
    except OverflowError as error:
        raise too_large_a_sum() from error


def copy_batches(
    device: Device,
    batches: Iterable[Sequence[NDArray[np.uint32]]],
    columns: Columns,
    begin: int,
    stop: int,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Copy batches of edges to rows ``begin`` .. ``stop - 1`` of columns on the device.

    check: called before each batch. Raises InputError if the number of edges has changed.
    """
    at = begin
    for batch in batches:
        check()
        end = at + len(batch[0])
        if end > stop:
            break
        with device.use():
            for column, values in zip(columns, batch, strict=True):
                column[at:end].set(np.ascontiguousarray(values))
        at = end
    else:
        if at == stop:
            return
    raise InputError("the edge list changed while it was read; run again")
