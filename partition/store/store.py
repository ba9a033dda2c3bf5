"""The store: a prepared graph in a folder.

    manifest.json                     what the graph is, and every file with its checksums
    vertices.parquet                  vertex, global_id, degree (and out_degree), by rising id
    delegates.npy                     global id of each delegate; in the delegate layout
    partition-0000/nn.offsets.npy     each subgraph in compressed sparse rows (layout.py, grid.py)
    partition-0000/nn.targets-0000.npy ...   its targets, in shards of whole rows

The manifest is written last; a folder without one is no store. The same input and parameters
give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from numpy.typing import DTypeLike, NDArray

from ...kernels.base import sort
from ...kernels.base.graph import Graph
from ...kernels.base.numbering import by_table, renumber_all
from ...kernels.base.team import Team
from ..disk.files import (
    ArrayWriter,
    FileRecord,
    array_dtype,
    read_array,
    read_array_blocks,
    read_array_into,
    read_verified,
    record_of,
)
from ..disk.outputs import MANIFEST, STORE_FORMAT, write_file
from ..errors import InputError
from ..input.arrow import as_numpy
from .grid import Grid
from .layout import kept_subgraphs, numberings

FORMAT_VERSION = 3

EDGE_BATCH = 1 << 22
"""Edges of rows that are expanded at once."""

_WINDOW = 1 << 18


@dataclass(frozen=True)
class GraphInfo:
    """What the manifest says of the graph.

    fingerprint: of the input (EdgeList.fingerprint) and its direction; a result names it.
    edges: distinct edges, each once, without self-loops. rows: of the input, of which
    ``self_loops`` and ``duplicates`` were dropped (undirected, u-v and v-u are duplicates).
    layout: "delegate", "2d", "1d", or "csr" of one partition. grid: None for delegates.
    degree_histogram: vertices of degree 0, 1, 2-3, 4-7, ...
    threshold, threshold_chosen_by, nn_row_share: how delegates were separated.
    subgraph_edges: entries of each kind of subgraph, over all partitions.
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


def stem_of(partition: int, name: str) -> str:
    """Where a subgraph's files stand in the store, but for their endings."""
    return f"partition-{partition:04}/{name}"


def targets_file(partition: int, name: str, shard: int) -> str:
    return f"{stem_of(partition, name)}.targets-{shard:04}.npy"


def offsets_dtype(most_edges: int) -> type[np.unsignedinteger]:
    """Type of a subgraph's offsets, from a bound on its edges."""
    return np.uint32 if most_edges < 2**32 else np.uint64


class StoreWriter:
    """Writes a store's files into a folder; ``finish`` writes the manifest.

    The targets are written by tasks, a shard each; ``add`` takes their records.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, FileRecord] = {}

    def add(self, name: str, record: FileRecord) -> None:
        self._files[name] = record

    def write_vertices(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        path = self._folder / "vertices.parquet"
        with pq.ParquetWriter(path, schema, use_dictionary=False, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
        self._files[path.name] = record_of(path)

    def write_array(self, name: str, pieces: Iterable[NDArray], dtype: DTypeLike) -> None:
        path = self._folder / name
        path.parent.mkdir(exist_ok=True)
        with ArrayWriter(path, dtype) as file:
            for piece in pieces:
                file.append(piece)
            self._files[name] = file.finish()

    def write_offsets(
        self, partition: int, name: str, counts: Iterable[NDArray], most_edges: int
    ) -> int:
        """Write a subgraph's offsets from its rows' counts, piece by piece; returns its edges."""
        end = 0
        dtype = offsets_dtype(most_edges)

        def pieces() -> Iterator[NDArray]:
            nonlocal end
            yield np.zeros(1, dtype)
            for part in counts:
                for first in range(0, len(part), _WINDOW):
                    offsets = end + np.cumsum(part[first : first + _WINDOW], dtype=np.int64)
                    end = int(offsets[-1])
                    yield offsets

        self.write_array(f"{stem_of(partition, name)}.offsets.npy", pieces(), dtype)
        return end

    def finish(self, info: GraphInfo) -> None:
        manifest = {
            "format": STORE_FORMAT,
            "format_version": FORMAT_VERSION,
            "graph": asdict(info),
            "files": {name: self._files[name].to_json() for name in sorted(self._files)},
        }
        manifest["xxh3"] = _digest(manifest)
        write_file(self._folder / MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")


def _digest(manifest: dict[str, Any]) -> str:
    return xxhash.xxh3_64_hexdigest(json.dumps(manifest, sort_keys=True).encode())


@dataclass(frozen=True)
class Store:
    """A store that was opened: manifest read, every file there with its size."""

    path: Path
    info: GraphInfo
    files: dict[str, FileRecord]
    bytes: int

    def array(self, name: str, team: Team) -> NDArray:
        return read_array(self.path / name, self.files[name], team)

    def vertices(self, team: Team, columns: Sequence[str]) -> pa.Table:
        """Columns of the vertex table, a row a vertex, by rising user id."""
        name = "vertices.parquet"
        data = read_verified(self.path / name, self.files[name], team)
        return pq.ParquetFile(pa.BufferReader(pa.py_buffer(data))).read(columns=list(columns))

    def shards(self, partition: int, name: str) -> list[str]:
        """The files of a subgraph's targets, in the order of their rows."""
        first = f"{stem_of(partition, name)}.targets-"
        return sorted(file for file in self.files if file.startswith(first))

    @property
    def largest_shard(self) -> int:
        """Bytes of the largest file of targets."""
        return max(
            (record.bytes for name, record in self.files.items() if ".targets-" in name), default=0
        )

    def offsets(self, partition: int, name: str, team: Team) -> NDArray:
        return self.array(f"{stem_of(partition, name)}.offsets.npy", team)

    def offsets_type(self, partition: int, name: str) -> np.dtype:
        return array_dtype(self.path / f"{stem_of(partition, name)}.offsets.npy")

    def offsets_types(self) -> set[np.dtype]:
        """Of all subgraphs."""
        return {
            self.offsets_type(p, name)
            for p in range(self.info.partitions)
            for name in kept_subgraphs(self.info.grid, self.info.directed)
        }

    def subgraph(self, partition: int, name: str, team: Team) -> tuple[NDArray, NDArray]:
        """(offsets, targets) of a subgraph."""
        offsets = self.offsets(partition, name, team)
        targets = np.empty(int(offsets[-1]), np.uint32)
        at = 0
        for file in self.shards(partition, name):
            record = self.files[file]
            shard = targets[at : at + record.length(np.uint32)]
            read_array_into(self.path / file, record, shard, team)
            at += len(shard)
        return offsets, targets

    def delegates(self, team: Team) -> NDArray[np.uint32]:
        """Global id of each delegate."""
        if self.info.grid is not None:
            return np.empty(0, np.uint32)
        return self.array("delegates.npy", team)

    def edge_batches(
        self, team: Team, partitions: Iterable[int] | None = None
    ) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
        """All edges (of some partitions) as (sources, targets) in global ids, batch by batch.

        Undirected edges come in both directions, directed ones once. Holds the offsets of one
        subgraph and one block of targets at a time.
        """
        info = self.info
        table = by_table(self.delegates(team))
        for p in range(info.partitions) if partitions is None else partitions:
            for name in kept_subgraphs(info.grid, directed=False):
                rows, ends = numberings(p, name, info.partitions, info.grid, table)
                offsets = self.offsets(p, name, team)
                at = 0
                for file in self.shards(p, name):
                    record = self.files[file]
                    for first, targets in read_array_blocks(self.path / file, record, np.uint32):
                        start = at + first
                        sources = rows_of_edges(offsets, start, start + len(targets))
                        yield renumber_all(rows, sources), renumber_all(ends, targets)
                    at += record.length(np.uint32)

    def graph(self, team: Team) -> Graph:
        """The whole graph in global ids; several partitions are merged into one graph."""
        if self.info.partitions == 1:
            forward = self.subgraph(0, "nn", team)
            if not self.info.directed:
                return Graph.undirected(*forward)
            return Graph(*forward, *self.subgraph(0, "reverse-nn", team))
        position = self._positions(team)
        pairs = list(self.edge_batches(team))
        sources = np.concatenate([np.empty(0, np.uint32), *(s for s, _ in pairs)])
        targets = np.concatenate([np.empty(0, np.uint32), *(t for _, t in pairs)])
        del pairs
        forward = _rows_by_position(sources, targets, position)
        if not self.info.directed:
            return Graph.undirected(*forward)
        return Graph(*forward, *_rows_by_position(targets, sources, position))

    def _positions(self, team: Team) -> NDArray[np.uint32]:
        """Position by global id: by falling degree, ties by user id."""
        n = self.info.vertices
        if self.info.order == "degree":
            return np.arange(n, dtype=np.uint32)
        table = self.vertices(team, ["global_id", "degree"])
        degree = as_numpy(table["degree"]).astype(np.int64)
        position = np.empty(n, np.uint32)
        position[as_numpy(table["global_id"])[np.argsort(-degree, kind="stable")]] = np.arange(n)
        return position


def rows_of_edges(offsets: NDArray, start: int, stop: int) -> NDArray[np.uint32]:
    """Row of each of the edges ``start <= e < stop`` of compressed sparse rows.

    >>> rows_of_edges(np.array([0, 2, 2, 5]), 1, 4).tolist()
    [0, 2, 2]
    """
    first = int(np.searchsorted(offsets, start, side="right")) - 1
    last = int(np.searchsorted(offsets, stop, side="left"))
    bounds = np.clip(offsets[first : last + 1].astype(np.int64), start, stop)
    return np.repeat(np.arange(first, last, dtype=np.uint32), np.diff(bounds))


def expand_rows(
    offsets: NDArray, targets: NDArray[np.uint32]
) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
    """Compressed sparse rows as pairs (row, target), in batches of bounded size."""
    for start in range(0, len(targets), EDGE_BATCH):
        stop = min(start + EDGE_BATCH, len(targets))
        yield rows_of_edges(offsets, start, stop), targets[start:stop]


def _rows_by_position(
    sources: NDArray[np.uint32], targets: NDArray[np.uint32], position: NDArray[np.uint32]
) -> tuple[NDArray, NDArray[np.uint32]]:
    """Compressed sparse rows of distinct edges, neighbours by rising position."""
    n = len(position)
    bits = max(n - 1, 0).bit_length()
    keys = (sources.astype(np.uint64) << np.uint64(32)) | position[targets]
    keys = sort.radix_sort(keys, np.empty_like(keys), bits, bits)
    offsets = np.zeros(n + 1, np.uint32 if len(keys) < 2**32 else np.uint64)
    np.cumsum(np.bincount(sources, minlength=n), out=offsets[1:])
    vertex = np.empty(n, np.uint32)
    vertex[position] = np.arange(n, dtype=np.uint32)
    return offsets, vertex[keys.astype(np.uint32)]


def open_store(path: str | Path) -> Store:
    """Open a store: reads the manifest, checks the presence and size of every file.

    Raises InputError for what is no store, is of another format version, or is damaged.
    """
    path = Path(path)
    if not (path / MANIFEST).exists():
        raise InputError(f"{path}: not a store (no {MANIFEST} in it); 'delegraph build' makes one")
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {MANIFEST} is damaged; build the store again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != STORE_FORMAT:
        raise InputError(f"{path}: {MANIFEST} is not that of a delegraph store")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"{path}: store format {manifest.get('format_version')}; this delegraph reads "
            f"format {FORMAT_VERSION}: build the store again"
        )
    checksum = manifest.pop("xxh3", None)
    if checksum != _digest(manifest):
        raise InputError(f"{path}: {MANIFEST} is damaged: it does not match its checksum")
    files = {name: FileRecord.from_json(value) for name, value in manifest["files"].items()}
    for name, record in files.items():
        file = path / name
        if not file.is_file():
            raise InputError(f"{file}: missing from the store; build it again")
        if file.stat().st_size != record.bytes:
            raise InputError(
                f"{file}: damaged: {file.stat().st_size:,} bytes instead of {record.bytes:,}; "
                "build the store again"
            )
    graph = manifest["graph"]
    graph["grid"] = graph["grid"] and Grid(*graph["grid"])
    graph["degree_histogram"] = tuple(graph["degree_histogram"])
    total = sum(record.bytes for record in files.values()) + (path / MANIFEST).stat().st_size
    return Store(path, GraphInfo(**graph), files, total)
