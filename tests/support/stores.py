"""Hand-made stores: changed, with right checksums."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from delegraph.partition.disk.files import HEADER_BYTES, _npy_header, record_of
from delegraph.partition.store.manifest import digest


def edit_manifest(store: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest by ``change``, and make its checksum right."""
    manifest = json.loads((store / "manifest.json").read_bytes())
    del manifest["xxh3"]
    change(manifest)
    manifest["xxh3"] = digest(manifest)
    (store / "manifest.json").write_text(json.dumps(manifest))


def sealed(store: Path, name: str) -> None:
    """Make the checksums and the size of a file right."""
    record = record_of(store / name).to_json()
    edit_manifest(store, lambda manifest: manifest["files"].update({name: record}))


def edit_array(store: Path, name: str, change: Callable[[np.ndarray], np.ndarray | None]) -> None:
    """Change an array by ``change``, in place or by a new array, and make the checksums right."""
    array = np.load(store / name)
    changed = change(array)
    array = array if changed is None else changed
    (store / name).write_bytes(_npy_header(array.dtype, len(array)) + array.tobytes())
    assert (store / name).stat().st_size == HEADER_BYTES + array.nbytes
    sealed(store, name)


def copied(store: Path, folder: Path) -> Path:
    return Path(shutil.copytree(store, folder / "changed.dg"))
