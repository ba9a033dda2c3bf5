"""The structures of cuda/ranks/grid.cuh, as NumPy types (device.pack fills them in)."""

import numpy as np

from ..gpu.search import COUNTERS, SEARCH
from .structures import GLOBAL_IDS, PHASES

KINDS = 4  # of letters

NAME = np.dtype([("ids", GLOBAL_IDS)], align=True)
ARRIVAL = np.dtype(
    [
        *((name, "u8") for name in ("round", "push_work", "pull_work")),
        *((name, "u4") for name in ("found", "unused")),
    ],
    align=True,
)
LETTER = np.dtype(
    [
        *(("mail", "u8", 2), ("count", "u8", 2), ("parent", "u8"), ("wanted", "u8")),
        *((name, "u4") for name in ("words", "to_list", "at", "unused")),
    ],
    align=True,
)
SEGMENT = np.dtype([(name, "u4") for name in ("at", "words", "in_columns", "in_rows")])
WEIGHTS = np.dtype([(name, "u8") for name in ("found", "forward", "edges", "rows")])
CONTROL = np.dtype(
    [
        ("arrived", "u8"),
        ("queued", "u8", 2),
        ("visits", COUNTERS, 2),
        ("noted", WEIGHTS, 2),
        *((name, "u8") for name in ("round", "found", "push_work", "pull_work")),
        *((name, "u8") for name in ("own_push_work", "own_pull_work")),
        *((name, "u8") for name in ("forward", "unvisited_edges", "unvisited_rows")),
        *((name, "u8") for name in ("pull_bound", "expand_bytes", "fold_bytes")),
        *((name, "u4") for name in ("status", "level", "own_found", "pending", "step", "stopped")),
    ],
    align=True,
)
LEVEL = np.dtype(
    [
        ("examined", "u8"),
        ("clocks", "u8", len(PHASES)),
        *((name, "u8") for name in ("expand_bytes", "fold_bytes")),
        *((name, "u4") for name in ("found", "pulled")),
    ],
    align=True,
)
RANK = np.dtype(
    [
        ("search", SEARCH),
        ("name", NAME),
        *((name, "u8") for name in ("barren", "frontier", "told", "control", "levels")),
        ("letters", "u8", KINDS),
        *((name, "u8") for name in ("segments", "peers", "arrivals")),
        ("mail", "u8", 2),
        *((name, "u8") for name in ("sent", "stop", "own_edges")),
        ("own_rows", "u4"),
        ("letter_counts", "u4", KINDS),
        *((name, "u4") for name in ("own_segments", "segment_count", "rank", "ranks")),
        *((name, "u4") for name in ("own_words", "row_words", "words")),
        *((name, "u4") for name in ("grid_rows", "grid_columns", "stage", "hosted")),
    ],
    align=True,
)
