"""Graph files of other programs, and the edge lists that they become."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import delegraph


def write_compressed(path: Path, text: str | bytes) -> Path:
    """Write data, compressed if the name ends in .gz or .zst."""
    data = text.encode() if isinstance(text, str) else text
    if path.suffix == ".gz":
        data = gzip.compress(data)
    elif path.suffix == ".zst":
        data = pa.compress(data, codec="zstd", asbytes=True)
    path.write_bytes(data)
    return path


def converted(path: Path, **options: Any) -> tuple[dict[str, list], dict[str, Any]]:
    """Return the columns of the edge list that a file becomes, and the record."""
    output = path.with_name(f"{path.name}-edges")
    record = delegraph.convert(path, output, overwrite=output.exists(), **options).record
    return pq.read_table(output).to_pydict(), dict(record)
