"""Bytes that a rank holds on a device, beside the targets that may stand in host memory."""

from __future__ import annotations

from typing import NamedTuple


class Needs(NamedTuple):
    """device: bytes there. targets: bytes of those that may stand in either memory, each way.

    own: numbers that the rank's result has. rows: of its graph. host: bytes there of what it tells.
    """

    device: int
    targets: list[int]
    own: int
    rows: int
    host: int = 0
