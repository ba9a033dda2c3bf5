"""What ranks found, through files: each writes its partitions' part, rank 0 the delegates', too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..kernels.graph import UNREACHED
from ..kernels.team import Team
from ..partition.store import Store
from .grid_graph import GridGraph
from .rank_graph import RankGraph, Vertices

_DELEGATES = "delegates"
_ALL = "all"


def save(graph: RankGraph | GridGraph, folder: Path) -> None:
    for number, normals in graph.normals.items():
        _save(folder, str(number), normals)
    if graph.rank == 0:
        _save(folder, _DELEGATES, graph.delegates)


def save_whole(folder: Path, distance: NDArray[np.int32], parent: NDArray[np.uint32]) -> None:
    """Of a rank that is alone: by global id."""
    np.save(folder / f"{_ALL}.distance.npy", distance)
    np.save(folder / f"{_ALL}.parent.npy", parent)


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


def _save(folder: Path, name: str, vertices: Vertices) -> None:
    np.save(folder / f"{name}.distance.npy", vertices.distance)
    np.save(folder / f"{name}.parent.npy", vertices.parent)


def _load(folder: Path, name: str) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
    return np.load(folder / f"{name}.distance.npy"), np.load(folder / f"{name}.parent.npy")
