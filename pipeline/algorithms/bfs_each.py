"""Breadth-first search from several sources, each by itself: a row for each vertex that each source
reaches.

64 searches share a pass (many_sources.py). For each vertex 64 bytes of distances are held, one bit
of all searches in a word: distances have eight bits while no search goes deeper than that; then
half as many searches at once have distances of twice as many bits. The results of one batch of
searches are written before the next batch begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.together import DIGITS
from ...kernels.gpu.device import Device
from ...kernels.gpu_programs import searches as on_device
from ...kernels.gpu_programs.rows import ProgramGraph
from ...kernels.pieces.gather import count_bits
from ...kernels.pieces.operators import Or
from ...kernels.programs import hops
from ...partition.disk.digests import find_damage
from ...partition.input.arrow import load_functions
from ...partition.input.edges import EdgeList
from ...partition.store.manifest import GraphInfo
from ...partition.store.store import Store
from ..build.plan import id_width
from ..build.prepare import BuildOptions, facts_ahead
from ..engines.engine import Subject
from ..engines.host.disk import most_writing_bytes
from ..engines.host.programs import DeferredProgram
from ..engines.operations.forests import EdgeCounts
from ..engines.operations.operations import Calls, Operations
from ..engines.operations.program import Program, ProgramEngine, ProgramResult, ReadRows, Tell
from ..engines.operations.saving import Saving
from ..engines.operations.vectors import Counts, Vector, VectorType
from ..engines.ranks.edges import Rows
from ..engines.table import program_of_edges, programs_of_store
from ..results.by_source import (
    InBits,
    Plain,
    RowsBySource,
    part_name,
    remove_files,
    write_rows,
)
from ..results.checkpoint import Checkpoint
from ..results.names import Names
from ..results.result import Option
from ..results.weights import NamedVertices, digest_of
from ..run.execute import Executor, Progress
from ..run.plan import Facts, check_space, held_now
from .bfs import check_depth
from .many_sources import SOURCE_BYTES, searches_record, some_places, sources_by_id
from .run import Answer, Run, files_at_once
from .searches import Searches, search_apart, sums_bytes

_HELD_BITS = 512
"""Number of bits for the distances of a vertex, of all searches together."""

_SUMS = ("files", "reached", "depth", "edges", "read", "sent")
"""Facts that are added up over batches; for depth, the greatest one is taken."""


@dataclass(frozen=True)
class DistanceBits:
    """The program: distances from each of ``sources`` (global ids, at most ``width(bits)``).

    bits: the number of bits of a distance. If a distance has all bits set, or is greater, no values
    are given, and the record says ``deeper``. max_depth: levels at most; None for all. apart:
    whether searches were apart before. Values: ``reached``, words with a bit for each source, and
    ``bit0``, ``bit1`` and so on, the bits of distances. If searches were apart, which the record
    says: ``distance0`` and so on. If all have to search again, for more bits or apart: no values.
    """

    sources: NDArray[np.uint32]
    bits: int
    max_depth: int | None = None
    apart: bool = False
    weighted = wants_degrees = scans_once = False
    rows = ReadRows.BY_SOURCE
    calls = Calls((Or,), (hops, count_bits))

    @property
    def columns(self) -> Sequence[str]:
        return "reached", *(f"bit{i}" for i in range(self.bits))

    def held_bytes(self, counts: Counts) -> int:
        return distances_bytes(counts)

    def run(self, operations: Operations, tell: Tell) -> ProgramResult:
        rows = operations.rows_along(True)
        given = None if self.apart else self._together(operations, rows, tell)
        if given is None:
            assert rows is not None
            given = self._apart(operations, rows, tell)
        return ProgramResult(given.values, {**operations.edge_counts()._asdict(), **given.record})

    def _together(
        self, operations: Operations, rows: Rows | None, tell: Tell
    ) -> ProgramResult | None:
        """Search together. Returns None if searches seldom meet and there are ``rows`` to search
        apart.
        """
        searches = Searches(operations)
        bits: list[Vector] = []
        reached, depth = len(self.sources), 0
        for level, new in islice(searches.levels(self.sources, along=True), self.max_depth):
            if rows is not None and not searches.meet:
                return None
            if level + 1 >> self.bits:
                return ProgramResult({}, {"deeper": True, "apart": False})
            while level >> len(bits):
                bits.append(operations.vector(VectorType(f"u{width(self.bits) // 8}")))
            has = [vector for i, vector in enumerate(bits) if level >> i & 1]
            frontier, places = searches.frontier, searches.reached
            operations.each(_add, *has, reads=[frontier], places=places)
            tell(level, level + 1, f"level {level}")
            reached += int(new.sum())
            depth = level
        given = {"reached": searches.seen, **{f"bit{i}": bit for i, bit in enumerate(bits)}}
        record = {"deeper": False, "apart": False, "reached": reached, "depth": depth}
        return ProgramResult(given, record)

    def _apart(self, operations: Operations, rows: Rows, tell: Tell) -> ProgramResult:
        shape = len(self.sources), operations.graph.vertices
        distances = list(np.empty(shape, f"u{self.bits // 8}"))

        def tell_done(done: int) -> None:
            tell(done, len(self.sources), f"of the batch {done}")

        found = search_apart(operations, rows, self.sources, distances, self.max_depth, tell_done)
        if found is None:
            return ProgramResult({}, {"deeper": True, "apart": True})
        reached, depth = sum(h.reached for h in found), max(h.farthest for h in found)
        given = {f"distance{i}": distance for i, distance in enumerate(distances)}
        return ProgramResult(
            given, {"deeper": False, "apart": True, "reached": reached, "depth": depth}
        )

    def device_bytes(self, vertices: int, entries: int) -> int:
        return on_device.device_bytes(vertices, entries, distances=True)

    def compile_on(self, graph: ProgramGraph) -> None:
        on_device.warm_up(graph)

    def run_on(self, graph: ProgramGraph, saving: Saving, tell: Tell) -> ProgramResult:
        del saving  # batches are saved
        if not len(self.sources):  # of a rank, where there are fewer than ranks
            none = np.zeros(0, on_device.HOPS)
            return ProgramResult(
                {}, {**EdgeCounts()._asdict(), "apart": self.apart, **_of_hops(none)}
            )
        searches, given = on_device.GpuSearches(graph, len(self.sources), distances=True), None
        if not self.apart and self.bits == DIGITS:
            given = self._together_on(searches)
        if given is None:
            given = self._apart_on(searches, tell)
        return ProgramResult(
            given.values, {**EdgeCounts(edges=searches.edges)._asdict(), **given.record}
        )

    def _together_on(self, searches: on_device.GpuSearches) -> ProgramResult | None:
        """Search together on a device. Returns None if searches seldom meet."""
        met = searches.together(self.sources, self.max_depth)
        if met.outcome == on_device.SELDOM_MEET:
            return None
        if met.outcome == on_device.DEEPER:
            return ProgramResult({}, {"deeper": True, "apart": False})
        from ..engines.one_device.found import DeviceValues  # CPUs do without

        assert met.bits is not None
        words = {"reached": met.reached, **{f"bit{i}": bit for i, bit in enumerate(met.bits)}}
        values = {name: DeviceValues(searches.device, some) for name, some in words.items()}
        return ProgramResult(values, {"apart": False, **_of_hops(met.hops)})

    def _apart_on(self, searches: on_device.GpuSearches, tell: Tell) -> ProgramResult:
        from ..engines.one_device.found import DeviceValues

        kind = np.dtype(f"u{self.bits // 8}")
        distances: dict[str, DeviceValues | NDArray] = {}

        def take(i: int, distance: Any) -> None:
            few = distance.astype(kind)  # the greatest one stays so
            kept = DeviceValues(searches.device, few) if searches.keeps else few.get()
            distances[f"distance{i}"] = kept
            tell(i + 1, len(self.sources), f"of the batch {i + 1}")

        nowhere = int(np.iinfo(kind).max)
        hops = searches.apart(self.sources, self.max_depth, take, nowhere)
        if hops is None:
            return ProgramResult({}, {"deeper": True, "apart": True})
        return ProgramResult(distances, {"apart": True, **_of_hops(hops)})

    def of_rank(self, rank: int, ranks: int) -> DistanceBits:
        return replace(self, sources=np.array_split(self.sources, ranks)[rank])

    def put_together(self, given: ProgramResult, next_result: ProgramResult) -> ProgramResult:
        """Join the results of two parts of the sources. next_result: of the sources that follow."""
        given_record, next_record = given.record, next_result.record
        record = {**given_record, "edges": given_record["edges"] + next_record["edges"]}
        if next_record.get("sources") == 0:
            return ProgramResult(given.values, record)
        for name in ("deeper", "apart"):
            record[name] = given_record[name] or next_record[name]
        if (
            not (given.values and next_result.values)
            or given_record["apart"] != next_record["apart"]
        ):
            return ProgramResult({}, record)
        first, values = given_record["sources"], dict(given.values)
        if record["apart"]:
            values |= {
                f"distance{first + i}": distance
                for i, distance in enumerate(next_result.values.values())
            }
        else:
            for name, words in next_result.values.items():
                moved = np.asarray(words)
                moved <<= np.uint64(first)
                if name in values:
                    moved |= np.asarray(values[name])
                values[name] = moved
        for name, fold in (("sources", sum), ("reached", sum), ("depth", max)):
            record[name] = fold((given_record[name], next_record[name]))
        return ProgramResult(values, record)


def _of_hops(hops: NDArray) -> dict[str, Any]:
    """Return facts of searches, by source."""
    reached, depth = int(hops["reached"].sum()), int(hops["farthest"].max(initial=0))
    return {"deeper": False, "sources": len(hops), "reached": reached, "depth": depth}


def first_batch(places: NDArray[np.uint32], max_depth: int | None) -> DistanceBits:
    """Return the first batch. No other batch holds more memory."""
    return DistanceBits(places[: width(DIGITS)], DIGITS, max_depth)


def width(bits: int) -> int:
    """Return the number of searches at once whose distances have ``bits`` bits.

    >>> [width(bits) for bits in (8, 16, 32)]
    [64, 32, 16]
    """
    return _HELD_BITS // bits


def kept_bytes(sources: int) -> int:
    """Return the bytes of each vertex, where what all batches find is kept."""
    return -(-sources // width(DIGITS)) * _HELD_BITS // 8


def _add(*words_and_frontier: NDArray) -> None:
    *bits, frontier = words_and_frontier
    for words in bits:
        np.bitwise_or(words, frontier, out=words, casting="unsafe")


def distances_bytes(counts: Counts) -> int:
    return _HELD_BITS // 8 * (counts.own + counts.shared) + sums_bytes(counts)


@dataclass(frozen=True)
class BfsEach:
    """The algorithm (run.py) of searches from each source. max_depth: as in DistanceBits."""

    sources: NamedVertices
    max_depth: int | None = None
    name = "bfs-each"
    step = "source"
    weighted = False

    def __post_init__(self) -> None:
        check_depth(self.max_depth)

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        named = digest_of(self.sources.read(id_type).vertex)
        return {"sources": named, "max_depth": self.max_depth}

    def check(self, names: Names) -> None:
        """Check nothing: sources are looked up with the program."""

    def held_bytes(self, facts: Facts) -> int:
        counts = Counts(facts.vertices, facts.vertices, 0, 0)
        return distances_bytes(counts) + SOURCE_BYTES * facts.vertices + most_writing_bytes(facts)

    def engines(
        self, store: Store, subject: Subject, device: Device | None, threads: int
    ) -> Sequence[ProgramEngine]:
        writing = subject.writing_bytes(1)  # while the graph is held
        program = self._first(subject.names)
        return programs_of_store(store, subject, program, threads, writing, device)

    def engines_of_edges(
        self, edges: EdgeList, choices: BuildOptions, device: Device | None, executor: Executor
    ) -> Sequence[ProgramEngine]:

        def program(names: Names, info: GraphInfo) -> Program:
            return self._first(names)

        def holds(counts: Counts) -> int:
            return distances_bytes(counts) + SOURCE_BYTES * counts.vertices + writing

        facts = facts_ahead(edges, choices, closely=False)
        writing = most_writing_bytes(facts)  # while the graph is held
        asked = DeferredProgram(program, holds, DistanceBits.calls)
        return program_of_edges(edges, choices, device, executor, asked)

    def on_workers(self, store: Store, subject: Subject, run: Run) -> ProgramEngine:
        from ..engines.workers.client import WorkersEngine  # Dask is not needed otherwise

        place = store, subject, run.resources, run.options.threads, run.work.scratch, run.notes
        return WorkersEngine(*place, self._first(subject.names))

    def _first(self, names: Names) -> DistanceBits:
        _, places = sources_by_id(self.sources, names)
        return first_batch(places, self.max_depth)

    def run(self, engine: ProgramEngine, checkpoint: Checkpoint, run: Run) -> Answer:
        """Go on after the last batch that was saved. Files of later batches are written anew, and
        all files are if one of an earlier batch is damaged.
        """
        assert engine.subject is not None
        with run.clock.phase("load"):
            ids, places = sources_by_id(self.sources, engine.subject.names)
        done, bits = 0, DIGITS
        sums = no_sums()
        digests: list[str] = []
        saved = checkpoint.load_state({})
        if saved and parts_are_whole(saved.facts["parts"], run):
            checkpoint.go_on_from(saved.done)
            done, bits, sums = saved.done, saved.facts["bits"], saved.facts["sums"]
            digests = saved.facts["parts"]
        remove_files(run.work.output, sums["files"])
        extra_bytes = search_extra_bytes(engine.subject, run, engine.subject.writing_bytes(1))
        batches = self.batches(
            engine, ids, places, run.executor.progress, sums, done, bits, extra_bytes
        )
        for done, bits, rows in batches:
            with run.clock.phase("write"):
                digests += write_batch(engine.subject, rows(), sums["files"], run)
                sums["files"] = len(digests)
            if checkpoint.due() and done < len(ids):
                run.work.sync()
                checkpoint.save_state(done, {}, {"bits": bits, "sums": sums, "parts": digests})
        return self.answer(len(ids), engine.method, sums)

    def batches(
        self,
        engine: ProgramEngine,
        ids: pa.Array,
        places: NDArray[np.uint32],
        progress: Progress | None,
        sums: dict[str, Any],
        done: int = 0,
        bits: int = DIGITS,
        extra_bytes: int = 0,
    ) -> Iterator[tuple[int, int, Callable[[], RowsBySource]]]:
        """Yield, batch by batch, the number of sources done, the bits of distances, and a function.
        The function, which may be called once, returns the results of the batch in the order of a
        result.

        ids, places: of all sources, by rising id. sums: facts over batches, which are continued.
        extra_bytes: bytes that may be held beside the memory of a batch.
        """
        assert engine.subject is not None
        apart = False
        while done < len(ids):
            span = slice(done, done + width(bits))
            tell = partial(_tell, progress, done, len(ids))
            program = DistanceBits(places[span], bits, self.max_depth, apart)
            given = engine.run(None, tell, program, extra_bytes)
            apart = given.record["apart"]
            for name in ("edges", "read", "sent"):
                sums[name] += given.record[name]
            if given.record["deeper"]:
                bits *= 2
            if not given.values:
                continue
            sums["reached"] += given.record["reached"]
            sums["depth"] = max(sums["depth"], given.record["depth"])
            done = min(span.stop, len(ids))
            yield done, bits, partial(_rows, engine.subject.names, ids[span], given)

    def answer(self, sources: int, method: str, sums: dict[str, Any]) -> Answer:
        record = searches_record(sources, self.max_depth, method, ProgramResult({}, sums))
        return Answer((), {"searches": record})


def _tell(
    progress: Progress | None, done: int, count: int, level: int, levels: int, last: str
) -> None:
    """Report progress. done: the number of sources done, of ``count``. level, levels: not told, as
    a batch has as many levels as it takes.
    """
    if progress:
        progress(f"search: sources {done}, {last}", done, count)


def search_extra_bytes(subject: Subject, run: Run, beside: int) -> int:
    """Return the bytes that are left once the graph is loaded. beside: bytes held for other
    purposes.
    """
    n = subject.record["vertices"]
    held = distances_bytes(Counts(n, n, 0, 0)) + SOURCE_BYTES * n + beside
    return max(0, run.resources.limit - held_now() - held)


def no_sums() -> dict[str, Any]:
    return dict.fromkeys(_SUMS, 0)


def _rows(names: Names, ids: pa.Array, given: ProgramResult) -> RowsBySource:
    values = {name: np.asarray(array) for name, array in given.values.items()}
    if given.record["apart"]:
        return RowsBySource(names, ids, Plain(list(values.values())))
    return RowsBySource(names, ids, InBits(values.pop("reached"), list(values.values())))


def parts_are_whole(digests: list[str], run: Run) -> bool:
    """Return whether the files of an earlier attempt are as that attempt has written them. If they
    are not, the user is told.
    """
    parts = {part_name(number): wanted for number, wanted in enumerate(digests)}
    damage = find_damage(run.work.output, parts)
    if damage is not None:
        run.notes.append(f"{damage}: all sources are searched again")
    return damage is None


def write_batch(subject: Subject, rows: RowsBySource, first: int, run: Run) -> list[str]:
    """Write the results of a batch into files from number ``first`` on. Returns the files'
    digests.
    """
    run.work.disk_bytes = rows.count * (2 * id_width(subject.names.id_type) + 4)
    check_space([(run.work.output, run.work.disk_bytes)], scratch=False)
    at_once, need = files_at_once(subject, len(rows.parts), run)
    step = partial(run.executor.step, "write", projected_bytes=need, at_once=at_once)
    return write_rows(run.work.output, rows, run.info, first, step)


def planned(info: GraphInfo) -> DistanceBits:
    """Return the program for a plan: a batch of all vertices."""
    load_functions()  # as where sources are looked up
    return first_batch(some_places(info.vertices), None)
