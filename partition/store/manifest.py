"""A store's manifest: what the graph is, and every file with its checksums. Reading one, and what
it must say: manifest_check.py.
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

FORMAT_VERSION = 5
READ_VERSIONS = (3, 4, 5)
"""Of 3 there are no weights. Of 4 it is not known how many were rounded."""

VERTICES = "vertices.parquet"
DELEGATES = "delegates.npy"


@dataclass(frozen=True)
class WeightInfo:
    """The weights of a store. column: of the input. duplicates: see partition/input/weights.py.

    least, most, mean: of all entries. rounded: weights of rows that 32 bits do not hold exactly;
    greatest_change: of one of them, as a share of it. None where that is not known.
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
    """The graph by the manifest.

    fingerprint: of the input (EdgeList.fingerprint) and its direction; a result names it.
    edges: distinct edges, each once, without self-loops. rows: of the input, of which
    ``self_loops`` and ``duplicates`` were dropped (undirected, u-v and v-u are duplicates).
    layout: "delegate", "2d", "1d", or "csr" of one partition. grid: None for delegates.
    degree_histogram: vertices of degree 0, 1, 2-3, 4-7, ...
    threshold, threshold_chosen_by, nn_row_share: how delegates were separated.
    subgraph_edges: entries of each kind of subgraph, over all partitions. weights: None where edges
    have none.
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

    def rows_of(self, partition: int, name: str) -> range:
        """The rows of a subgraph that may have edges; those before them are empty."""
        if self.grid is not None:
            column = self.grid.column(partition)
            return range(local_rows(self.vertices, self.grid.columns, column))
        return self._ends(partition, ends_of(name)[0])

    def targets_of(self, partition: int, name: str) -> range:
        """The range of the targets of a subgraph."""
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
        """Delegates, where their global ids come first: no normal vertex has one of these."""
        return self.delegates if self.order == "degree" else 0


def stem_of(partition: int, name: str) -> str:
    """Where a subgraph's files stand in the store, but for their endings."""
    return f"partition-{partition:04}/{name}"


def offsets_file(partition: int, name: str) -> str:
    return f"{stem_of(partition, name)}.offsets.npy"


def targets_file(partition: int, name: str, shard: int) -> str:
    return f"{stem_of(partition, name)}.targets-{shard:04}.npy"


def weights_of(targets: str) -> str:
    """The file of the weights of a file of targets."""
    return targets.replace(".targets-", ".weights-")


def is_weights(name: str) -> bool:
    return ".weights-" in name


def shards_of(records: dict[str, FileRecord], partition: int, name: str) -> list[str]:
    """The files of a subgraph's targets, in the order of their rows; those of its weights have the
    same cuts.
    """
    every = (targets_file(partition, name, shard) for shard in count())
    return list(takewhile(records.__contains__, every))


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
    """The checksum of a manifest, of all but its own field."""
    return xxhash.xxh3_64_hexdigest(json.dumps(manifest, sort_keys=True).encode())
