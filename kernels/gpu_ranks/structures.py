"""Structures of cuda/ranks that both layouts have, as NumPy types (device.pack fills them in)."""

import numpy as np

ORIGIN = np.dtype([("first", "u4"), ("partition", "u4")])
GLOBAL_IDS = np.dtype([("origins", "u8"), ("partitions", "u4")], align=True)
PHASES = ("visit", "write", "wait", "read", "note")
"""Phases of a superstep: following edges; writing mail; waiting for the others; reading their mail;
noting what is new.
"""
