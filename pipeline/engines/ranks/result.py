"""Results of ranks: each rank has its partitions' part, rank 0 the delegates', too.

Of a search it goes through files; in a bench, to all ranks (bench/check.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.team import Team
from ....partition.disk.outputs import naming_full_disk
from ....partition.disk.scratch import FileScratch
from ....partition.store.store import GraphInfo, Store
from .graph import RankGraph

_DELEGATES = "delegates"
_ALL = "all"


class Part(NamedTuple):
    """Distance (int32, -1 where unreached) and parent (uint32, global ids, or UNREACHED)."""

    distance: NDArray[np.int32]
    parent: NDArray[np.uint32]


class RankResult(NamedTuple):
    """The result of a rank. parts: of its partitions, where those of delegates say nothing.

    delegates: on rank 0; None on the others.
    """

    parts: dict[int, Part]
    delegates: Part | None


def result_of(graph: RankGraph) -> RankResult:
    """Without a copy, but of delegates that are among a rank's own vertices."""
    own, held = graph.own, graph.held
    parts = {
        p: Part(own.distance[i :: len(held)], own.parent[i :: len(held)])
        for i, p in enumerate(held)
    }
    if graph.rank:
        return RankResult(parts, None)
    if graph.shared is None:
        some = graph.delegates
        return RankResult(parts, Part(own.distance[some], own.parent[some]))
    return RankResult(parts, Part(graph.shared.distance, graph.shared.parent))


def saved_bytes(info: GraphInfo) -> int:
    """Return the bytes that all ranks together leave in files."""
    return (4 + 4) * (info.vertices + info.delegates)


def save(result: RankResult, folder: Path) -> None:
    for number, part in result.parts.items():
        save_columns(folder, str(number), part._asdict())
    if result.delegates is not None:
        save_columns(folder, _DELEGATES, result.delegates._asdict())


def save_whole(folder: Path, columns: Mapping[str, NDArray]) -> None:
    """Save the arrays of a rank that knows all vertices, by global id."""
    save_columns(folder, _ALL, columns)


def save_vectors(
    folder: Path, columns: Mapping[str, tuple[NDArray, NDArray]], held: range, rank: int
) -> None:
    """Save vectors: of the rank's partitions, own values by place; of delegates, on rank 0, shared
    ones.
    """
    for i, p in enumerate(held):
        some = {name: own[i :: len(held)] for name, (own, _) in columns.items()}
        save_columns(folder, str(p), some)
    if rank == 0:
        shared = {name: shared for name, (_, shared) in columns.items()}
        save_columns(folder, _DELEGATES, shared)


def gather(store: Store, folder: Path) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
    """Distance and parent of all vertices by global id, from all ranks' files."""
    distance, parent = gather_columns(store, folder, Part._fields)
    return distance, parent


def gather_columns(store: Store, folder: Path, names: Sequence[str]) -> list[NDArray]:
    """Gather any columns, as ``gather`` gathers distances and parents."""
    return [_gather(store, folder, name) for name in names]


def _gather(store: Store, folder: Path, name: str) -> NDArray:
    if _file(folder, _ALL, name).exists():
        return np.load(_file(folder, _ALL, name))
    info = store.info
    parts = ((p, (np.load(_file(folder, str(p), name)),)) for p in range(info.partitions))
    delegates = np.load(_file(folder, _DELEGATES, name))
    table = store.delegates(Team(1))[: len(delegates)]  # a grid has none that are shared
    whole = np.empty(info.vertices, delegates.dtype)
    _put_together((whole,), info.partitions, parts, table, (delegates,))
    return whole


def put_together(
    vertices: int,
    partitions: int,
    parts: Iterable[tuple[int, Part]],
    table: NDArray[np.uint32],
    delegates: Part,
) -> Part:
    """By global id, of all partitions' parts. table: the delegates' global ids."""
    whole = Part(np.empty(vertices, np.int32), np.empty(vertices, np.uint32))
    _put_together(whole, partitions, parts, table, delegates)
    return whole


def _put_together(
    whole: Sequence[NDArray],
    partitions: int,
    parts: Iterable[tuple[int, Sequence[NDArray]]],
    table: NDArray[np.uint32],
    delegates: Sequence[NDArray],
) -> None:
    for p, part in parts:
        for column, values in zip(whole, part, strict=True):
            column[p::partitions] = values
    for column, values in zip(whole, delegates, strict=True):
        column[table] = values


def save_columns(folder: Path, name: str, columns: Mapping[str, NDArray]) -> None:
    scratch = FileScratch(str(folder))
    needed = sum(values.nbytes for values in columns.values())
    with naming_full_disk(folder / name, lambda: f"{needed:,} bytes are needed, "):
        for column, values in columns.items():
            scratch.save(f"{name}.{column}", values)


def _file(folder: Path, name: str, column: str) -> Path:
    return folder / f"{name}.{column}.npy"
