"""A store's manifest: the facts of its graph, and every file with its checksums. Reading and
checking a manifest is in manifest_check.py.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import count, takewhile
from typing import Any

import xxhash

from ..disk.files import FileRecord
from ..disk.outputs import STORE_FORMAT
from ..input.weights import Duplicates, WeightType
from .grid import Grid
from .layout import ends_of, local_rows

FORMAT_VERSION = 6
READ_VERSIONS = (3, 4, 5, 6)
"""Versions that can be read. Stores of version 3 have no weights; those of version 4 do not tell
how many weights were rounded. Only stores of version 6 may keep self-loops.
"""

VERTICES = "vertices.parquet"
DELEGATES = "delegates.npy"


@dataclass(frozen=True)
class WeightInfo:
    """The weights of a store. column: of the input. duplicates: see partition/input/weights.py.
    least, most, mean: of all entries. rounded: the number of input rows whose weight 32 bits do not
    hold exactly. greatest_change: the greatest change of one weight, as a share of the weight. Both
    are None if unknown.
    """

    column: str
    kind: WeightType
    duplicates: Duplicates
    least: float
    most: float
    mean: float
    rounded: int | None
    greatest_change: float | None


@dataclass(frozen=True)
class GraphInfo:
    """The facts of a graph in the manifest.

    fingerprint: of the input (EdgeList.fingerprint) and its direction; a result names it. edges:
    distinct edges, each once, without self-loops. rows: of the input, of which ``self_loops`` and
    ``duplicates`` are no edges of their own (undirected, u-v and v-u are duplicates). layout:
    "delegate", "2d", "1d", or "csr" for one partition. grid: None for delegates. degree_histogram:
    the number of vertices of degree 0, 1, 2-3, 4-7, ... threshold, threshold_chosen_by,
    nn_row_share: how delegates were separated. subgraph_edges: entries of each kind of subgraph,
    over all partitions. weights: None for a graph without weights. loops: the number of vertices
    that keep the weight of their self-loops; None if self-loops were dropped.
    """

    fingerprint: str
    src: str
    dst: str
    id_type: str
    directed: bool
    order: str
    layout: str
    grid: Grid | None
    partitions: int
    vertices: int
    edges: int
    rows: int
    self_loops: int
    duplicates: int
    degree_histogram: tuple[int, ...]
    threshold: int
    threshold_chosen_by: str
    delegates: int
    nn_row_share: float
    subgraph_edges: dict[str, int]
    weights: WeightInfo | None = None
    loops: int | None = None

    def rows_of(self, partition: int, name: str) -> range:
        """Return the rows of a subgraph that may have edges; the rows before them are empty."""
        if self.grid is not None:
            column = self.grid.column(partition)
            return range(local_rows(self.vertices, self.grid.columns, column))
        return self._ends(partition, ends_of(name)[0])

    def targets_of(self, partition: int, name: str) -> range:
        """Return the range that the targets of a subgraph are in."""
        if self.grid is not None:
            return range(self.grid.row_vertices(self.vertices, self.grid.row(partition)))
        if name == "nn":
            return range(self._hubs, self.vertices)
        return self._ends(partition, ends_of(name)[1])

    def _ends(self, partition: int, kind: str) -> range:
        if kind == "d":
            return range(self.delegates)
        hubs = local_rows(self._hubs, self.partitions, partition)
        return range(hubs, local_rows(self.vertices, self.partitions, partition))

    @property
    def _hubs(self) -> int:
        """Return the number of delegates if their global ids come first, so that no normal vertex
        has one of these; otherwise 0.
        """
        return self.delegates if self.order == "degree" else 0


def stem_of(partition: int, name: str) -> str:
    """Return the path of a subgraph's files in the store, without their endings."""
    return f"partition-{partition:04}/{name}"


def offsets_file(partition: int, name: str) -> str:
    return f"{stem_of(partition, name)}.offsets.npy"


def targets_file(partition: int, name: str, shard: int) -> str:
    return f"{stem_of(partition, name)}.targets-{shard:04}.npy"


def weights_of(targets: str) -> str:
    """Return the file of the weights that belong to a file of targets."""
    return targets.replace(".targets-", ".weights-")


def is_weights(name: str) -> bool:
    return ".weights-" in name


def shards_of(records: dict[str, FileRecord], partition: int, name: str) -> list[str]:
    """Return the files of a subgraph's targets, in the order of their rows. The files of its
    weights are cut at the same rows.
    """
    names = (targets_file(partition, name, shard) for shard in count())
    return list(takewhile(records.__contains__, names))


def encode_manifest(info: GraphInfo, records: dict[str, FileRecord]) -> bytes:
    manifest = {
        "format": STORE_FORMAT,
        "format_version": FORMAT_VERSION,
        "graph": asdict(info),
        "files": {name: records[name].to_json() for name in sorted(records)},
    }
    manifest["xxh3"] = digest(manifest)
    return json.dumps(manifest, indent=1).encode() + b"\n"


def digest(manifest: dict[str, Any]) -> str:
    """Return the checksum of a manifest, over all fields but its own."""
    return xxhash.xxh3_64_hexdigest(json.dumps(manifest, sort_keys=True).encode())
