"""The structures of cuda/rank.cuh, as NumPy types (device.pack fills them in)."""

import numpy as np

from .gpu_search import COUNTERS, SEARCH

NAME = np.dtype(
    [
        ("delegates", "u8"),
        *((name, "u4") for name in ("normals", "skipped", "parts", "partitions", "ranks", "rank")),
    ],
    align=True,
)
ARRIVAL = np.dtype(
    [("round", "u8"), *((n, "u4") for n in ("frontier", "delegates", "ghosts", "again"))],
    align=True,
)
PEER = np.dtype(
    [
        ("mail", "u8", 2),
        *((name, "u8") for name in ("parent", "vertex", "wanted", "arrivals")),
        *((name, "u4") for name in ("ghosts_at", "ghost_words", "all_ghost_words")),
        *((name, "u4") for name in ("own_ghosts_at", "own_ghost_words")),
    ],
    align=True,
)
CONTROL = np.dtype(
    [
        ("arrived", "u8"),
        ("visits", COUNTERS, 2),
        ("noted", COUNTERS, 2),
        *((name, "u8") for name in ("round", "forward", "unvisited_edges", "pull_bound")),
        *((name, "u4") for name in ("status", "level", "frontier", "found", "visited")),
        *(
            (name, "u4")
            for name in ("queued", "step", "enqueueing", "delegates", "normals", "going")
        ),
    ],
    align=True,
)
PHASES = ("visit", "write", "wait", "read", "note")

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
        *((name, "u8") for name in ("elsewhere", "found_here", "late")),
        *((name, "u8") for name in ("control", "levels", "peers", "arrivals")),
        ("mail", "u8", 2),
        *((name, "u8") for name in ("sent", "stop")),
        *((name, "u4") for name in ("rank", "ranks", "delegate_words", "own_words")),
        *(
            (name, "u4")
            for name in ("ghost_words", "stage", "hosted", "many_delegates", "nn_row_count")
        ),
    ],
    align=True,
)
