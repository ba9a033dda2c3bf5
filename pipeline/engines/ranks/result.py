"""Results of ranks: each rank has the values of its partitions, rank 0 also those of the delegates.

A search leaves them in files; a bench sends them to all ranks (bench/check.py).
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
    """Distances (int32, -1 for vertices not reached) and parents (uint32, global ids, or
    UNREACHED).
    """

    distance: NDArray[np.int32]
    parent: NDArray[np.uint32]


class RankResult(NamedTuple):
    """The result of a rank. parts: by partition; values at delegates are meaningless. delegates: on
    rank 0; None on the others.
    """

    parts: dict[int, Part]
    delegates: Part | None


def result_of(graph: RankGraph) -> RankResult:
    """Return the result of a rank after a search. No array is copied, except the delegates' on a
    single rank.
    """
    own_vertices, held = graph.own, graph.held
    parts = {
        p: Part(own_vertices.distance[i :: len(held)], own_vertices.parent[i :: len(held)])
        for i, p in enumerate(held)
    }
    if graph.rank:
        return RankResult(parts, None)
    if graph.shared is None:
        delegates = graph.delegates
        return RankResult(
            parts, Part(own_vertices.distance[delegates], own_vertices.parent[delegates])
        )
    return RankResult(parts, Part(graph.shared.distance, graph.shared.parent))


def saved_bytes(info: GraphInfo) -> int:
    """Return the bytes of the files in which all ranks together leave a search's result."""
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
    """Save the rank's own values in a file for each of its partitions and, on rank 0, the shared
    values of delegates.

    columns: own and shared values by name, by place.
    """
    for i, p in enumerate(held):
        own_columns = {name: values[i :: len(held)] for name, (values, _) in columns.items()}
        save_columns(folder, str(p), own_columns)
    if rank == 0:
        shared = {name: shared for name, (_, shared) in columns.items()}
        save_columns(folder, _DELEGATES, shared)


def gather(store: Store, folder: Path) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
    """Return the distances and parents of all vertices by global id, from the files of all
    ranks.
    """
    distance, parent = gather_columns(store, folder, Part._fields)
    return distance, parent


def gather_columns(store: Store, folder: Path, names: Sequence[str]) -> list[NDArray]:
    """Return columns of all vertices by global id, from the files of all ranks."""
    return [_gather(store, folder, name) for name in names]


def _gather(store: Store, folder: Path, name: str) -> NDArray:
    if _file(folder, _ALL, name).exists():
        return np.load(_file(folder, _ALL, name))
    info = store.info
    parts = ((p, (np.load(_file(folder, str(p), name)),)) for p in range(info.partitions))
    delegates = np.load(_file(folder, _DELEGATES, name))
    table = store.delegates(Team(1))[: len(delegates)]  # in a grid no delegate is shared
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
    """Return the values of all partitions by global id. parts: by partition. table: the delegates'
    global ids.
    """
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
