"""Projection of the bytes that ranks would hold of a store, and send each other: ``info --ranks``.

Bytes sent are those of all ranks together. "At most" takes every message as a bitmap, as longer
messages never occur. "papers" are the papers' own models of the same layouts, which reduce and
broadcast in trees.
"""

from __future__ import annotations

from math import log2, sqrt
from typing import Any

import numpy as np

from ...partition.errors import InputError
from ...partition.store.grid import Grid, squarest
from ...partition.store.layout import kept_subgraphs, local_rows, table_1_bytes
from ...partition.store.store import Store
from ..engines.ranks.search import rank_bytes


def project(store: Store, ranks: int) -> dict[str, Any]:
    """Return the projection. Raises InputError for more ranks than the store has partitions."""
    info = store.info
    if not 1 <= ranks <= info.partitions:
        raise InputError(
            f"{store.path} has {info.partitions} partitions for {ranks} ranks: build it again with "
            f"--partitions {ranks} or more"
        )
    grid = info.grid if info.layout == "2d" and info.grid else squarest(ranks)
    entries, nn = _entries(info.subgraph_edges)
    volumes = sent(ranks, grid, info.vertices, info.delegates, entries, nn)
    if info.layout != "delegate":
        del volumes["delegate"]  # how many there would be, only a build can say
    return {
        "ranks": [_rank(store, rank, ranks) for rank in range(ranks)],
        "bytes_sent": volumes,
    }


def sent(
    ranks: int, grid: Grid, vertices: int, delegates: int, entries: int, nn: int
) -> dict[str, dict[str, float | None]]:
    """Return, by layout, the most bytes that a superstep sends, push and pull, and the papers'
    models.

    grid: of the layout 2d. entries: edges in both directions; nn: those along nn, of the delegate
    layout.

    >>> sent(4, Grid(2, 2), 8000, 80, 100_000, 1000)["1d"]["push_superstep"]
    3000.0
    """
    n, d, p = vertices / 8, delegates / 8, ranks
    square = sqrt(p) * log2(max(1.0, sqrt(p)))
    delegate = p * (p - 1) * d + min(4 * nn, (p - 1) * n)
    fold, expand = (grid.columns - 1) * n, (grid.rows - 1) * n
    return {
        "delegate": {
            "push_superstep": delegate,
            "pull_superstep": delegate,
            # Pan, Pearce, Owens, section V-B: masks, and every nn edge once
            "paper_superstep": 2 * d * p,
            "paper_search": 4.0 * nn,
        },
        "2d": {
            "push_superstep": expand + fold,
            "pull_superstep": 2 * expand + fold,
            # the same, section II-B: a pull by bitmaps; a vertex that is pushed
            "paper_superstep": 2 * n * square,
            "paper_search": 8 * vertices * square,
        },
        "1d": {
            "push_superstep": (p - 1) * n,
            "pull_superstep": (p - 1) * n,
            # the same, section II-B: every edge's end is told
            "paper_superstep": None,
            "paper_search": 8.0 * entries,
        },
    }


def _entries(subgraph_edges: dict[str, int]) -> tuple[int, int]:
    return sum(subgraph_edges.values()), subgraph_edges["nn"]


def _rank(store: Store, rank: int, ranks: int) -> dict[str, Any]:
    info = store.info
    parts = range(rank, info.partitions, ranks)
    edges = {
        name: sum(
            store.files[file].length(np.uint32) for p in parts for file in store.shards(p, name)
        )
        for name in kept_subgraphs(info.grid, directed=False)
    }
    vertices = sum(local_rows(info.vertices, info.partitions, p) for p in parts)
    entries, nn = _entries(edges)
    return {
        "partitions": list(parts),
        "vertices": vertices,
        "edges": edges,
        "table_1_bytes": table_1_bytes(vertices, info.delegates, len(parts), entries, nn),
        "bytes": rank_bytes(store, rank, ranks),
    }
