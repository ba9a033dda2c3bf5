"""Damage to a file, by kinds."""

from __future__ import annotations

from pathlib import Path

DAMAGES = ["truncated", "removed", "halved", "a flipped bit"]


def damage(path: Path, kind: str) -> None:
    """Damage a file. truncated: to nothing. a flipped bit: in the middle, and the size stays."""
    data = bytearray(path.read_bytes())
    if kind == "removed":
        path.unlink()
    elif not data:  # and is not to be as it was
        path.write_bytes(b"\0")
    elif kind == "a flipped bit":
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    else:
        path.write_bytes(data[: len(data) // 2 if kind == "halved" else 0])
