"""Graphs to search: named shapes, random graphs, and graphs drawn by Hypothesis."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from delegraph.kernels import reference
from delegraph.kernels.base.graph import Graph
from delegraph.kernels.base.team import Team
from delegraph.partition.store.grid import Grid
from delegraph.partition.store.store import Store
from delegraph.pipeline.build.prepare import BuildOptions
from support.marks import mostly_slow


def random_edges(seed: int, vertices: int, edges: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a skewed random graph: squared uniform numbers make hubs."""
    rng = np.random.default_rng(seed)
    src, dst = (rng.random((2, edges)) ** 2 * vertices).astype(np.int64)
    return src, dst


def write_in_parts(folder: Path, src: np.ndarray, dst: np.ndarray, w: np.ndarray) -> None:
    """Write edges as four files in a folder, each with row groups of another length."""
    folder.mkdir()
    size = len(src) // 4
    for part in range(4):
        share = slice(part * size, (part + 1) * size)
        table = pa.table({"src": src[share], "dst": dst[share], "w": w[share]})
        pq.write_table(table, folder / f"{part}.parquet", row_group_size=1000 * (part + 1))


def grid(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a grid of cells, numbered row by row and joined to their neighbours."""
    cell = np.arange(side * side).reshape(side, side)
    right = cell[:, :-1].ravel(), cell[:, 1:].ravel()
    down = cell[:-1].ravel(), cell[1:].ravel()
    return np.concatenate([right[0], down[0]]), np.concatenate([right[1], down[1]])


def grid_with_diagonals(side: int) -> tuple[np.ndarray, np.ndarray]:
    cell = np.arange(side * side).reshape(side, side)
    diagonals = np.r_[cell[:-1, :-1].ravel(), cell[:-1, 1:].ravel()]
    across = np.r_[cell[1:, 1:].ravel(), cell[1:, :-1].ravel()]
    src, dst = grid(side)
    return np.r_[src, diagonals], np.r_[dst, across]


def crossings(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a grid in which some cells have ten more neighbours, and one cell has many."""
    src, dst = grid(side)
    cells, rng = side * side, np.random.default_rng(7)
    joined = rng.integers(0, cells, max(1, cells // 400)).repeat(10)
    many = np.full(60, cells // 3)
    far = rng.integers(0, cells, len(joined) + len(many))
    return np.r_[src, joined, many], np.r_[dst, far]


def lollipop() -> tuple[np.ndarray, np.ndarray]:
    """Return a path to a hub of 20,000 leaves and a path on from a leaf: small levels, a large one,
    small ones.
    """
    hub = 400
    leaves = hub + 1 + np.arange(20_000)
    src = [np.arange(hub), np.full(20_000, hub), leaves, [hub + 1], 30_000 + np.arange(300)]
    dst = [np.arange(1, hub + 1), leaves, leaves + 40_000, [30_000], 30_001 + np.arange(300)]
    return np.concatenate(src), np.concatenate(dst)


def cliques(count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return cliques in a row, each joined to the next, so that neighbours of unvisited vertices
    are unvisited.
    """
    ends = np.array(np.triu_indices(size, 1))
    src, dst = (ends[:, None, :] + size * np.arange(count)[:, None]).reshape(2, -1)
    joints = size * np.arange(1, count)
    return np.r_[src, joints - 1], np.r_[dst, joints]


SHAPES = {
    "two vertices": ([0], [1]),
    "self-loop": ([0, 0], [0, 1]),
    "star": (np.zeros(30_000, int), np.arange(1, 30_001)),
    "path": (np.arange(600), np.arange(1, 601)),  # more levels than a byte counts
    "clique": np.triu_indices(70, 1),
    "cliques": cliques(30, 60),
    "two components": (np.r_[0:50, 100:150], np.r_[1:51, 101:151]),
    "empty rows": ([5, 700], [700, 90_000]),
    "lollipop": lollipop(),
    "grid": grid(120),
    "random": random_edges(3, 50_000, 400_000),
    "hubs": random_edges(4, 3000, 400_000),
}
"""Graphs for devices, one of every kind that a kernel treats differently."""

SMALL_SHAPES = [
    *("two vertices", "self-loop", "star", "cliques", "two components", "empty rows", "hubs")
]
"""Names of the shapes that an emulated device searches within seconds."""

SMALL = mostly_slow(SMALL_SHAPES, "hubs")


@st.composite
def graphs(draw):
    """Draw (src, dst, vertices, directed) of any shape, with loops, duplicates and empty rows."""
    vertices = draw(st.integers(1, 200))
    edges = draw(st.integers(0, 600))
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    skew = draw(st.sampled_from([1, 3]))
    src, dst = (rng.random((2, edges)) ** skew * vertices).astype(np.uint32)
    return src, dst, vertices, draw(st.booleans())


def make_graph(src, dst, vertices, directed) -> Graph:
    if directed:
        forward = reference.compressed_rows(src, dst, vertices)
        return Graph(*forward, *reference.compressed_rows(dst, src, vertices))
    both = np.concatenate([src, dst]), np.concatenate([dst, src])
    return Graph.undirected(*reference.compressed_rows(*both, vertices))


@st.composite
def store_options(draw) -> BuildOptions:
    """Draw options of a store of any layout, from one partition to more than a small graph has
    vertices.
    """
    layout = draw(st.sampled_from(["delegate", "2d", "1d"]))
    grid = draw(st.sampled_from([None, Grid(2, 1), Grid(3, 2)])) if layout == "2d" else None
    return BuildOptions(
        directed=draw(st.booleans()),
        partitions=None if grid else draw(st.sampled_from([None, 1, 2, 3, 4, 5])),
        threshold=draw(st.sampled_from([None, 1, 4, 1000])) if layout == "delegate" else None,
        order=draw(st.sampled_from(["degree", "none", "random"])),
        layout=layout,
        grid=grid,
        loops=draw(st.sampled_from(["drop", "keep"])),
    )


def edges_of(store: Store, loops: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return all edges in global ids; undirected edges both ways. loops: how many times the
    self-loops are among them that the store keeps.
    """
    looped, _ = loops_of(store)
    batches = [*store.edge_batches(Team(1)), *[(looped, looped)] * loops]
    return np.concatenate([u for u, _ in batches]), np.concatenate([v for _, v in batches])


def loops_of(store: Store) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices whose self-loops the store keeps, by global id, and the weights."""
    kept = store.loops(Team(1))
    if kept is None:
        return np.empty(0, np.uint32), np.empty(0, np.uint32)
    return kept.vertices, kept.weights
