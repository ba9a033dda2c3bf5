"""What ranks found, through files: each writes its partitions' part, rank 0 the delegates', too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..kernels.graph import UNREACHED
from ..kernels.team import Team
from ..partition.store import Store
from .grid_graph import GridGraph
from .rank_graph import RankGraph

_DELEGATES = "delegates"
_ALL = "all"


def save(graph: RankGraph | GridGraph, folder: Path) -> None:
    for number, normals in graph.normals.items():
        save_part(folder, number, normals.distance, normals.parent)
    if graph.rank == 0:
        save_delegates(folder, graph.delegates.distance, graph.delegates.parent)


def save_part(
    folder: Path, partition: int, distance: NDArray[np.int32], parent: NDArray[np.uint32]
) -> None:
    """Of a partition's vertices; those of delegates are not looked at."""
    _save(folder, str(partition), distance, parent)


def save_delegates(folder: Path, distance: NDArray[np.int32], parent: NDArray[np.uint32]) -> None:
    _save(folder, _DELEGATES, distance, parent)


def save_whole(folder: Path, distance: NDArray[np.int32], parent: NDArray[np.uint32]) -> None:
    """Of a rank that is alone: by global id."""
    _save(folder, _ALL, distance, parent)


def gather(store: Store, folder: Path) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
    """Distance (int32, -1 where unreached) and parent of all vertices, from all ranks' files."""
    if (folder / f"{_ALL}.parent.npy").exists():
        return _load(folder, _ALL)
    n, partitions = store.info.vertices, store.info.partitions
    distance = np.empty(n, np.int32)
    parent = np.full(n, UNREACHED, np.uint32)
    for p in range(partitions):
        distance[p::partitions], parent[p::partitions] = _load(folder, str(p))
    delegates = store.delegates(Team(1))
    distance[delegates], parent[delegates] = _load(folder, _DELEGATES)
    return distance, parent


def _save(folder: Path, name: str, distance: NDArray[np.int32], parent: NDArray[np.uint32]) -> None:
    np.save(folder / f"{name}.distance.npy", distance)
    np.save(folder / f"{name}.parent.npy", parent)


def _load(folder: Path, name: str) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
    return np.load(folder / f"{name}.distance.npy"), np.load(folder / f"{name}.parent.npy")
