"""Conversion of a store to a matrix in the format of ``scipy.sparse.save_npz``: compressed rows
with rising columns, which ``scipy.sparse.load_npz`` reads.

Rows and columns are the vertices by rising id. An additional array ``vertex`` holds the ids.
Entries are weights, or ones; on the diagonal those of the self-loops that the store keeps. An
undirected graph gives a symmetric matrix.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...kernels.base import sort
from ...kernels.base.team import Team
from ...partition.disk.system_errors import naming_file
from ...partition.input.arrow import as_numpy
from ...partition.input.id_types import is_bytes, is_string, shown_id
from ...partition.store.store import Store
from ..run.execute import Executor
from ..run.plan import fits, held_now, too_little
from .graph_file import STEP

_ENTRY_BYTES = 2 * 8 + 2 * 4  # keys and weights, twice while they are sorted
_VERTEX_BYTES = 8 + 4 + 2 * 8  # ids and places; ends of rows, and the keys to find them
_UUID_CHARACTERS = 36
_NAME_BYTES = 64  # bytes of a string, as Python and Arrow hold it


def write_matrix(store: Store, path: Path, executor: Executor, limit: int) -> int:
    """Write the matrix. Returns the number of entries. limit: bytes of memory. Raises LimitError if
    the limit is too small.
    """
    team = Team(executor.threads)
    need = _entries(store) * _ENTRY_BYTES + store.info.vertices * _VERTEX_BYTES
    _check_room(need, limit)
    vertices = store.vertices(team, ["vertex", "global_id"])
    if is_string(vertices["vertex"].type):
        widths = pc.call_function("max", [pc.call_function("utf8_length", [vertices["vertex"]])])
        need += store.info.vertices * (_NAME_BYTES + 4 * widths.as_py())
        _check_room(need, limit)
    elif is_bytes(vertices["vertex"].type):
        need += store.info.vertices * (_NAME_BYTES + 4 * _UUID_CHARACTERS)
        _check_room(need, limit)
    executor.once(STEP, lambda: _write(store, vertices, path, team), held_now() + need)
    return _entries(store)


def _check_room(need: int, limit: int) -> None:
    if not fits(need, limit):
        raise too_little(STEP, need, limit)


def _entries(store: Store) -> int:
    return store.info.edges * (1 if store.info.directed else 2) + (store.info.loops or 0)


def _write(store: Store, vertices: pa.Table, path: Path, team: Team) -> None:
    n = store.info.vertices
    row = np.empty(n, np.uint32)
    row[as_numpy(vertices["global_id"])] = np.arange(n, dtype=np.uint32)
    keys, weights = _sorted_entries(store, row, team)
    ends = np.searchsorted(keys, np.arange(n + 1, dtype=np.uint64) << np.uint64(32))
    columns = keys.astype(np.uint32)
    with naming_file(path), open(path, "wb") as file:
        np.savez(
            file,
            format=np.array(b"csr"),
            shape=np.array([n, n], np.int64),
            indptr=ends.astype(np.int64),
            indices=columns.astype(np.int32 if n <= 2**31 else np.int64),
            data=weights,
            vertex=_ids(vertices["vertex"]),
        )


def _sorted_entries(
    store: Store, row: NDArray[np.uint32], team: Team
) -> tuple[NDArray[np.uint64], NDArray]:
    """Return a rising key for each entry (its row in the upper 32 bits, its column in the lower),
    and the entries' values. row: by global id.
    """
    keys = np.empty(_entries(store), np.uint64)
    weighted = store.info.weights is not None
    bits = np.empty(len(keys) if weighted else 0, np.uint32)
    at = 0
    batches = store.weighted_batches(team) if weighted else store.edge_batches(team)
    for sources, targets, *weights in chain(batches, store.loop_batches(team)):
        part = slice(at, at + len(sources))
        keys[part] = (row[sources].astype(np.uint64) << np.uint64(32)) | row[targets]
        for values in weights:
            bits[part] = values.view(np.uint32)
        at = part.stop
    width = max(len(row) - 1, 0).bit_length()
    if not weighted:
        keys = sort.radix_sort(keys, np.empty_like(keys), width, width)
        return keys, np.broadcast_to(np.float64(1), len(keys))
    scratch = np.empty_like(keys), np.empty_like(bits)
    keys, bits = sort.radix_sort_with(keys, bits, *scratch, width, width)
    return keys, bits.view(store.weight_type)


def _ids(vertex: pa.ChunkedArray) -> NDArray:
    if is_bytes(vertex.type):
        return np.array(list(map(shown_id, vertex.to_pylist())), str)
    return np.array(vertex.to_pylist(), str) if is_string(vertex.type) else as_numpy(vertex)
