"""The bytes that a rank holds on a device, apart from targets, which may also be in host memory."""

from __future__ import annotations

from typing import NamedTuple


class Needs(NamedTuple):
    """Bytes and counts of a rank on a device. device: bytes on the device, without targets.
    targets: bytes of targets in each direction, which may be in either memory. own: vertices in the
    rank's result. rows: rows of the rank's graph. host: bytes in host memory of messages to other
    ranks.
    """

    device: int
    targets: list[int]
    own: int
    rows: int
    host: int = 0
