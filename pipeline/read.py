"""Reading: a Parquet edge list into memory as blocks of dense ids."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..partition import ids
from ..partition.edges import CHUNK_ROWS, EdgeList
from ..partition.errors import InputError
from ..partition.ids import Block, Ids
from .execute import Executor
from .plan import BuildBytes


@dataclass(frozen=True)
class DenseEdges:
    """An edge list in memory, as blocks of dense ids.

    present: uint8 (domain,), 1 where a dense id is a vertex.
    """

    ids: Ids
    present: NDArray[np.uint8]
    blocks: list[Block]

    @property
    def rows(self) -> int:
        return sum(len(src) for src, _ in self.blocks)


def read_edges(edges: EdgeList, executor: Executor) -> DenseEdges:
    """Read an edge list into memory as dense ids."""
    chunks = edges.chunks()
    bounds = edges.bounds
    if bounds is None and pa.types.is_integer(edges.id_type):
        found = executor.step("bounds", lambda c: ids.chunk_bounds(edges, c), chunks)
        bounds = min(low for low, _ in found), max(high for _, high in found)
    if bounds is not None and ids.may_be_dense(bounds, edges.rows):
        domain = bounds[1] + 1
        _check_size(domain)
        need = BuildBytes(edges.rows, domain, executor.threads).read
        present = np.zeros(domain, np.uint8)
        blocks = executor.step(
            "read", lambda c: ids.read_dense(edges, c, domain, present), chunks, need
        )
        blocks = _cut(blocks)
        numbering = ids.compact(blocks, Ids(edges.id_type, domain, None), present)
        if numbering.values is not None:
            present = np.ones(numbering.domain, np.uint8)
        return DenseEdges(numbering, present, blocks)

    need = BuildBytes(edges.rows, 0, executor.threads).read
    encoded = executor.step("read", lambda c: ids.read_encoded(edges, c), chunks, need)
    merged = executor.step(
        "ids",
        lambda dictionaries: ids.merge_dictionaries(dictionaries, edges.id_type),
        [[dictionary for _, dictionary in encoded]],
    )
    numbering, places = merged[0]
    _check_size(numbering.domain)
    work = [(block, place) for (block, _), place in zip(encoded, places, strict=True)]
    del encoded
    blocks = executor.step("encode", lambda pair: ids.translate(*pair), work, need)
    return DenseEdges(numbering, np.ones(numbering.domain, np.uint8), _cut(blocks))


def _cut(blocks: list[Block]) -> list[Block]:
    """Blocks of at most CHUNK_ROWS rows, whatever the row groups were: later steps share them."""
    return [
        (src[first : first + CHUNK_ROWS], dst[first : first + CHUNK_ROWS])
        for src, dst in blocks
        for first in range(0, len(src), CHUNK_ROWS)
    ]


def _check_size(domain: int) -> None:
    if domain > ids.MAX_VERTICES:
        raise InputError(f"{domain:,} vertices; a graph may have {ids.MAX_VERTICES:,}")


def graph_fingerprint(edges: EdgeList, directed: bool) -> str:
    """The same for every store and every result of one graph: its input and its direction."""
    return f"{edges.fingerprint}-{'directed' if directed else 'undirected'}"


def warm_up_read(edges: EdgeList, executor: Executor) -> None:
    """Compile, or load from the cache, what reading will call."""
    executor.step("compile", lambda _: ids.warm_up(edges.id_type), [None])
