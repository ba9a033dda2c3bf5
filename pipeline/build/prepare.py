"""Preparation: from an edge list to the files of a store, step by step.

    encode, ids   a dictionary, if ids are no dense integers
    loops         the weights of self-loops, if they are kept
    degrees       of all vertices
    order         positions by falling degree
    threshold     between normal vertices and delegates (delegate layout only)
    scatter       edges into runs of keys grouped by bucket
    build         shards of the subgraphs
    vertices      the vertex table, offsets, manifest

A small graph is read once and held in memory between steps. A larger graph goes through scratch
files, step by step within the plan; an attempt that was cut off resumes after its last finished
step. Tasks and the store's bytes are the same in both cases.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict, Unpack, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...partition.dictionary import on_disk as dictionary
from ...partition.disk.memory import return_freed_memory
from ...partition.disk.scratch import FileScratch, MemoryScratch, Scratch
from ...partition.disk.work import Step, Work
from ...partition.errors import InputError, LimitError, check_choice
from ...partition.input import ids
from ...partition.input.arrow import as_arrow, text_cuts
from ...partition.input.edges import EdgeList
from ...partition.input.id_types import is_string
from ...partition.input.ids import Ids
from ...partition.input.sources import EdgeSource, HeldSource, ParquetSource, share_out
from ...partition.input.weights import Duplicates, LoopsChoice, Rounding, total_rounding
from ...partition.numbers import check_whole
from ...partition.store import shards
from ...partition.store.grid import Grid, LayoutName, grid_of, parse_grid
from ...partition.store.layout import MAX_PARTITIONS, default_partitions
from ...partition.store.order import Order
from ...partition.store.weighing import Weighing
from ..run.execute import Executor
from ..run.plan import Budget, Facts, Plan, Shape, check_space
from ..run.resources import as_plain
from .loops import FoundLoops, combine_loops, pick_loops
from .plan import facts_of, make_plan, with_ranges
from .read import dense_domain, read_edges, with_bounds

_LOOPS_KEPT = "loops"
"""The part of a graph's fingerprint that tells that self-loops are kept."""

IN_MEMORY_ROWS = 1 << 27
"""Most rows for each thread of a graph that is prepared in memory, which takes up to half a minute.
Larger graphs use files even if memory would do, so that a run of minutes can be resumed.
"""

MOST_IN_MEMORY = 1 << 30
"""Most rows of a graph that is prepared in memory, by any number of threads."""

ALWAYS_PARTITIONS, ROWS_A_PARTITION = 64, 1 << 10
"""Bounds on partitions: a graph may have ALWAYS_PARTITIONS in any case, and more if each has
ROWS_A_PARTITION rows.
"""

IN_MEMORY = Shape(batch_rows=1 << 20, in_memory=True)

TASK_ROWS = 1 << 23
"""Number of rows for each task that writes a run."""

_VERTEX_ROWS = 1 << 18


@dataclass(frozen=True)
class BuildOptions:
    """The user's choices about a store.

    partitions: None for the default, which depends on the number of rows. threshold: vertices of
    higher degree are delegates; None for the automatic threshold. layout, grid: see
    partition/store/grid.py; for 2d, None for the squarest grid. weight: a column of weights to
    keep. duplicates: which weight an edge gets that several rows repeat. loops: whether self-loops
    are dropped, or their weight is kept for each vertex.
    """

    directed: bool = False
    src: str = "src"
    dst: str = "dst"
    partitions: int | None = None
    threshold: int | None = None
    order: Order = "degree"
    layout: LayoutName = "delegate"
    grid: Grid | None = None
    weight: str | None = None
    duplicates: Duplicates = "min"
    loops: LoopsChoice = "drop"

    def __post_init__(self) -> None:
        if not isinstance(self.directed, bool):
            raise InputError(f"directed is True or False, not {self.directed!r}")
        for name in ("partitions", "threshold"):
            check_whole(name, getattr(self, name), 1)
        if self.partitions is not None and self.partitions > MAX_PARTITIONS:
            raise InputError(f"at most {MAX_PARTITIONS:,} partitions, not {self.partitions:,}")
        check_choice("order", self.order, get_args(Order))
        check_choice("layout", self.layout, get_args(LayoutName))
        if self.layout != "delegate" and self.threshold is not None:
            raise InputError(
                f"layout {self.layout} has no delegates: leave out --threshold, or --layout"
            )
        self._check_grid()
        if self.src == self.dst:
            raise InputError(f"src and dst are both column {self.src!r}: an edge has two ends")
        if self.weight in (self.src, self.dst):
            raise InputError(
                f"column {self.weight!r} holds the ends of edges: give another column of weights"
            )
        check_choice("duplicates", self.duplicates, get_args(Duplicates))
        check_choice("loops", self.loops, get_args(LoopsChoice))
        if self.duplicates != "min" and self.weight is None:
            raise InputError(
                f"--duplicates {self.duplicates} needs weights: give their column with --weight"
            )

    def _check_grid(self) -> None:
        grid = self.grid
        if grid is None:
            return
        if self.layout != "2d":
            raise InputError(f"a grid ({grid}) is only for --layout 2d, not {self.layout}")
        if min(grid) < 1 or grid.partitions > MAX_PARTITIONS:
            raise InputError(f"a grid has 1 to {MAX_PARTITIONS:,} partitions, not {grid}")
        if self.partitions not in (None, grid.partitions):
            raise InputError(
                f"a grid of {grid} has {grid.partitions} partitions, not {self.partitions}: leave "
                "out --partitions, or --grid"
            )

    @property
    def keeps_loops(self) -> bool:
        return self.loops == "keep"

    @property
    def shapes_store(self) -> bool:
        """Return whether any option of the store's shape was chosen: options other than those of
        reading the input.
        """
        chosen = (self.partitions, self.threshold, self.order, self.layout)
        return chosen != (None, None, "degree", "delegate")

    def places_for(self, rows: int) -> tuple[int, Grid | None]:
        """Return the number of partitions of a graph of ``rows`` input rows, and their grid; None
        for the layout of delegates.

        Raises InputError for partitions that would hold hardly any rows, since each partition has
        files of its own.
        """
        partitions = self.grid.partitions if self.grid else self.partitions
        most = max(ALWAYS_PARTITIONS, rows // ROWS_A_PARTITION)
        if partitions and partitions > most:
            raise InputError(
                f"{partitions:,} partitions are too many for {rows:,} rows: give at most {most:,}"
            )
        partitions = partitions or default_partitions(rows)
        return partitions, grid_of(self.layout, partitions, self.grid)


def fingerprint_of(edges: EdgeList, options: BuildOptions) -> str:
    """Return the fingerprint of the graph that an edge list becomes with these options, which is
    equal for every store and every result of the graph. It depends on the input, on the direction,
    on whether self-loops are kept and, if there are weights, on the treatment of duplicates.
    """
    kind = "directed" if options.directed else "undirected"
    loops = [_LOOPS_KEPT] if options.keeps_loops else []
    duplicates = [options.duplicates] if edges.weight else []
    return "-".join([edges.fingerprint, kind, *loops, *duplicates])


def tells_of_loops(fingerprint: str) -> bool:
    """Return whether a fingerprint is of a graph that keeps self-loops."""
    return _LOOPS_KEPT in fingerprint.split("-")


class StoreOptions(TypedDict, total=False):
    """Options of reading and storing an edge list, by the names of the commands' options. A grid
    may be text such as "3x2", a threshold a number or "auto".
    """

    directed: bool
    src: str
    dst: str
    partitions: int | None
    threshold: int | str | None
    order: Order
    layout: LayoutName
    grid: Grid | str | None
    weight: str | None
    duplicates: Duplicates
    loops: LoopsChoice


def build_options_of(**options: Unpack[StoreOptions]) -> BuildOptions:
    """Return the build's options. Raises InputError for a bad grid, or for options that exclude
    each other.
    """
    values: dict[str, Any] = {name: as_plain(value) for name, value in options.items()}
    grid = values.get("grid")
    if isinstance(grid, str):
        values["grid"] = parse_grid(grid)
    elif isinstance(grid, Sequence) and len(grid) == 2:
        sides = [as_plain(side) for side in grid]
        for side in sides:
            check_whole("a side of the grid", side)
        values["grid"] = Grid(*sides)
    if values.get("threshold") == "auto":
        values["threshold"] = None
    return BuildOptions(**values)


@dataclass
class Preparation:
    """A build in progress.

    work: None if all data stay in memory (held.py). plan: for the remaining steps; made anew when
    more has been counted. decode: the user ids of dense ids. characters: the bytes of string ids
    with dense ids from the first argument up to, but without, the second. rounding: of weights,
    known once all weights have been read. loops: the self-loops that are kept, once they are found;
    None if they are dropped. journal: runs a step, or returns its result from an earlier attempt.
    """

    edges: EdgeList
    options: BuildOptions
    executor: Executor
    work: Work | None
    plan: Plan
    source: EdgeSource
    scratch: Scratch
    decode: Callable[[NDArray[np.uint32]], pa.Array]
    characters: Callable[[int, int], NDArray[np.int64]]
    rounding: Rounding = field(default_factory=Rounding)
    loops: FoundLoops | None = None

    @property
    def output(self) -> Path:
        """Return the folder of the store."""
        assert self.work is not None
        return self.work.output

    @property
    def in_memory(self) -> bool:
        return self.plan.shape.in_memory

    def journal(self, name: str, run: Callable[[], Step]) -> Step:
        if self.in_memory:
            return run()
        assert self.work is not None
        self.edges.check_unchanged()
        before = len(self.work.reused)
        given = self.work.step(name, run)
        if len(self.work.reused) > before:
            self.executor.reused(name)
        return given

    def cut(self, table: list[NDArray]) -> Iterator[list[NDArray]]:
        """Yield columns of a range of vertices, dense ids first, in the pieces that text_cuts
        makes.
        """
        dense = table[0]
        if not is_string(self.edges.id_type):
            yield table
            return
        first, last = int(dense[0]), int(dense[-1])
        for start, stop in pairwise(text_cuts(self.characters(first, last + 1)[dense - first])):
            yield [column[start:stop] for column in table]

    def spread(self, name: str, task: Callable, items: list, sizes: Sequence[int] | None = None):
        """Run the tasks of a step of the plan in the executor's pool."""
        step = self.plan.step(name)
        need = self.plan.held(step)
        results = self.executor.spread(name, task, items, need, step.at_once, sizes)
        if not self.in_memory:
            return_freed_memory()
        return results


def _shape_of(work: Work) -> Shape | None:
    """Return the shape of an earlier attempt, whose counts by span stay valid; None if there was
    none.
    """
    degrees = work.given("degrees")
    return None if degrees is None else Shape(degrees["spans"], degrees["batch_rows"])


def plan_ahead(
    edges: EdgeList,
    options: BuildOptions,
    budget: Budget,
    through_files: bool,
    shape: Shape | None = None,
) -> Plan:
    """Plan by the input's metadata alone, with upper bounds. Raises LimitError if nothing fits.

    shape: the shape of an earlier attempt, which must be used again; None for any.
    """
    return _choose_plan(facts_ahead(edges, options), budget, edges, through_files, shape)


def facts_ahead(edges: EdgeList, options: BuildOptions, closely: bool = True) -> Facts:
    """Return the facts of the graph that follow from the input's metadata alone. closely: as in
    facts_of.
    """
    by_degree, places = options.order == "degree", options.places_for(edges.rows)
    facts = facts_of(edges, dense_domain(edges), options.directed, by_degree, *places, closely)
    return replace(facts, keeps_loops=options.keeps_loops)


def fits_in_memory(rows: int, threads: int) -> bool:
    """Return whether this many rows are prepared in memory, if the limit allows it.

    >>> [fits_in_memory(1 << 28, threads) for threads in (1, 2)], fits_in_memory(1 << 31, 64)
    ([False, True], False)
    """
    return rows <= min(threads * IN_MEMORY_ROWS, MOST_IN_MEMORY)


def _choose_plan(
    facts: Facts,
    budget: Budget,
    edges: EdgeList,
    through_files: bool,
    shape: Shape | None,
) -> Plan:
    tasks = len(tasks_of(tuple(chunk.rows for chunk in edges.chunks())))
    small = fits_in_memory(facts.rows, budget.threads)
    if small and not shape and not through_files and not budget.workers:
        with contextlib.suppress(LimitError):  # if it does not fit, plan with files
            return make_plan(facts, budget, tasks, IN_MEMORY)
    return make_plan(facts, budget, tasks, shape)


def begin(
    edges: EdgeList,
    options: BuildOptions,
    executor: Executor,
    budget: Budget,
    work: Work,
    through_files: bool,
    only_counting: bool = False,
) -> Preparation:
    """Begin a build: read the edges into memory, or make sure that they can be read several
    times.
    """
    edges = with_bounds(edges, executor)
    plan = plan_ahead(edges, options, budget, through_files, _shape_of(work))
    work.disk_bytes = plan.scratch_bytes + plan.final_bytes
    executor.pool.check_sees(work.scratch, [file.path for file in edges.files])
    if not work.began and not only_counting:
        check_space([(work.output, plan.final_bytes), (work.scratch, plan.scratch_bytes)])
    source: EdgeSource
    scratch: Scratch
    rounding = Rounding()
    domain = dense_domain(edges)
    if plan.shape.in_memory:
        dense = read_edges(edges, executor, plan.held(plan.step("read")))
        source, scratch = HeldSource(dense.batches, dense.ids.domain), MemoryScratch()
        decode, characters = decoder(dense.ids), dense.ids.characters
        rounding = dense.rounding
    else:
        return_freed_memory()
        scratch = FileScratch(str(work.scratch))
        if domain is not None:
            source = ParquetSource(edges, tuple(edges.chunks()), domain)
            numbering = Ids(edges.id_type, domain, None)
            decode, characters = decoder(numbering), numbering.characters
        else:
            encoded, rounding = _encode(edges, executor, plan, work, scratch)
            source = encoded
            decode = partial(encoded.decode, id_type=edges.id_type)
            characters = encoded.characters
            n = encoded.domain
            assert plan.facts is not None
            facts = replace(plan.facts, domain=n, vertices=n, exact=True)
            if facts.reading.distinct:
                text = facts.reading._replace(distinct=encoded.text_bytes)
                facts = replace(facts, reading=text)
            plan = _choose_plan(facts, budget, edges, through_files=True, shape=_shape_of(work))
    run = Preparation(
        edges, options, executor, work, plan, source, scratch, decode, characters, rounding
    )
    if options.keeps_loops and not only_counting:
        run.loops = find_loops(run)
    return run


def find_loops(run: Preparation) -> FoundLoops:
    """Find the self-loops in one pass over the edges, and combine their weights."""
    weight = run.edges.weight
    weighing = None if weight is None else Weighing(weight.kind, run.options.duplicates)

    def loops() -> Step:
        tasks = tasks_of(run.source.chunk_rows)
        pick_one = partial(
            pick_loops,
            source=run.source,
            scratch=run.scratch,
            rows=run.plan.shape.batch_rows,
            weighted=weight is not None,
        )
        items = [(task, f"{i:05}") for i, task in enumerate(tasks)]
        picked = run.spread("loops", pick_one, items, rows_of(run, tasks))
        names = [name for of_task in picked for name in of_task]
        firsts, vertices = combine_loops(names, run.source.domain, run.scratch, weighing)
        return {"firsts": firsts, "vertices": vertices}

    found = run.journal("loops", loops)
    return FoundLoops(run.scratch, found["firsts"], found["vertices"], weight and weight.kind)


def decoder(numbering: Ids) -> Callable[[NDArray[np.uint32]], pa.Array]:
    return lambda dense: numbering.decode(as_arrow(dense))


def _encode(
    edges: EdgeList, executor: Executor, plan: Plan, work: Work, scratch: FileScratch
) -> tuple[dictionary.EncodedSource, Rounding]:
    none = Ids(edges.id_type, 0, None)
    run = Preparation(
        edges,
        BuildOptions(),
        executor,
        work,
        plan,
        HeldSource([], 0),
        scratch,
        as_arrow,
        none.characters,
    )
    chunks = edges.chunks()

    def encode() -> Step:
        encoded = run.spread(
            "encode",
            partial(_encode_chunk, edges, scratch),
            list(enumerate(chunks)),
            [chunk.rows for chunk in chunks],
        )
        batches, roundings = zip(*encoded, strict=True)
        return {"batches": batches, "roundings": roundings}

    encoded = run.journal("encode", encode)
    batches = encoded["batches"]
    names = [f"{c}-{b}" for c, rows in enumerate(batches) for b in range(len(rows))]

    def merge() -> Step:
        ranges = dictionary.cut_dictionary(scratch, names, edges.id_type)
        run.plan = with_ranges(run.plan, ranges)
        merge_one = partial(
            dictionary.merge_range, scratch=scratch, batches=names, id_type=edges.id_type
        )
        return {"distinct": run.spread("ids", merge_one, list(range(len(ranges))))}

    distinct = run.journal("ids", merge)["distinct"]
    bases = np.cumsum([0, *distinct]).tolist()
    ids.check_size(bases[-1])
    places = tuple(tuple(rows) for rows in batches), tuple(bases)
    source = dictionary.EncodedSource(scratch, *places, edges.weight is not None)
    return source, total_rounding(encoded["roundings"])


def _encode_chunk(
    edges: EdgeList, scratch: FileScratch, item: tuple
) -> tuple[list[int], tuple[int, float]]:
    number, chunk = item
    rounding = Rounding()
    rows = dictionary.encode_chunk(edges, chunk, number, scratch, rounding)
    return rows, rounding.as_tuple()


def tasks_of(chunk_rows: tuple[int, ...]) -> list[list[int]]:
    return share_out(chunk_rows, max(1, sum(chunk_rows) // TASK_ROWS))


def rows_of(run: Preparation, tasks: list[list[int]]) -> list[int]:
    return [sum(run.source.chunk_rows[c] for c in task) for task in tasks]


def compile_tasks(id_type: pa.DataType, rows: int, weighted: bool, load: bool = True) -> None:
    """Compile the kernels that a build of ``rows`` input rows calls. load: see compile_kernels."""
    ids.compile_reading(id_type)
    shards.compile_build(rows, weighted, load)
