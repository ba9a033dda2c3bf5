"""Sources of a build's edges, which yield batches of dense ids again and again.

A source has chunks, which are shared out to tasks. Parquet whose ids are dense as they are is
decoded each time, which costs less than writing the edges and reading them again. Ids that went
through a dictionary are in scratch (dictionary.py). Small graphs are held in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from .edges import Chunk, EdgeList
from .ids import Batch, dense_batches
from .weights import Rounding


class EdgeSource(Protocol):
    """A source of edges. domain: dense ids are below it. chunk_rows: the rows of each chunk."""

    @property
    def domain(self) -> int: ...

    @property
    def chunk_rows(self) -> tuple[int, ...]: ...

    def batches(
        self,
        chunks: Sequence[int],
        rows: int,
        weights: bool = False,
        rounding: Rounding | None = None,
    ) -> Iterator[Batch]:
        """Yield the edges of chunks in batches of at most ``rows`` rows, which must not be written
        to.

        weights: whether batches include weights, if the edges have any. rounding: receives the
        changes of weights by rounding to 32 bits, if they are rounded now.
        """
        ...


@dataclass(frozen=True)
class ParquetSource:
    """An edge list whose ids are dense as they are."""

    edges: EdgeList
    chunks: tuple[Chunk, ...]
    domain: int

    @property
    def chunk_rows(self) -> tuple[int, ...]:
        return tuple(chunk.rows for chunk in self.chunks)

    def batches(
        self,
        chunks: Sequence[int],
        rows: int,
        weights: bool = False,
        rounding: Rounding | None = None,
    ) -> Iterator[Batch]:
        selection = [self.chunks[c] for c in chunks]
        return dense_batches(
            self.edges, selection, self.domain, rows, weights=weights, rounding=rounding
        )


@dataclass(frozen=True)
class HeldSource:
    """Batches in memory; each is a chunk."""

    held: list[Batch]
    domain: int

    @property
    def chunk_rows(self) -> tuple[int, ...]:
        return tuple(len(batch[0]) for batch in self.held)

    def batches(
        self,
        chunks: Sequence[int],
        rows: int,
        weights: bool = False,
        rounding: Rounding | None = None,
    ) -> Iterator[Batch]:
        for c in chunks:
            batch = self.held[c] if weights else self.held[c][:2]
            for first in range(0, len(batch[0]), rows):
                yield tuple(column[first : first + rows] for column in batch)

    def let_go(self, chunk: int) -> None:
        """Free a chunk that is not needed again."""
        self.held[chunk] = tuple(column[:0].copy() for column in self.held[chunk])


def share_out(chunk_rows: Sequence[int], parts: int) -> list[list[int]]:
    """Return the chunks in at most ``parts`` groups of neighbours, with about the same number of
    rows. No group is empty.

    >>> share_out([4, 4, 8, 1], 2)
    [[0, 1], [2, 3]]
    """
    total, before = sum(chunk_rows), 0
    groups: dict[int, list[int]] = {}
    for chunk, rows in enumerate(chunk_rows):
        middle = before + rows // 2
        groups.setdefault(min(middle * parts // max(total, 1), parts - 1), []).append(chunk)
        before += rows
    return list(groups.values())
