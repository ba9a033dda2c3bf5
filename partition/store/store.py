"""The store: a prepared graph in a folder.

    manifest.json                     facts of the graph, and every file with its checksums
    vertices.parquet                  vertex, global_id, degree (and out_degree, loop), by rising id
    delegates.npy                     global id of each delegate; in the delegate layout
    partition-0000/nn.offsets.npy     each subgraph in compressed sparse rows (layout.py, grid.py)
    partition-0000/nn.targets-0000.npy ...   its targets, in shards of whole rows
    partition-0000/nn.weights-0000.npy ...   their weights, if there are any, float32 or uint32

The manifest is written last; a folder without one is no store. The same input and parameters give
the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from ...kernels.base.graph import Graph, rows_of_edges
from ...kernels.base.numbering import Numbering, by_table, renumber_all
from ...kernels.base.team import Team
from ..disk.files import (
    ArrayWriter,
    FileRecord,
    Values,
    read_array_block,
    read_array_into,
    read_verified,
    record_of,
    verify_file,
    wrong_contents,
)
from ..disk.outputs import MANIFEST, write_file
from ..disk.system_errors import parquet_writer
from ..disk.urls import refuse_remote
from ..input.arrow import as_numpy
from .layout import kept_subgraphs, numberings, offsets_dtype
from .manifest import (
    DELEGATES,
    VERTICES,
    GraphInfo,
    encode_manifest,
    offsets_file,
    shards_of,
    weights_of,
)
from .manifest_check import read_manifest
from .vertex_table import KeptLoops, read_id_order, read_loops, read_vertices
from .whole import WholeGraph, in_one_partition, merged_rows

EDGE_BATCH = 1 << 22
"""Number of edges in memory that a thread checks at once."""

_WINDOW = 1 << 18


class StoreWriter:
    """A writer of a store's files into a folder; ``finish`` writes the manifest.

    Tasks write the targets, a shard each; ``add`` takes the records of their files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, FileRecord] = {}

    def add(self, name: str, record: FileRecord) -> None:
        self._files[name] = record

    def write_vertices(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        path = self._folder / VERTICES
        with parquet_writer(path, schema, use_dictionary=False, compression="zstd") as writer:
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
        """Write a subgraph's offsets from its rows' counts, piece by piece. Returns the number of
        its edges.
        """
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

        self.write_array(offsets_file(partition, name), pieces(), dtype)
        return end

    def finish(self, info: GraphInfo) -> None:
        write_file(self._folder / MANIFEST, encode_manifest(info, self._files))


class EdgeBlock(NamedTuple):
    """Targets (uint32) of a subgraph from entry ``first`` on, with the offsets of all its rows.
    rows, ends: numberings from its rows, and from its targets, to global ids.
    """

    offsets: NDArray
    first: int
    targets: NDArray[np.uint32]
    rows: Numbering
    ends: Numbering


@dataclass(frozen=True)
class Store:
    """An open store: its manifest was read, and every file is there with its size."""

    path: Path
    info: GraphInfo
    files: dict[str, FileRecord]
    bytes: int

    def holds_the_same(self, other: Store) -> bool:
        """Return whether another store has equal files, by their checksums."""
        return self.info == other.info and self.files == other.files

    def vertices(self, team: Team, columns: Sequence[str]) -> pa.Table:
        """Return columns of the vertex table, with a row for each vertex, by rising user id."""
        path = self.path / VERTICES
        data = read_verified(path, self.files[VERTICES], team)
        return read_vertices(path, data, self.info, columns, team)

    def id_order(self, team: Team) -> NDArray[np.uint32]:
        """Return the global ids of all vertices by rising user id: uint32 (vertices,)."""
        path = self.path / VERTICES
        verify_file(path, self.files[VERTICES], team)
        return read_id_order(path, self.info)

    def loops(self, team: Team) -> KeptLoops | None:
        """Return the self-loops that the store keeps; None if it keeps none."""
        if not self.info.loops:
            return None
        path = self.path / VERTICES
        verify_file(path, self.files[VERTICES], team)
        return read_loops(path, self.info)

    def loop_batches(self, team: Team) -> Iterator[tuple[NDArray, ...]]:
        """Yield the self-loops that the store keeps as a batch of edges, with weights if the graph
        has any.
        """
        kept = self.loops(team)
        if kept is not None:
            ends = kept.vertices, kept.vertices
            yield ends if self.info.weights is None else (*ends, kept.weights)

    def shards(self, partition: int, name: str) -> list[str]:
        """Return the files of a subgraph's targets, in the order of their rows."""
        return shards_of(self.files, partition, name)

    @property
    def largest_shard(self) -> int:
        """Return the bytes of the largest file of targets."""
        return max(
            (record.bytes for name, record in self.files.items() if ".targets-" in name), default=0
        )

    def offsets(self, partition: int, name: str, team: Team) -> NDArray:
        """Return the offsets of a subgraph. Raises InputError for damage, or if they do not fit the
        subgraph's targets.
        """
        file, rows = offsets_file(partition, name), self.info.rows_of(partition, name)
        offsets = np.empty(rows.stop + 1, self.offsets_type(partition, name))
        read_array_into(self.path / file, self.files[file], offsets, team)
        edges = self.entries(partition, name)
        if offsets[rows.start] or offsets[-1] != edges or not _rising(offsets, team):
            what = f"the offsets do not rise from 0 to its {edges:,} targets"
            raise wrong_contents(self.path / file, what)
        return offsets

    def offsets_type(self, partition: int, name: str) -> np.dtype:
        """Return the type of a subgraph's offsets, which follows from the size of their file: for a
        known number of rows, each type gives another size.
        """
        entries = self.info.rows_of(partition, name).stop + 1
        record = self.files[offsets_file(partition, name)]
        return np.dtype(f"u{record.length(np.uint8) // entries}")

    def offsets_types(self) -> set[np.dtype]:
        """Return the types of the offsets of all subgraphs."""
        return {
            self.offsets_type(p, name)
            for p in range(self.info.partitions)
            for name in kept_subgraphs(self.info.grid, self.info.directed)
        }

    def targets(self, partition: int, name: str) -> Values:
        """Return the values that a subgraph's files of targets may hold."""
        return Values(np.dtype(np.uint32), self.info.targets_of(partition, name))

    def read_shard(
        self, partition: int, name: str, file: str, buffer: NDArray[np.uint32], team: Team
    ) -> NDArray[np.uint32]:
        """Read one of a subgraph's files of targets into the first elements of ``buffer``, and
        return these.
        """
        record, allowed = self.files[file], self.info.targets_of(partition, name)
        shard = buffer[: record.length(np.uint32)]
        read_array_into(self.path / file, record, shard, team, allowed)
        return shard

    def subgraph(self, partition: int, name: str, team: Team) -> tuple[NDArray, NDArray]:
        """Return the offsets and the targets of a subgraph."""
        offsets = self.offsets(partition, name, team)
        targets = np.empty(int(offsets[-1]), np.uint32)
        at = 0
        for file in self.shards(partition, name):
            at += len(self.read_shard(partition, name, file, targets[at:], team))
        return offsets, targets

    def weights(self, partition: int, name: str, team: Team) -> NDArray[np.uint32]:
        """Return the bits of the weights of a subgraph's targets; (0,) for a graph without
        weights.
        """
        if self.info.weights is None:
            return np.empty(0, np.uint32)
        bits = np.empty(self.entries(partition, name), np.uint32)
        at = 0
        for file in self.shards(partition, name):
            at += len(self.read_weights(file, bits[at:], team))
        return bits

    def read_weights(self, file: str, buffer: NDArray[np.uint32], team: Team) -> NDArray[np.uint32]:
        """Read the bits of the weights that belong to a file of targets, as read_shard reads
        targets.
        """
        record = self.files[weights_of(file)]
        bits = buffer[: record.length(np.uint32)]
        read_array_into(self.path / weights_of(file), record, bits.view(self.weight_type), team)
        return bits

    def entries(self, partition: int, name: str) -> int:
        """Return the number of targets of a subgraph."""
        return sum(self.files[file].length(np.uint32) for file in self.shards(partition, name))

    @property
    def weight_type(self) -> np.dtype:
        assert self.info.weights is not None
        return np.dtype(self.info.weights.kind)

    def delegates(self, team: Team) -> NDArray[np.uint32]:
        """Return the global id of each delegate; (0,) in a grid. Raises InputError for damage, and
        for ids that are not distinct vertices or, in the order by degree, not the first ones.
        """
        info, path = self.info, self.path / DELEGATES
        if info.grid is not None:
            return np.empty(0, np.uint32)
        delegates = np.empty(info.delegates, np.uint32)
        read_array_into(path, self.files[DELEGATES], delegates, team, range(info.vertices))
        in_order = delegates if info.order == "degree" else np.sort(delegates)
        if (in_order[1:] <= in_order[:-1]).any() or (
            info.order == "degree" and len(delegates) and delegates[-1] >= len(delegates)
        ):
            raise wrong_contents(path, "the delegates are not the vertices of highest degree")
        return delegates

    def edge_blocks(
        self, team: Team, partitions: Iterable[int] | None = None
    ) -> Iterator[list[Callable[[], EdgeBlock]]]:
        """Yield, for each subgraph, functions that read its blocks, which any thread may call. The
        blocks together have all edges (of ``partitions``; None for all): undirected edges in both
        directions, directed edges once.

        The offsets of one subgraph are held, and those of the next one while it is being read.
        """
        info = self.info
        table = by_table(self.delegates(team))
        for p in range(info.partitions) if partitions is None else partitions:
            for name in kept_subgraphs(info.grid, directed=False):
                numbered = numberings(p, name, info.partitions, info.grid, table)
                offsets, values = self.offsets(p, name, team), self.targets(p, name)
                blocks: list[Callable[[], EdgeBlock]] = []
                at = 0
                for file in self.shards(p, name):
                    record = self.files[file]
                    read = partial(self._edge_block, file, values, offsets, at, numbered)
                    blocks += [partial(read, k) for k in range(len(record.xxh3))]
                    at += record.length(np.uint32)
                yield blocks

    def _edge_block(
        self,
        file: str,
        values: Values,
        offsets: NDArray,
        at: int,
        numbered: tuple[Numbering, Numbering],
        k: int,
    ) -> EdgeBlock:
        first, targets = read_array_block(self.path / file, self.files[file], values, k)
        return EdgeBlock(offsets, at + first, targets, *numbered)

    def edge_batches(
        self, team: Team, partitions: Iterable[int] | None = None
    ) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
        """Yield the edges of ``edge_blocks`` as (sources, targets) by global id, a block at a
        time.
        """
        for blocks in self.edge_blocks(team, partitions):
            for read in blocks:
                offsets, first, targets, rows, ends = read()
                sources = rows_of_edges(offsets, first, first + len(targets))
                yield renumber_all(rows, sources), renumber_all(ends, targets)

    def weighted_batches(
        self, team: Team
    ) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray]]:
        """Yield the batches of ``edge_batches`` with weights, in the store's type. Both are cut
        into the same blocks.
        """
        subgraphs = [
            (p, name)
            for p in range(self.info.partitions)
            for name in kept_subgraphs(self.info.grid, directed=False)
        ]
        batches, kind = self.edge_batches(team), Values(self.weight_type)
        for subgraph in subgraphs:
            for file in map(weights_of, self.shards(*subgraph)):
                for k in range(len(self.files[file].xxh3)):
                    _, weights = read_array_block(self.path / file, self.files[file], kind, k)
                    yield *next(batches), weights

    def graph(self, team: Team) -> Graph:
        """Return the whole graph by global id. Several partitions are merged into one graph."""
        if self.info.partitions > 1:
            return self.merged(team).graph()
        forward = self.subgraph(0, "nn", team)
        if not self.info.directed:
            return Graph.undirected(*forward)
        return Graph(*forward, *self.subgraph(0, "reverse-nn", team))

    def merged(self, team: Team, weighted: bool = False) -> WholeGraph:
        """Return the whole graph, merged from several partitions, with or without weights."""
        if weighted:
            batches = [
                (*ends, weights.view(np.uint32)) for *ends, weights in self.weighted_batches(team)
            ]
        else:
            batches = list(self.edge_batches(team))
        rows = merged_rows(batches, self._order(team), self.info.directed)
        return WholeGraph(in_one_partition(self.info), rows, self.id_order, self.loops)

    def _order(self, team: Team) -> NDArray[np.uint32]:
        """Return the global ids by falling degree, ties by user id."""
        if self.info.order == "degree":
            return np.arange(self.info.vertices, dtype=np.uint32)
        table = self.vertices(team, ["global_id", "degree"])
        degree = as_numpy(table["degree"]).astype(np.int64)
        return as_numpy(table["global_id"])[np.argsort(-degree, kind="stable")]


def _rising(offsets: NDArray, team: Team) -> bool:
    def rise(first: int) -> bool:
        window = offsets[first : first + _WINDOW + 1]
        return bool((window[1:] >= window[:-1]).all())

    return all(team.map(rise, range(0, len(offsets), _WINDOW)))


def open_store(path: str | Path) -> Store:
    """Open a store: read and check the manifest, and check that every file is there with its size.

    Raises InputError for a path that is no store, a store of another format version, and damage.
    """
    refuse_remote(path, "a store must be on a disk of this machine: copy it there")
    return Store(Path(path), *read_manifest(Path(path)))
