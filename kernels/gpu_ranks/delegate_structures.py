"""The structures of cuda/ranks/delegates.cuh, as NumPy types (device.pack fills them in)."""

import numpy as np

from ..gpu.search import COUNTERS, SEARCH
from .structures import GLOBAL_IDS, PHASES

NAME = np.dtype(
    [("ids", GLOBAL_IDS), ("delegates", "u8"), ("changed", "u8"), ("normals", "u4")], align=True
)
REGION = np.dtype([("begin", "u4"), ("end", "u4")])
ARRIVAL = np.dtype(
    [("round", "u8"), *((n, "u4") for n in ("fresh", "delegates", "ghosts", "again"))],
    align=True,
)
PEER = np.dtype(
    [
        ("mail", "u8", 2),
        *((name, "u8") for name in ("parent", "vertex", "wanted", "arrivals")),
        ("region", REGION),
        *((name, "u4") for name in ("ghosts_at", "ghost_words", "all_ghost_words")),
        *((name, "u4") for name in ("own_ghosts_at", "own_ghost_words")),
    ],
    align=True,
)
NOTED = np.dtype([(name, "u8") for name in ("queued", "normals", "delegates", "with_rows")])
CONTROL = np.dtype(
    [
        ("arrived", "u8"),
        ("visits", COUNTERS, 2),
        ("noted", NOTED, 2),
        *((name, "u8") for name in ("round", "forward", "unvisited_edges", "pull_bound")),
        *((name, "u4") for name in ("status", "level", "frontier", "found", "visited")),
        *(
            (name, "u4")
            for name in ("queued", "step", "enqueueing", "delegates", "normals", "going", "fresh")
        ),
    ],
    align=True,
)
LEVEL = np.dtype(
    [
        ("examined", "u8"),
        ("clocks", "u8", len(PHASES)),
        *((name, "u8") for name in ("delegate_bytes", "normal_bytes")),
        *((name, "u4") for name in ("normals", "delegates", "pulled", "unused")),
    ],
    align=True,
)
RANK = np.dtype(
    [
        ("search", SEARCH),
        ("name", NAME),
        *((name, "u8") for name in ("nn_rows", "nn_offsets", "nn_targets", "frontier")),
        ("changed", "u8", 3),
        *((name, "u8") for name in ("found_here", "late")),
        *((name, "u8") for name in ("control", "levels", "peers", "arrivals")),
        ("mail", "u8", 2),
        *((name, "u8") for name in ("sent", "stop")),
        *((name, "u4") for name in ("rank", "ranks")),
        ("region", REGION),
        *((name, "u4") for name in ("delegate_words", "own_words")),
        *(
            (name, "u4")
            for name in ("ghost_words", "stage", "hosted", "many_delegates", "nn_row_count")
        ),
    ],
    align=True,
)
