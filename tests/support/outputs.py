"""Readers of the files that a command has written."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow.parquet as pq


def read_result(path) -> dict:
    """Return distance and parent by vertex."""
    table = pq.read_table(path)
    rows = zip(*(table[name].to_pylist() for name in ("vertex", "distance", "parent")), strict=True)
    return {vertex: (distance, parent) for vertex, distance, parent in rows}


def distances_of(path) -> dict:
    return {vertex: distance for vertex, (distance, _) in read_result(path).items()}


def digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    content = [str(path.relative_to(folder)).encode() + path.read_bytes() for path in files]
    return hashlib.sha256(b"".join(content)).hexdigest()


def device_of(output: Path) -> str:
    return json.loads(output.with_name(f"{output.name}.run.json").read_text())["device"]
