"""How many bytes a search of a store holds at most: arithmetic from the manifest.

Beside what the process holds before it opens the store (interpreter, libraries, compiled code).
"""

from __future__ import annotations

from ...partition.store.store import Store, offsets_dtype
from ..results.store_names import names_bytes

_STATE = 4 + 4  # of a vertex: distance, parent
_MERGED_EDGE = 28  # of an entry: its ends, two keys to sort, and a key's halves on their way
_WRITER = 24 << 20  # of a Parquet file in the making, by measurement, however short its pieces


def graph_bytes(store: Store) -> int:
    """Of loading the whole graph and searching it (Store.graph, superstep.search)."""
    info = store.info
    n = info.vertices
    # Beside the state: the frontier and what it finds as lists, and the frontier's degree sums.
    state = n * _STATE + 2 * _bitmap(n) + n * (4 + 4 + 8)
    if info.partitions == 1:
        files = (
            record.bytes for name, record in store.files.items() if name.startswith("partition-")
        )
        return state + sum(files)
    entries = sum(info.subgraph_edges.values())
    offsets = (n + 1) * offsets_dtype(entries)().itemsize
    positions = n * (4 + 8 + 8)
    loaded = offsets + 4 * entries
    merge = offsets + positions + _MERGED_EDGE * entries
    if info.directed:  # merged twice, the second time beside the first one's outcome
        return loaded + max(merge, loaded + state)
    return max(merge, loaded + state)


def writing_bytes(store: Store, tasks: int) -> int:
    """Of writing the result, ``tasks`` files at once, distances and parents included."""
    return store.info.vertices * _STATE + names_bytes(store, tasks) + tasks * _WRITER


def _bitmap(vertices: int) -> int:
    return -(-vertices // 64) * 8
