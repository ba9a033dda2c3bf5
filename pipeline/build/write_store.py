"""Writing of a store: edges are scattered into runs, shards are built from the runs, and the
remaining files are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.arrays import Buffers
from ...kernels.base.graph import UNREACHED
from ...kernels.base.team import Team
from ...kernels.prepare.csr import SUBGRAPHS
from ...partition.disk.files import FileRecord, verify_file
from ...partition.disk.scratch import FileScratch, lost
from ...partition.disk.work import Step
from ...partition.errors import InputError
from ...partition.input.arrow import as_arrow
from ...partition.input.edges import EdgeList
from ...partition.input.id_types import type_name
from ...partition.input.sources import HeldSource, ParquetSource
from ...partition.input.weights import total_rounding
from ...partition.store import shards as build
from ...partition.store.layout import Shard, Subgraph
from ...partition.store.manifest import (
    GraphInfo,
    WeightInfo,
    stem_of,
    targets_file,
    weights_of,
)
from ...partition.store.runs import (
    FileRuns,
    MemoryRuns,
    Runs,
    Slice,
    scatter_batch,
    scatter_to_file,
    with_global_ids,
)
from ...partition.store.store import StoreWriter
from ...partition.store.vertex_table import LOOP
from ...partition.store.weighing import Weighing, weight_info
from .count import Counted
from .loops import FoundLoops
from .prepare import BuildOptions, Preparation, fingerprint_of, rows_of, tasks_of

_VERTEX_ROWS = 1 << 18


def write_store(run: Preparation, counted: Counted) -> None:
    """Scatter edges, build shards, and write the remaining files. Afterwards the output is a
    store.
    """
    layout = counted.layout
    runs = scatter(run, counted)
    shards = [shard for subgraph in layout.subgraphs for shard in subgraph.shards()]
    sizes = [int(s.subgraph.ranges.edges[s.first : s.stop].sum()) for s in shards]

    def build_all() -> Step:
        make_folders(run.output, layout.partitions)
        build_one = partial(
            build.build_shard,
            runs=runs,
            layout=layout,
            vertices=counted.order.vertices,
            folder=str(run.output),
            scratch=run.scratch,
            weighing=weighing_of(run.edges, run.options),
        )
        built = run.spread("build", build_one, shards, sizes)
        return {"files": [[record.to_json() for record in records] for records in built]}

    files = run.journal("build", build_all)["files"]

    def keys(subgraph: Subgraph) -> int:
        first = subgraph.first_bucket
        return int(runs.keys(first, first + len(subgraph.ranges)).sum())

    records = [[FileRecord.from_json(file) for file in shard_files] for shard_files in files]
    if run.work is not None and "build" in run.work.reused:
        _check_shards(run, shards, records)
    finish_store(run, counted, keys, records)


def _check_shards(
    run: Preparation, shards: Sequence[Shard], records: Sequence[Sequence[FileRecord]]
) -> None:
    """Raise LostScratchError if files that an earlier attempt has finished are damaged."""
    team = Team(run.executor.threads)
    for shard, of_shard in zip(shards, records, strict=True):
        for name, record in zip(_files_of(shard), of_shard, strict=False):
            try:
                verify_file(run.output / name, record, team)
            except InputError as error:
                raise lost(run.output / name) from error


def _files_of(shard: Shard) -> tuple[str, str]:
    """Return the names of the file of a shard's targets, and of the file of its weights, which
    exists only for a graph with weights.
    """
    name = targets_file(shard.subgraph.partition, shard.subgraph.name, shard.number)
    return name, weights_of(name)


def weighing_of(edges: EdgeList, options: BuildOptions) -> Weighing | None:
    return None if edges.weight is None else Weighing(edges.weight.kind, options.duplicates)


def make_folders(output: Path, partitions: int) -> None:
    """Make the folders of the partitions, for shards."""
    for partition in range(partitions):
        Path(output, stem_of(partition, "")).mkdir(exist_ok=True)


def finish_store(
    run: Preparation,
    counted: Counted,
    keys: Callable[[Subgraph], int],
    records: Sequence[Sequence[FileRecord]],
) -> None:
    """Write the remaining files after the shards, the manifest last.

    keys: gives the number of entries of a subgraph before duplicates were dropped. records: for
    each shard in order, the records of its targets and, if there are any, its weights. Scratch must
    hold positions and degrees of the vertices, and the counts of each shard's rows.
    """
    shards = [shard for subgraph in counted.layout.subgraphs for shard in subgraph.shards()]
    writer = StoreWriter(run.output)
    for shard, of_shard in zip(shards, records, strict=True):
        for name, record in zip(_files_of(shard), of_shard, strict=False):
            writer.add(name, record)
    need = run.plan.held(run.plan.step("vertices"))
    write = partial(_write_rest, run, counted, keys, shards)
    run.executor.step("vertices", write, [writer], need)
    run.edges.check_unchanged()


def scatter(run: Preparation, counted: Counted) -> Runs:
    table, layout = counted.table, counted.layout
    if isinstance(run.source, HeldSource):
        source = run.source
        whole = with_global_ids(layout, run.scratch)

        def scatter_held(chunk: int) -> Slice:
            segment = scatter_batch(source.held[chunk], table, whole, Buffers())
            source.let_go(chunk)
            return segment

        rows = source.chunk_rows
        return MemoryRuns(run.spread("scatter", scatter_held, list(range(len(rows))), rows))
    assert isinstance(run.scratch, FileScratch)
    tasks = tasks_of(run.source.chunk_rows)

    def scatter_all() -> Step:
        scatter_one = partial(
            _scatter_task,
            source=run.source,
            table=table,
            layout=layout,
            rows=run.plan.shape.batch_rows,
            scratch=run.scratch,
        )
        items = [(task, f"{i:05}") for i, task in enumerate(tasks)]
        roundings = run.spread("scatter", scatter_one, items, rows_of(run, tasks))
        return {"runs": [name for _, name in items], "roundings": roundings}

    scattered = run.journal("scatter", scatter_all)
    if isinstance(run.source, ParquetSource):  # weights have been read only now
        run.rounding = total_rounding(scattered["roundings"])
    return FileRuns(run.scratch, tuple(scattered["runs"]), run.edges.weight is not None)


def _scatter_task(item: tuple[list[int], str], **shared: Any) -> tuple[int, float]:
    return scatter_to_file(*item, **shared)


def _write_rest(
    run: Preparation,
    counted: Counted,
    keys: Callable[[Subgraph], int],
    shards: list[Shard],
    writer: StoreWriter,
) -> None:
    order, layout = counted.order, counted.layout
    writer.write_vertices(*_vertex_table(run, counted))
    if layout.grid is None:
        global_of_position = order.global_of_position
        positions = np.arange(layout.delegates, dtype=np.uint32)
        delegates = positions if global_of_position is None else global_of_position[positions]
        writer.write_array("delegates.npy", [delegates], np.uint32)
    written: dict[str, int] = dict.fromkeys(SUBGRAPHS, 0)
    for subgraph in layout.subgraphs:
        counts = (
            run.scratch.load(build.counts_name(shard))
            for shard in shards
            if shard.subgraph is subgraph
        )
        entries = writer.write_offsets(subgraph.partition, subgraph.name, counts, keys(subgraph))
        if subgraph.name in written:
            written[subgraph.name] += entries
    weights, loops = _weight_info(run, shards), run.loops and run.loops.vertices
    writer.finish(graph_info(run.edges, run.options, counted, written, weights, loops))


def graph_info(
    edges: EdgeList,
    options: BuildOptions,
    counted: Counted,
    entries: dict[str, int],
    weights: WeightInfo | None,
    loops: int | None = None,
) -> GraphInfo:
    """Return the graph's facts for the manifest. entries: by kind of subgraph. loops: the number of
    vertices that keep the weight of their self-loops; None if these are dropped.
    """
    order, threshold, layout = counted.order, counted.threshold, counted.layout
    rows = edges.rows
    edges_kept = sum(entries.values()) // (1 if options.directed else 2)
    return GraphInfo(
        fingerprint=fingerprint_of(edges, options),
        src=edges.src,
        dst=edges.dst,
        id_type=type_name(edges.id_type),
        directed=options.directed,
        order=options.order,
        layout=options.layout if layout.partitions > 1 else "csr",
        grid=layout.grid,
        partitions=layout.partitions,
        vertices=order.vertices,
        edges=edges_kept,
        rows=rows,
        self_loops=counted.self_loops,
        duplicates=rows - counted.self_loops - edges_kept,
        degree_histogram=order.histogram(),
        threshold=threshold.value,
        threshold_chosen_by=threshold.chosen_by,
        delegates=threshold.delegates,
        nn_row_share=threshold.nn_share,
        subgraph_edges=entries,
        weights=weights,
        loops=loops,
    )


def _weight_info(run: Preparation, shards: list[Shard]) -> WeightInfo | None:
    weighing = weighing_of(run.edges, run.options)
    if weighing is None or run.edges.weight is None:
        return None
    # Each edge counts once: reverse subgraphs, which some kinds lack, are left out.
    once = [shard for shard in shards if shard.subgraph.name in SUBGRAPHS]
    facts = (run.scratch.load(build.weights_name(shard)) for shard in once)
    counts = (int(run.scratch.load(build.counts_name(shard)).sum()) for shard in once)
    column = run.edges.weight.column
    return weight_info(column, weighing, facts, sum(counts), run.rounding)


def _vertex_table(run: Preparation, counted: Counted) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the rows of the vertex table by rising id: the user's id, global id,
    degree (and out-degree, and the weight of its self-loops).
    """
    kinds = ("degree", *(("out_degree",) if run.options.directed else ()))
    degree_type = pa.from_numpy_dtype(counted.order.distinct.dtype)
    fields = {
        "vertex": run.edges.id_type,
        "global_id": pa.uint32(),
        **dict.fromkeys(kinds, degree_type),
    }
    if run.loops is not None:
        fields[LOOP] = pa.from_numpy_dtype(run.loops.weight_type)
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields.items()])
    global_of_position = counted.order.global_of_position

    def windows() -> Iterator[list[NDArray]]:
        """Yield dense ids, positions, degrees and loops of the vertices, a window at a time."""
        for s, span in enumerate(counted.table.spans):
            positions = run.scratch.load(f"position-{s}")
            degrees = [run.scratch.load(f"{kind}-{s}") for kind in kinds]
            for first in range(0, len(span), _VERTEX_ROWS):
                window = slice(first, first + _VERTEX_ROWS)
                at = np.flatnonzero(positions[window] != UNREACHED)
                dense = (at + (span.start + first)).astype(np.uint32)
                loops = [] if run.loops is None else [_loops_of(dense, run.loops)]
                yield [dense, *(column[window][at] for column in (positions, *degrees)), *loops]

    def batches() -> Iterator[pa.RecordBatch]:
        for table in _rebatch(windows(), _VERTEX_ROWS):
            for dense, positions, *others in run.cut(table):
                numbers = positions if global_of_position is None else global_of_position[positions]
                columns = [run.decode(dense), *(as_arrow(column) for column in (numbers, *others))]
                yield pa.record_batch(columns, schema=schema)

    return schema, batches()


def _loops_of(dense: NDArray[np.uint32], found: FoundLoops) -> NDArray:
    """Return the weight of the loops of vertices, by rising dense id; 0 for none."""
    weights = np.zeros(len(dense), found.weight_type)
    if len(dense):
        ids, of_ids = found.among(range(int(dense[0]), int(dense[-1]) + 1))
        weights[np.searchsorted(dense, ids)] = of_ids
    return weights


def _rebatch(pieces: Iterator[list[NDArray]], rows: int) -> Iterator[list[NDArray]]:
    """Yield columns in pieces of ``rows`` rows, from pieces of any length. The last piece may be
    shorter.
    """
    held: list[NDArray] = []
    for piece in pieces:
        held = [np.concatenate(pair) for pair in zip(held, piece, strict=True)] if held else piece
        while len(held[0]) >= rows:
            yield [column[:rows] for column in held]
            held = [column[rows:] for column in held]
    if held and len(held[0]):
        yield held
