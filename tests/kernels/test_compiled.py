"""Kernels compiled beforehand are all that a run calls: no kernel waits for a compiler at work."""

from __future__ import annotations

import gc
import json
import subprocess
import sys

import numpy as np
import pytest
from numba import types

import delegraph
from delegraph.kernels.base import bitmap, compiled
from delegraph.kernels.base.compiled import OFFSETS, compile_kernels, kernel, u32s, u64s, variants
from delegraph.pipeline.questions import FORMS
from support.graphs import random_edges
from support.marks import drawn, partly_nightly

CALLS = """
import sys
from pathlib import Path
import numpy as np
import delegraph
from delegraph.kernels.base import bitmap, compiled, lookup, sort
from delegraph.kernels.bfs import check, cpu, edges, pull, push, scan
from delegraph.kernels.judging import distances, programs as judges
from delegraph.kernels.pieces import gather, product
from delegraph.kernels.pieces.operators import FOLDS
from delegraph.kernels.programs import forest, paths, relax
from delegraph.kernels.prepare import csr, ingest, positions, rows
from delegraph.partition.input import ids
from delegraph.partition.store import shards
from delegraph.pipeline.algorithms import sssp
from delegraph.pipeline.algorithms.validate import compile_judging
from delegraph.pipeline.engines.operations import operations, products

folder, path = Path(sys.argv[1]), sys.argv[2]
modules = bitmap, sort, lookup, check, pull, push, scan, csr, ingest, positions, rows
programs = gather, forest, distances, judges, product, paths, relax
compile_judging([np.dtype(np.uint32)])
cpu.compile_search(np.uint32)
edges.compile_edge_search(1000)
shards.compile_build(1000, weighted=True)
ids.compile_reading(delegraph.partition.input.edges.open_edges(path, "src", "dst").id_type)
everything = operations.Calls(tuple(FOLDS), (relax, paths, forest))
operations.warm_up([np.dtype(np.uint32)], everything)
products.compile_search(np.uint32)
before = compiled.variants(*modules)
declared = compiled.variants(*programs)
assert max(before.values()) == 1, before
directed, grid = {"directed": True, "partitions": 3}, {"layout": "1d", "partitions": 2}
for number, options in enumerate([{}, directed, {"order": "random"}, grid]):
    store = folder / f"{number}.dg"
    delegraph.build(path, store, threads=2, **options)
    files = folder / f"{number}-files.dg"
    delegraph.build(path, files, threads=2, scratch=str(folder), **options)
    delegraph.bfs(store, 0, output=folder / f"{number}", threads=2)
    assert delegraph.validate(store, folder / f"{number}")["valid"]
for number in range(4):
    delegraph.pipeline.api.bench_ablation(folder / f"{number}.dg", sources=2, threads=2)
for budget in (8, 0):
    delegraph.pipeline.engines.host.scan.SCAN_BUDGET = budget
    delegraph.bfs(path, 0, output=folder / f"scanned-{budget}", threads=2)
for name in ("components", "pagerank", "betweenness", "closeness", "eccentricity"):
    run = getattr(delegraph, name)
    for i, graph in enumerate([folder / "0.dg", folder / "1.dg", path]):
        run(graph, output=folder / f"{name}-{i}", threads=2)
        assert delegraph.validate(graph, folder / f"{name}-{i}")["valid"]
for i, options in enumerate([{}, directed]):
    store = folder / f"weighted-{i}.dg"
    delegraph.build(path, store, weight="weight", threads=2, **options)
    for few in (sssp._FEW_VERTICES, 0):
        sssp._FEW_VERTICES = few
        delegraph.sssp(store, "0", output=folder / f"sssp-{i}-{few}", threads=2)
        assert delegraph.validate(store, folder / f"sssp-{i}-{few}")["valid"]
for together in (False, True):
    for i, graph in enumerate([folder / "0.dg", folder / "1.dg", path]):
        out = folder / f"{together}-{i}"
        delegraph.bfs(graph, output=out, sources=[0, 1], together=together, threads=2)
        assert delegraph.validate(graph, out)["valid"]
assert compiled.variants(*programs) == declared
after = compiled.variants(*modules)
assert after == before, {name: n for name, n in after.items() if n != before[name]}
"""


@pytest.mark.parametrize(
    "id_type", partly_nightly(["int32", "int64", "uint16", "string"], "int32", "uint16")
)
def test_nothing_is_compiled_later(edge_list, tmp_path, id_type):
    rng = np.random.default_rng(1)
    src, dst = rng.integers(0, 300, (2, 3000))
    src[0] = 0
    ends = [end.astype(str).tolist() if id_type == "string" else end for end in (src, dst)]
    path = edge_list(*ends, id_type=id_type, weight=rng.integers(1, 9, len(src)))
    command = [sys.executable, "-c", CALLS, tmp_path, path]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


CALLED = """
import sys
import delegraph
from delegraph.kernels.base import compiled

wanted, kernels, declared_wanted = set(), {}, compiled._wanted

def watch(*args):
    for dispatcher, signature in declared_wanted(*args):
        wanted.add((id(dispatcher), tuple(map(str, signature))))
        yield dispatcher, signature

compiled._wanted = watch
name, graph, out, options = sys.argv[1], sys.argv[2], sys.argv[3], eval(sys.argv[4])
getattr(delegraph, name)(graph, output=out, threads=2, device="cpu", **options)
for module, declarations in compiled._declared.items():
    for dispatcher, _ in declarations:
        for signature in dispatcher.signatures:
            called = id(dispatcher), tuple(map(str, signature))
            assert called in wanted, (module, dispatcher.__name__, signature)
"""

ON_DISK = """
import delegraph.pipeline.engines.table as table
rows = table.StoreRows
table.StoreRows = lambda store, subject, threads, place, *more: (
    rows(store, subject, threads, "disk", *more)
)
"""

LEVELS_ON_DISK = """
from delegraph.pipeline.algorithms import contractions
contractions.Contractions.fits = lambda *given: False
"""

QUESTIONS = {
    "components": {},
    "pagerank": {},
    "closeness": {"sources": 70},
    "eccentricity": {"sources": 2},
    "betweenness": {"sources": 5},
    "sssp": {"source": 0},
    "bfs": {"sources": [0, 1], "together": True},
}
LATER = {
    "hits": {},
    "katz": {},
    "labels": {},
    "leiden": {},
    "cores": {},
    "degree": {},
    "strong": {"condense": True},
    "clustering": {},
    "truss": {},
    "forest": {},
    "path": {"source": 1, "target": 2, "nodes": True},
}
"""Questions that are asked nightly only."""


PLACES = ["edges", "one", "several", "disk"]


@pytest.mark.parametrize(
    ("name", "directed", "place"),
    drawn(
        28, QUESTIONS, [False, True], PLACES, usual=lambda *of: of == ("pagerank", False, "edges")
    ),
)
def test_a_question_calls_what_it_has_compiled(edge_list, tmp_path, name, directed, place):
    """The kernels that a question says it calls are all that it calls, wherever its graph is."""
    src, dst = random_edges(3, 3000, 20_000)
    if directed and not FORMS[name].on_directed:
        pytest.skip(f"{name} is a question of undirected graphs")
    options = {"directed": directed}
    if name == "sssp":
        options["weight"] = "w"
    graph = edge_list(src, dst, w=np.arange(len(src)) % 9)
    if place != "edges":
        partitions = 1 if place == "one" else 3
        delegraph.build(graph, tmp_path / "graph.dg", partitions=partitions, **options)
        graph, options = tmp_path / "graph.dg", {}
    code = (ON_DISK if place == "disk" else "") + CALLED
    asked = repr({**(QUESTIONS | LATER)[name], **options})
    command = [sys.executable, "-c", code, name, graph, tmp_path / "out", asked]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", LATER)
def test_later_questions_call_what_they_have_compiled(edge_list, tmp_path, name, directed, place):
    test_a_question_calls_what_it_has_compiled(edge_list, tmp_path, name, directed, place)


@pytest.mark.nightly
@pytest.mark.parametrize("weighted", [False, True])
def test_levels_on_disk_call_what_is_compiled(edge_list, tmp_path, weighted):
    """Levels of communities on disk call operations, also where the graph itself is in memory."""
    src, dst = random_edges(3, 3000, 20_000)
    graph, columns = edge_list(src, dst, weight=np.arange(len(src)) % 9), "weight" * weighted
    code = [sys.executable, "-c", LEVELS_ON_DISK + CALLED, "leiden", graph, tmp_path / "out"]
    run = subprocess.run([*code, repr({"weight": columns or None})], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    record = json.loads((tmp_path / "out.run.json").read_text())
    assert record["levels"][1]["on_disk"]


def test_each_type_is_a_variant():
    @kernel(OFFSETS, u32s)
    def last(offsets, targets):
        return offsets[-1]

    compile_kernels(sys.modules[__name__], offsets={np.uint32, np.uint64})
    assert [str(array.dtype) for array, _ in last.signatures] == ["uint32", "uint64"]
    assert all(isinstance(array, types.Array) for array, _ in last.signatures)


def test_the_collector_is_as_before():
    """Two threads that compile at once, the first of which ends first, leave the collector's
    thresholds as they were.
    """
    before = gc.get_threshold()
    first, second = compiled._few_collections(), compiled._few_collections()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() != before
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before


def test_python_calls_kernels_alone():
    """A function that only kernels call has no code for Python, before and after compiling."""
    from delegraph.kernels.base.turns import come, no_turns

    for _ in range(2):
        with pytest.raises(TypeError, match="come is for kernels alone"):
            come(no_turns(1))
        come.compile((types.int64[::1],))


def test_a_type_that_is_not_told():
    with pytest.raises(KeyError, match="offsets"):
        compile_kernels(sys.modules[__name__])


@pytest.mark.parametrize("load", [True, False])
def test_what_is_there_is_not_looked_for_again(monkeypatch, load):
    compile_kernels(bitmap, load=load)
    monkeypatch.setattr(
        compiled, "_is_kept", lambda dispatcher, signature: pytest.fail("looked for")
    )
    compile_kernels(bitmap, load=load)


def test_variants_are_counted():
    compile_kernels(bitmap)
    compile_kernels(bitmap)
    assert variants(bitmap)["delegraph.kernels.base.bitmap.difference"] == 1


def test_declarations_that_do_not_fit():
    """A kernel is declared for as many types as it takes arguments, and once as one that makes no
    arrays.
    """

    def count(values, places):
        return values.shape[0] + places.shape[0]

    with pytest.raises(TypeError, match="count takes 2 arguments, not 1"):
        kernel(u32s)(count)
    declared = kernel(u32s, u32s, allocates=False)(count)
    with pytest.raises(TypeError, match="next to the function"):
        kernel(u64s, u64s, allocates=False)(declared)
