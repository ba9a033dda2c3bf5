"""What ranks found: each has its partitions' part, rank 0 the delegates', too.

Of a search it goes through files; in a bench, to all ranks (bench/check.py).
"""

from __future__ import annotations

from collections.abc import Iterable
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
    """What a rank found. parts: of its partitions, where those of delegates say nothing.

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
    """What all ranks together leave in files."""
    return (4 + 4) * (info.vertices + info.delegates)


def save(result: RankResult, folder: Path) -> None:
    for number, part in result.parts.items():
        _save(folder, str(number), part)
    if result.delegates is not None:
        _save(folder, _DELEGATES, result.delegates)


def save_whole(folder: Path, distance: NDArray[np.int32], parent: NDArray[np.uint32]) -> None:
    """Of a rank that is alone: by global id."""
    _save(folder, _ALL, Part(distance, parent))


def gather(store: Store, folder: Path) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
    """Distance (int32, -1 where unreached) and parent of all vertices, from all ranks' files."""
    if (folder / f"{_ALL}.parent.npy").exists():
        return _load(folder, _ALL)
    info = store.info
    parts = ((p, _load(folder, str(p))) for p in range(info.partitions))
    delegates = _load(folder, _DELEGATES)
    return put_together(info.vertices, info.partitions, parts, store.delegates(Team(1)), delegates)


def put_together(
    vertices: int,
    partitions: int,
    parts: Iterable[tuple[int, Part]],
    table: NDArray[np.uint32],
    delegates: Part,
) -> Part:
    """By global id, of all partitions' parts. table: the delegates' global ids."""
    whole = Part(np.empty(vertices, np.int32), np.empty(vertices, np.uint32))
    for p, part in parts:
        for column, values in zip(whole, part, strict=True):
            column[p::partitions] = values
    for column, values in zip(whole, delegates, strict=True):
        column[table] = values
    return whole


def _save(folder: Path, name: str, part: Part) -> None:
    scratch = FileScratch(str(folder))
    needed = part.distance.nbytes + part.parent.nbytes
    with naming_full_disk(folder / name, lambda: f"{needed:,} bytes are needed, "):
        scratch.save(f"{name}.distance", part.distance)
        scratch.save(f"{name}.parent", part.parent)


def _load(folder: Path, name: str) -> Part:
    return Part(np.load(folder / f"{name}.distance.npy"), np.load(folder / f"{name}.parent.npy"))
