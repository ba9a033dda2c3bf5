"""Operations on a GPU, and the questions that are written in them, against their definitions."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import delegraph
from delegraph.kernels import reference
from delegraph.kernels.gpu.device import Device
from delegraph.kernels.gpu_pieces import intersect, spread, tally, tracing
from delegraph.kernels.gpu_programs import rows as cut_rows
from delegraph.kernels.pieces.operators import CountSum, IntegerSum, Min, Or, Spread
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms import cores, labels, strong
from delegraph.pipeline.algorithms.clustering import ClusteringProgram
from delegraph.pipeline.algorithms.cores import CoresProgram
from delegraph.pipeline.algorithms.labels import Labels
from delegraph.pipeline.algorithms.strong import CondensationProgram, StrongProgram
from delegraph.pipeline.algorithms.truss import TrussProgram
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.one_device.operations import SharedOperationsProgram
from delegraph.pipeline.engines.operations import intersect as host_intersect
from delegraph.pipeline.engines.operations.operations import Calls
from delegraph.pipeline.engines.operations.program import (
    DeviceProgram,
    EdgeOperations,
    ProgramResult,
    ReadRows,
    Tell,
)
from delegraph.pipeline.engines.operations.vectors import Counts, VectorType
from delegraph.pipeline.results.checkpoint import Checkpoint
from support.checkpoints import CutOff
from support.device_runs import ProgramRun, engine_of, run
from support.graphs import SHAPES, edges_of, graphs, store_options
from support.marks import mostly_nightly, mostly_slow, nightly, slow
from support.programs import run_program, stored
from support.wanted import (
    LABEL_WEIGHTS,
    least_of,
    truss_of,
    wanted_cores,
    wanted_labels,
    wanted_truss,
)

Stores = Callable[..., Store]


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> Stores:
    """Return a function that builds the store of a shape, once for each choice of arguments."""

    @cache
    def store_of(shape: str, directed: bool, weights: str = "", partitions: int = 1) -> Store:
        src, dst = SHAPES[shape]
        weight = LABEL_WEIGHTS[weights](np.random.default_rng(1), len(src)) if weights else None
        options = BuildOptions(directed=directed, partitions=partitions)
        return stored(tmp_path_factory.mktemp("store"), src, dst, options, weight)

    return store_of


# Spread


@dataclass(frozen=True)
class Spreads(SharedOperationsProgram):
    """A program that spreads words. start: what vertices have before. steps: for each spread, the
    vertices that have a word, and the words.
    """

    operator: Spread
    start: np.ndarray
    steps: Sequence[tuple[np.ndarray, np.ndarray]]
    along: bool
    columns = ("word",)
    rows = ReadRows.BOTH
    weighted = False

    @property
    def calls(self) -> Calls:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Calls((type(self.operator),))

    def vector_types(self) -> Sequence[VectorType]:
        return self._words, self._words

    @property
    def _words(self) -> VectorType:
        return VectorType(self.operator.unit.dtype, ghosts=True)

    def held_bytes(self, counts: Counts) -> int:
        return 0

    def run(self, operations: EdgeOperations, tell: Tell) -> ProgramResult:
        x, y = (operations.vector(self._words, self.operator.unit) for _ in range(2))
        operations.put(y, np.arange(len(self.start), dtype=np.uint32), self.start)
        listed = 0
        for vertices, words in self.steps:
            operations.put(x, vertices, words)
            before = y.own.copy()
            places = operations.where(x, self.operator.unit)
            changed = operations.spread(self.operator, x, y, self.along, places)
            if changed is not None:
                listed += 1
                found = np.flatnonzero(y.own != before)
                assert sorted(changed.own.tolist()) == found.tolist()
            x.fill(self.operator.unit, places)
        return ProgramResult({"word": y}, {"listed": listed, **operations.edge_counts()._asdict()})


_ALL = np.uint64((1 << 64) - 1)
OPERATORS: dict[str, tuple[Spread, Any]] = {
    "sum": (IntegerSum(), np.add),
    "count": (CountSum(), np.add),
    "or": (Or(np.uint64(0), np.uint64(0xFFFF)), np.bitwise_or),
    "min": (Min(_ALL, np.uint64(2)), np.minimum),
}


def check_spread(store: Store, device: Device, name: str, along: bool) -> int:
    """Check spreads of words from few vertices and from most. Returns how many spreads have listed
    what they have changed.
    """
    operator, fold = OPERATORS[name]
    n, rng, kind = store.info.vertices, np.random.default_rng(1), operator.unit.dtype
    most = 1 << {"sum": 62, "count": 31}.get(name, 16)
    start = rng.integers(0, most, n, kind)
    u, v = edges_of(store)
    ends = (u, v) if along else (v, u)
    wanted, steps = start.copy(), []
    for share in (0, 0.01, 0.1, 0.6):
        vertices = np.flatnonzero(rng.random(n) < share).astype(np.uint32)
        words = rng.integers(1, min(most, 1 << 50), len(vertices), kind)
        x = np.full(n, operator.unit)
        x[vertices] = words
        fold.at(wanted, ends[1], x[ends[0]])
        steps.append((vertices, words))
    found = run(store, Spreads(operator, start, steps, along), device)
    words = found.columns["word"]
    if name == "or":  # a row that has all bits wanted needs no more
        words, wanted = words & np.uint64(0xFFFF), wanted & np.uint64(0xFFFF)
    assert (words == wanted).all()
    return found.record["listed"]


@pytest.fixture(params=["usual", "push", "pull"])
def way(request, monkeypatch) -> str:
    """The way that words travel: pushed, pulled, or as it pays."""
    choose_way(monkeypatch, request.param)
    return request.param


def choose_way(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    if way != "usual":
        for name in ("PUSHED_FOR_SUMMED", "PUSHED_FOR_PULLED"):
            monkeypatch.setattr(spread, name, 0 if way == "push" else 1 << 40)


def cut_by(monkeypatch: pytest.MonkeyPatch, turn: int | None) -> None:
    """Cut rows by turns of this length; None: as long as the package chooses."""
    if turn is not None:
        monkeypatch.setattr(cut_rows, "_turn", lambda device, cost: turn)


@pytest.mark.parametrize("turn", [None, 4])
@pytest.mark.parametrize("along", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("shape", SHAPES)
def test_spread(device, stores, monkeypatch, way, shape, operator, directed, along, turn):
    cut_by(monkeypatch, turn)
    listed = check_spread(stores(shape, directed), device, operator, along)
    if shape == "path":
        assert listed == 1 if way == "pull" else listed > 1  # (that of no word is always listed)


# Functions of vectors

FUNCTIONS: dict[str, tuple[Any, str, int]] = {
    "copy": (cores._copy, "uint64 uint32", 1),
    "take counts": (cores._take, "uint32 uint32", 2),
    "count": (partial(cores._count, 2, True), "uint32 uint32", 0),
    "remove": (partial(cores._remove, 2, True), "uint32 uint32 uint32", 3),
    "remove of words": (partial(cores._remove, 2, True), "uint64 uint64 uint64", 3),
    "remove least": (partial(cores._remove_least, 2, True), "uint32 uint32", 1),
    "mark left": (partial(cores._mark_left, 2), "uint32 uint32", 1),
    "count left": (partial(strong._count_left, True), "uint32", 0),
    "set left": (strong._set_left, "uint64 uint32", 1),
    "trim": (partial(strong._take, True), "uint32 uint64 uint64 uint64 uint32", 4),
    "colour one": (partial(strong._colour, 1, 3), "uint64 uint64 uint32", 2),
    "take colours": (partial(strong._take_colours, True), "uint64 uint64 uint64", 3),
    "find firsts": (strong._find_firsts, "uint32 uint64 uint64 uint32", 2),
    "complete": (partial(strong._complete, True), "uint32 uint64 uint64 uint64", 3),
    "changes": (partial(labels._count_changes, True), "uint32 uint32", 0),
}
"""Functions of programs, the types of vectors, and the number of those that may change."""


def check_function(device: Device, name: str, some: bool) -> None:
    """Check that the kernel of a function gives what the function gives of NumPy's arrays. some:
    whether it is called with some places.
    """
    function, kinds, changing = FUNCTIONS[name]
    rng, n = np.random.default_rng(1), 3000
    for greatest in (False, True):
        before = [rng.integers(0, 4, n).astype(kind) for kind in kinds.split()]
        for values in before:
            if greatest and values.dtype.kind == "u":
                values[rng.random(n) < 0.3] = np.iinfo(values.dtype).max
        at = rng.permutation(n)[:700].astype(np.uint32) if some else np.arange(n)
        picked = [values[at] for values in before]
        wanted = function(*picked)
        with device.use() as cupy:
            arrays = [cupy.asarray(values) for values in before]
            places = cupy.asarray(at) if some else None
            sums = tracing.call_traced(device, function, arrays, changing, places)
            after = [array.get() for array in arrays]
        assert sums == ([] if wanted is None else np.ravel(wanted).tolist())
        for values, changed in zip(before[:changing], picked, strict=False):
            values[at] = changed
        assert all(map(np.array_equal, after, before))


@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(device, name, some):
    check_function(device, name, some)


def _by_sum(counted: Any, x: Any) -> Any:
    return x / x.sum()


def _by_size(x: Any) -> None:
    x[:] = len(x)


def _by_place(x: Any) -> None:
    x[np.arange(3)] = 0


def _of_floats(counted: Any, x: Any) -> Any:
    return x.astype(np.float64).sum()


def _other_masks(x: Any) -> None:
    x[x > 1] = x[x > 2]


def _masks_that_change(x: Any) -> None:
    mask = x > 1
    some = x[mask]
    mask &= x > 2
    x[mask] = some


UNTRACEABLE = {
    _by_sum: (True,),
    _by_size: (),
    _by_place: (),
    _of_floats: (True,),
    _other_masks: (),
    _masks_that_change: (),
}


def check_untraceable(device: Device) -> None:
    with device.use() as cupy:
        x = cupy.arange(5, dtype=np.uint64)
        for function, first in UNTRACEABLE.items():
            assert tracing.call_traced(device, partial(function, *first), [x], 1, None) is None
        floats = cupy.arange(5, dtype=np.float64)
        assert tracing.call_traced(device, cores._take, [floats, floats], 2, None) is None
        assert x.tolist() == [0, 1, 2, 3, 4]


def test_functions_that_are_not_traced(device):
    check_untraceable(device)


# Questions


def check_cores(store: Store, device: Device, checkpoint: Checkpoint | None = None) -> ProgramRun:
    wanted, rounds = wanted_cores(store)
    found = run(store, CoresProgram(), device, checkpoint)
    assert (found.columns["core"] == wanted).all()
    assert found.record["rounds"] == rounds
    return found


def check_strong(store: Store, device: Device, checkpoint: Checkpoint | None = None) -> ProgramRun:
    u, v = edges_of(store)
    find = reference.strong_components if store.info.directed else reference.components
    found = run(store, StrongProgram(store.info.directed), device, checkpoint)
    assert (least_of(found.columns["component"]) == find(u, v, store.info.vertices)).all()
    return found


def check_condensation(
    store: Store, device: Device, checkpoint: Checkpoint | None = None
) -> ProgramRun:
    found = run(store, CondensationProgram(store.info.directed), device, checkpoint)
    component = found.columns["component"]
    wanted = reference.contract(*edges_of(store), component, store.info.directed, False)
    for name, values in zip(("src", "dst", "edges"), wanted, strict=True):
        assert found.columns[name].tolist() == (values.tolist() if store.info.directed else [])
    return found


def check_labels(store: Store, device: Device, checkpoint: Checkpoint | None = None) -> ProgramRun:
    found = run(store, Labels(5).planned(store.info), device, checkpoint)
    assert (found.columns["label"] == wanted_labels(store)).all()
    return found


def check_clustering(
    store: Store, device: Device, checkpoint: Checkpoint | None = None
) -> ProgramRun:
    clustering, triangles = reference.clustering(*edges_of(store), store.info.vertices)
    found = run(store, ClusteringProgram(), device, checkpoint)
    assert found.columns["clustering"].tobytes() == clustering.tobytes()
    assert found.columns["triangles"].tolist() == triangles.tolist()
    return found


def check_truss(store: Store, device: Device, checkpoint: Checkpoint | None = None) -> ProgramRun:
    found = run(store, TrussProgram(store.info.edges), device, checkpoint)
    numbers, rounds = wanted_truss(store)
    assert truss_of(found.columns) == numbers
    assert found.record["rounds"] == rounds
    return found


CHECKS = {
    "cores": check_cores,
    "strong": check_strong,
    "labels": check_labels,
    "clustering": check_clustering,
    "truss": check_truss,
    "condensation": check_condensation,
}
PROGRAMS: dict[str, Callable[[Store], DeviceProgram]] = {
    "cores": lambda store: CoresProgram(),
    "strong": lambda store: StrongProgram(store.info.directed),
    "labels": lambda store: Labels(5).planned(store.info),
    "clustering": lambda store: ClusteringProgram(),
    "truss": lambda store: TrussProgram(store.info.edges),
    "condensation": lambda store: CondensationProgram(store.info.directed),
}


@pytest.mark.parametrize("turn", [None, 4])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CHECKS)
def test_shapes(device, stores, monkeypatch, name, shape, directed, turn):
    cut_by(monkeypatch, turn)
    CHECKS[name](stores(shape, directed), device)


@pytest.mark.parametrize("name", ["cores", "strong"])
def test_ways(device, stores, way, name):
    for directed in (False, True):
        CHECKS[name](stores("hubs", directed), device)


BOUNDS = {"usual": (256, 1024), "blocks": (32, 1024), "device memory": (40, 50)}
"""The most edges of vertices whose labels are in the table of a warp, and of a block."""


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", LABEL_WEIGHTS)
@pytest.mark.parametrize("shape", ["hubs", "star", "cliques", "two components"])
def test_tables(device, stores, monkeypatch, shape, kind, directed, bounds):
    monkeypatch.setattr(tally, "SOME", BOUNDS[bounds][0])
    monkeypatch.setattr(tally, "MANY", BOUNDS[bounds][1])
    check_labels(stores(shape, directed, kind), device)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_few_tables_in_device_memory(device, stores, monkeypatch, bounds):
    """Vertices take turns of the tables, where there is room for one alone."""
    monkeypatch.setattr(tally, "SOME", BOUNDS[bounds][0])
    monkeypatch.setattr(tally, "MANY", BOUNDS[bounds][1])
    monkeypatch.setattr(tally, "tables_bytes", lambda vertices, entries: 0)
    check_labels(stores("hubs", True, "ties"), device)


@pytest.mark.parametrize("share", [0, 0.4, 1])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("name", CHECKS)
def test_targets_in_host_memory(device, stores, name, partitions, directed, share):
    """Targets stand in host memory where the device lacks room. share: of those that have room."""
    store = stores("hubs", directed, "", partitions)
    program = PROGRAMS[name](store)
    whole = engine_of(store, program, device).need().device
    ways = 2 if directed and program.rows == ReadRows.BOTH else 1
    entries = sum(store.info.subgraph_edges.values()) * ways
    within = replace(device, memory_bytes=whole - int(4 * (1 - share) * entries))
    found = CHECKS[name](store, within)
    assert found.method == ("on a device" if share == 1 else "on a device, tiered")


def check_random(device: Device, graph: Any, options: BuildOptions, kind: str | None, way: str):
    src, dst, _, _ = graph
    if not len(src):
        return
    weight = None if kind is None else LABEL_WEIGHTS[kind](np.random.default_rng(1), len(src))
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patched:
        choose_way(patched, way)
        store = stored(Path(place), src, dst, options, weight)
        for name in OPERATORS:
            for along in (False, True):
                check_spread(store, device, name, along)
        for check in CHECKS.values():
            check(store, device)


RANDOM = {
    "graph": graphs(),
    "options": store_options(),
    "kind": st.sampled_from([None, *LABEL_WEIGHTS]),
    "way": st.sampled_from(["usual", "push", "pull"]),
}
SETTINGS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@SETTINGS
@given(**RANDOM)
def test_random_graphs(device, graph, options, kind, way):
    check_random(device, graph, options, kind, way)


LENGTHS = {"warps": (64, 64), "blocks": (1, 8), "parts of one": (4, 1)}
"""The most entries of a row that a warp takes, and those of a row that a block takes at once."""


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", ["hubs", "star", "cliques", "two components"])
def test_parts_of_rows(device, stores, monkeypatch, shape, directed, lengths):
    monkeypatch.setattr(intersect, "SHORT", LENGTHS[lengths][0])
    monkeypatch.setattr(intersect, "PART", LENGTHS[lengths][1])
    monkeypatch.setattr(intersect, "ENTRIES_AT_ONCE", 100)
    check_clustering(stores(shape, directed), device)
    check_truss(stores(shape, directed), device)


# Checkpoints

SAVING = [name for name in CHECKS if name != "truss"]


@pytest.mark.parametrize("first", ["cpu", "gpu"])
@pytest.mark.parametrize("name", SAVING)
def test_going_on(device, stores, tmp_path, monkeypatch, name, first):
    """A run goes on, on a device, from what a device or a CPU has saved."""
    for module in (cores, strong):
        monkeypatch.setattr(module, "_EDGES_AT_ONCE", 1)
    monkeypatch.setattr(intersect, "ENTRIES_AT_ONCE", 200)
    monkeypatch.setattr(host_intersect, "RANGE_BYTES", 3000)
    store, done = stores("hubs", True), list[int]()
    cut = CutOff(tmp_path / "saved", 0, "this")
    with (
        pytest.raises(Exception, match="KeyboardInterrupt")
        if first == "cpu"
        else pytest.raises(KeyboardInterrupt)
    ):
        if first == "cpu":
            run_program(store, PROGRAMS[name](store), tmp_path / "some", checkpoint=cut)
        else:
            run(store, PROGRAMS[name](store), device, cut)
    CHECKS[name](store, device, Checkpoint(tmp_path / "saved", 1000, "this", loaded=done.append))
    assert done == [2] or (name == "clustering" and 2 < done[0] < store.info.vertices)


@pytest.mark.parametrize("name", SAVING)
def test_a_cpu_goes_on(device, stores, tmp_path, monkeypatch, name):
    """A run goes on, on a CPU, from what a device has saved."""
    monkeypatch.setattr(intersect, "ENTRIES_AT_ONCE", 200)
    store, done = stores("hubs", True), list[int]()
    with pytest.raises(KeyboardInterrupt):
        run(store, PROGRAMS[name](store), device, CutOff(tmp_path / "saved", 0, "this"))
    saved = Checkpoint(tmp_path / "saved", 1000, "this", loaded=done.append)
    found, _ = run_program(store, PROGRAMS[name](store), tmp_path / "out", checkpoint=saved)
    assert len(done) == 1
    assert done[0] > 0
    wanted = CHECKS[name](store, device).columns
    assert all(found[column].tobytes() == wanted[column].tobytes() for column in wanted)


# Commands

ASKED = {"condensation": ("strong", {"condense": True})}
KEYS = {"truss": ("src", "dst"), "condensation": ("src", "dst")}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CHECKS)
def test_commands(device, edge_list, tmp_path, name, weighted, directed):
    """A store, an edge list and an open graph give on a device what they give on a CPU, and
    ``validate`` finds nothing wrong.
    """
    src, dst = SHAPES["hubs"]
    ids = np.random.default_rng(2).permutation(1 << 20)  # in another order than degrees
    columns = {"weight": np.random.default_rng(1).integers(1, 9, len(src))} if weighted else {}
    edges = edge_list(ids[src], ids[dst], **columns)
    reading: dict[str, Any] = {"directed": directed, **({"weight": "weight"} if weighted else {})}
    delegraph.build(edges, tmp_path / "graph.dg", device="cpu", **reading)
    wanted = None
    for place, device_name in itertools.product(("edges", "store"), ("cpu", "cuda")):
        graph, more = (edges, reading) if place == "edges" else (tmp_path / "graph.dg", {})
        out = tmp_path / f"{place}-{device_name}"
        function, options = ASKED.get(name, (name, {}))
        ask = partial(getattr(delegraph, function), **options)
        outcome = ask(graph, output=out, device=device_name, **more)
        assert str(outcome.record["device"]).startswith(device_name)
        assert delegraph.validate(graph, out, **more)["valid"]
        with delegraph.open(graph, device=device_name, **more) as opened:
            result = getattr(opened, function)(**options)
            assert str(result.record["device"]).startswith(device_name)
        table = pq.read_table(out)
        by = [(key, "ascending") for key in KEYS.get(name, ("vertex",))]
        table = table.sort_by(by)
        wanted = table if wanted is None else wanted
        assert table.equals(wanted)
        assert result.table.sort_by(by).equals(wanted)


def test_a_device_is_not_used_for_all(edge_list, tmp_path):
    """A command for a GPU runs on the CPU where the question has no form there, and says so."""
    edges = edge_list([1, 2], [2, 3])
    outcome = delegraph.path(edges, 1, 3, output=tmp_path / "out", device="cuda")
    assert outcome.notes == ("path does not run on GPUs: used the CPU",)
    assert outcome.record["device"] == "cpu"


def test_a_plan_uses_no_device_for_all(edge_list, tmp_path):
    delegraph.build(edge_list([1, 2], [2, 3]), tmp_path / "graph.dg", device="cpu")
    plan = delegraph.plan(tmp_path / "graph.dg", algorithm="path", device="cuda")
    assert plan.notes == ("path does not run on GPUs: used the CPU",)
    assert plan.device is None


@pytest.mark.nightly
def test_several_devices_are_not_used_for_all(edge_list, tmp_path):
    edges = edge_list(*SHAPES["path"])
    delegraph.build(edges, tmp_path / "graph.dg", partitions=2, device="cpu")
    outcome = delegraph.labels(
        tmp_path / "graph.dg", output=tmp_path / "out", device="cuda", workers=2
    )
    assert "labels does not run on GPUs of several workers yet: used CPUs" in outcome.notes
    assert outcome.record["device"] == "cpu"


# On an emulated device


@pytest.mark.parametrize(
    ("way", "operator", "directed"),
    [
        ("push", "sum", True),
        slow("pull", "sum", True),
        slow("push", "or", False),
        slow("pull", "or", False),
        slow("push", "min", True),
        ("pull", "min", True),
    ],
)
def test_emulated_spread(emulated, stores, monkeypatch, way, operator, directed):
    choose_way(monkeypatch, way)
    test_spread(emulated[0], stores, monkeypatch, way, "path", operator, directed, True, 4)


@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("name", mostly_slow(FUNCTIONS, "remove"))
def test_emulated_functions(emulated, name, some):
    check_function(emulated[0], name, some)


def test_emulated_functions_that_are_not_traced(emulated):
    check_untraceable(emulated[0])


@pytest.mark.parametrize(
    ("name", "directed"),
    [slow("cores", True), slow("strong", False), slow("strong", True), ("labels", True)],
)
def test_emulated(emulated, stores, monkeypatch, name, directed):
    test_shapes(emulated[0], stores, monkeypatch, name, "two components", directed, 4)


@pytest.mark.parametrize(
    ("shape", "kind", "directed", "bounds"),
    [
        slow("two components", "floats", True, "usual"),
        slow("hubs", "ties", True, "device memory"),
        nightly("hubs", "great", False, "blocks"),
        nightly("star", "far apart", False, "usual"),
    ],
)
def test_emulated_tables(emulated, stores, monkeypatch, shape, kind, directed, bounds):
    test_tables(emulated[0], stores, monkeypatch, shape, kind, directed, bounds)


@pytest.mark.parametrize(
    ("shape", "directed", "lengths"),
    [
        ("cliques", True, "blocks"),
        slow("hubs", True, "blocks"),
        slow("hubs", False, "blocks"),
        slow("cliques", True, "warps"),
        slow("cliques", False, "parts of one"),
        nightly("hubs", True, "parts of one"),
    ],
)
def test_emulated_parts_of_rows(emulated, stores, monkeypatch, shape, directed, lengths):
    test_parts_of_rows(emulated[0], stores, monkeypatch, shape, directed, lengths)


@pytest.mark.nightly
def test_emulated_few_tables(emulated, stores, monkeypatch):
    test_few_tables_in_device_memory(emulated[0], stores, monkeypatch, "device memory")


@pytest.mark.parametrize("name", mostly_nightly(CHECKS))
def test_emulated_tiers(emulated, stores, name):
    test_targets_in_host_memory(emulated[0], stores, name, 1, True, 0.4)


@pytest.mark.parametrize("first", ["cpu", "gpu"])
@pytest.mark.parametrize("name", mostly_nightly(SAVING))
def test_emulated_going_on(emulated, stores, tmp_path, monkeypatch, name, first):
    test_going_on(emulated[0], stores, tmp_path, monkeypatch, name, first)


@pytest.mark.parametrize("name", [nightly("cores"), nightly("labels"), slow("clustering")])
def test_a_cpu_goes_on_from_an_emulated_device(emulated, stores, tmp_path, monkeypatch, name):
    test_a_cpu_goes_on(emulated[0], stores, tmp_path, monkeypatch, name)


@pytest.mark.nightly
@SETTINGS
@given(**RANDOM)
def test_emulated_random_graphs(emulated, graph, options, kind, way):
    check_random(emulated[0], graph, options, kind, way)


@pytest.mark.parametrize("name", mostly_nightly(CHECKS))
def test_emulated_commands(emulated, edge_list, tmp_path, name):
    test_commands(emulated[0], edge_list, tmp_path, name, True, True)
