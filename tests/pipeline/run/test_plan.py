"""Memory limits are planned and kept, or refused with the least limit that would do."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.partition.disk import memory
from delegraph.partition.errors import InputError
from delegraph.partition.store.grid import Grid
from delegraph.partition.store.layout import default_partitions
from delegraph.pipeline.build import plan
from delegraph.pipeline.engines.engine import CODE_BYTES
from support.graphs import random_edges
from support.marks import nightly, partly_nightly, slow
from support.outputs import distances_of
from support.processes import command, peak_of

MB = 10**6


@pytest.fixture(scope="module")
def graphs(tmp_path_factory) -> dict[str, Path]:
    """Return edge lists large enough for their arrays to show beside the libraries."""
    return EdgeLists(tmp_path_factory.mktemp("plan"))


class EdgeLists(dict):
    """Paths of edge lists by name; each file is written at its first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __missing__(self, name: str) -> Path:
        ends = [*random_edges(3, 1_500_000, 3_000_000)]
        if name == "sparse":
            ends = [end * -987_654_321_012 for end in ends]
        elif name == "strings":
            ends = [np.char.add("vertex ", end.astype(str)) for end in ends]
        elif name == "heavy":
            ends = [*random_edges(4, 200_000, 8_000_000)]
        elif name == "blocks":  # of 100 vertices, with few edges between them
            src, other = random_edges(5, 200_000, 6_000_000)
            is_inside = np.arange(len(src)) % 20 > 0
            ends = [src, np.where(is_inside, src - src % 100 + other % 100, other)]
        if name == "weighted":
            ends = [*random_edges(4, 200_000, 5_000_000)]
            ends.append(np.random.default_rng(4).random(len(ends[0]), np.float32))
        elif name == "looped":  # one self-loop or more at nearly every vertex
            src, other = random_edges(4, 2_000_000, 5_000_000)
            src = np.where(np.arange(len(src)) % 2, src, np.arange(len(src)) % 2_000_000)
            ends = [src, np.where(np.arange(len(src)) % 2, other, src)]
            ends.append(np.random.default_rng(4).random(len(src), np.float32))
        path = self[name] = self.folder / f"{name}.parquet"
        table = pa.table(dict(zip(("src", "dst", "w"), map(pa.array, ends), strict=False)))
        pq.write_table(table, path, row_group_size=500_000)
        return path


def run(*args) -> subprocess.CompletedProcess:
    return subprocess.run(command(*args), capture_output=True, text=True)


def least_limit(*args) -> int:
    """Return the limit that a refusal of a limit of 1 MB asks for."""
    outcome = run(*args, "--memory-limit", "1MB")
    assert outcome.returncode == 2, outcome.stderr
    match = re.search(r"step '(\w+)' needs .* --memory-limit ([\d.]+[MG]B) or more", outcome.stderr)
    assert match, outcome.stderr
    return memory.parse_bytes(match[2])


OPTIONS = {
    "plain": (),
    "partitions": ("--partitions", 3),
    "directed": ("--directed", "--order", "random", "--partitions", 2),
    "grid": ("--directed", "--order", "random", "--layout", "2d", "--grid", "3x1"),
}
WEIGHTS = ("--weight", "w", "--duplicates", "sum")


IDS = ("dense", "sparse", "strings")
BUILDS = [
    *(("plain", name) for name in IDS),
    *(("directed", "dense"), ("directed", "strings")),
]


@pytest.mark.parametrize(
    ("options", "name"),
    partly_nightly(
        [*BUILDS, ("grid", "sparse"), ("weights", "weighted"), ("loops", "looped")], *BUILDS[1:]
    ),
)
def test_the_least_limit_is_enough_and_is_kept(graphs, tmp_path, name, options):
    chosen = OPTIONS.get(options, WEIGHTS)
    if options == "loops":
        chosen = (*WEIGHTS, "--loops", "keep")
    # Through files, too, so that all is compiled: a process that compiles holds more.
    unlimited = ("build", graphs[name], "-o", tmp_path / "wanted.dg", "--scratch", tmp_path)
    assert run(*unlimited, *chosen).returncode == 0
    args = ("build", graphs[name], "-o", tmp_path / "graph.dg", *chosen)
    limit = least_limit(*args) + 2 * MB  # what a process holds before any work varies a little
    outcome = run(*args, "--memory-limit", limit)
    assert outcome.returncode == 0, outcome.stderr
    record = json.loads((tmp_path / "graph.dg.run.json").read_text())["plan"]
    assert record["memory_limit_bytes"] == limit
    assert record["measured_peak_bytes"] <= limit
    assert record["projected_peak_bytes"] <= limit
    assert record["measured_peak_bytes"] >= record["projected_peak_bytes"] / 2
    manifests = [
        (tmp_path / f"{which}.dg/manifest.json").read_bytes() for which in ("graph", "wanted")
    ]
    assert manifests[0] == manifests[1]


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
def test_a_search_keeps_its_limit(graphs, tmp_path, options):
    store = tmp_path / "graph.dg"
    assert (
        run(
            "build",
            graphs["heavy"],
            "-o",
            store,
            *(
                {**OPTIONS, "weights": WEIGHTS, "blocks": ("--layout", "2d", "--grid", "3x1")}[
                    options
                ]
            ),
        ).returncode
        == 0
    )
    args = ("bfs", store, "--source", 0, "-o")
    limit = least_limit(*args, tmp_path / "out") + 2 * MB
    run(*args, tmp_path / "compiled", "--memory-limit", limit)  # a process that does holds more
    records = {}
    for name, bound in (("streamed", limit), ("loaded", 10_000 * MB)):
        outcome = run(*args, tmp_path / name, "--memory-limit", bound)
        assert outcome.returncode == 0, outcome.stderr
        records[name] = json.loads((tmp_path / f"{name}.run.json").read_text())
        planned = run("plan", store, "--memory-limit", bound, "--json")
        assert json.loads(planned.stdout)["in_memory"] == (name == "loaded"), planned.stderr
    assert records["streamed"]["search"]["method"] == "push-pull, streamed"
    assert records["loaded"]["search"]["method"] == "push-pull"
    assert sum(step["bytes_read"] for step in records["streamed"]["supersteps"]) > 0
    assert distances_of(tmp_path / "streamed") == distances_of(tmp_path / "loaded")
    peak = records["streamed"]["plan"]["measured_peak_bytes"]
    assert records["streamed"]["plan"]["projected_peak_bytes"] / 2 <= peak <= limit


@pytest.mark.slow
def test_a_search_of_very_many_levels_keeps_its_limit(tmp_path):
    path, ends = tmp_path / "path.parquet", np.arange(500_000)
    pq.write_table(pa.table({"src": ends[:-1], "dst": ends[1:]}), path)
    line = command("bfs", path, "--source", 0, "-o", tmp_path / "out")
    assert peak_of(line)[0] == 0  # compiles, and holds more
    limit = least_limit("bfs", path, "--source", 0, "-o", tmp_path / "out", "--overwrite") + 2 * MB
    code, peak, stderr = peak_of([*line, "--overwrite", "--memory-limit", str(limit)])
    assert (code, peak <= limit) == (0, True), (stderr, peak, limit)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "name"),
    [
        ("the store", "dense"),
        nightly("the store", "strings"),
        ("the edge list", "sparse"),
        nightly("the edge list", "strings"),
    ],
)
def test_validation_keeps_its_limit(graphs, tmp_path, by, name):
    graph = graphs[name]
    source = "vertex 0" if name == "strings" else 0
    if by == "the store":
        graph = tmp_path / "graph.dg"
        assert run("build", graphs[name], "-o", graph).returncode == 0
    assert run("bfs", graph, "--source", source, "-o", tmp_path / "out").returncode == 0
    args = ("validate", graph, tmp_path / "out")
    assert peak_of(command(*args))[0] == 0  # compiles, and holds more
    limit = least_limit(*args) + 2 * MB
    for bound in (limit, 2 * limit)[: 1 + (by == "the store")]:
        code, peak, stderr = peak_of(command(*args, "--memory-limit", bound))
        assert (code, peak <= bound) == (0, True), (stderr, peak, bound)
    assert not list(tmp_path.glob(".*"))


TO_A_STORE = ("--partitions", 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "source", "options", "layout"),
    [
        ("dense", 0, (), "edges"),  # as it comes takes the least
        nightly("dense", 0, TO_A_STORE, "delegate"),
        ("sparse", 0, (), "csr"),
        nightly("strings", "vertex 0", (), "csr"),
    ],
)
def test_the_least_limit_for_an_edge_list(graphs, tmp_path, name, source, options, layout):
    """The least limit for an edge list is enough to build a temporary store and to search the
    store.
    """
    args = ("bfs", graphs[name], "--source", source, *options, "-o")
    limit = least_limit(*args, tmp_path / "out") + 2 * MB
    outcome = run(*args, tmp_path / "out", "--memory-limit", limit)
    assert outcome.returncode == 0, outcome.stderr
    record = json.loads((tmp_path / "out.run.json").read_text())
    assert record["layout"] == layout
    assert record["plan"]["measured_peak_bytes"] <= limit
    assert run(*args, tmp_path / "wanted").returncode == 0
    assert distances_of(tmp_path / "out") == distances_of(tmp_path / "wanted")
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("exact", [(), slow(("--exact",))], ids=["", "exact"])
def test_plan_writes_nothing_and_tells_all(graphs, tmp_path, exact):
    before = sorted(graphs["sparse"].parent.iterdir())
    args = ("plan", graphs["sparse"], "--memory-limit", "900MB", "--scratch", tmp_path, *exact)
    document = json.loads(run(*args, "--json").stdout)
    assert document["exact"] == bool(exact)
    assert document["memory_limit_bytes"] == 900 * MB
    assert not document["in_memory"]
    assert document["projected_peak_bytes"] <= 900 * MB
    names = [step["name"] for step in document["steps"]]
    assert names == ["encode", "ids", "degrees", "order", "scatter", "build", "vertices"]
    assert document["worst_step"] in names
    for step in document["steps"]:
        assert step["tasks"] > 0
        assert step["at_once"] > 0
        assert step["projected_bytes"] == document["baseline_bytes"] + (
            step["shared_bytes"] + step["at_once"] * step["task_bytes"]
        )
    assert document["worst_step"] in run(*args).stdout
    assert not list(tmp_path.iterdir())
    assert sorted(graphs["sparse"].parent.iterdir()) == before


def test_the_exact_plan_is_what_runs(graphs, tmp_path):
    args = (graphs["dense"], "--memory-limit", "500MB", "--scratch", tmp_path)
    planned = json.loads(run("plan", *args, "--exact", "--json").stdout)
    assert run("build", *args, "-o", tmp_path / "graph.dg").returncode == 0
    record = json.loads((tmp_path / "graph.dg.run.json").read_text())
    outcome = {step["name"]: step["tasks"] for step in record["plan"]["steps"]}
    for step in planned["steps"]:
        if step["name"] in ("scatter", "build", "vertices"):
            assert outcome[step["name"]] == step["tasks"]
    written = sum(p.stat().st_size for p in (tmp_path / "graph.dg").rglob("*") if p.is_file())
    assert written <= planned["store_bytes"] <= 3 * written


def test_the_disk_is_checked_beforehand(delegraph, graphs, tmp_path, monkeypatch):
    from shutil import _ntuple_diskusage

    monkeypatch.setattr("shutil.disk_usage", lambda path: _ntuple_diskusage(1, 1, 12_345))
    outcome = delegraph("build", graphs["dense"], "-o", tmp_path / "graph.dg")
    assert outcome.code == 1
    assert "12,345 are free" in outcome.err
    assert not list(tmp_path.iterdir())


def facts(**changes) -> plan.Facts:
    values = {
        "rows": 10**9,
        "domain": 10**8,
        "vertices": 10**8,
        "id_bytes": 8,
        "encoded": False,
        "directed": False,
        "ordered_by_degree": True,
        "partitions": default_partitions(10**9),
        "grid": Grid(1, 1),
    }
    return plan.Facts(**{**values, **changes})


@given(
    st.integers(250, 8000),
    st.integers(1, 64),
    st.integers(0, 8),
    st.booleans(),
    st.integers(10**3, 2**32 - 2),
)
def test_plans_keep_their_budget_or_say_which_would_do(limit, threads, workers, encoded, domain):
    graph = facts(encoded=encoded, domain=domain, vertices=domain, rows=10 * domain)
    budget = plan.Budget(limit * MB, 200 * MB, threads, workers)
    try:
        planned = plan.make_plan(graph, budget, 1000)
    except InputError as error:
        least = re.search(r"--memory-limit ([\d.]+[A-Z]+)", str(error))
        assert least
        enough = memory.parse_bytes(least[1])
        assert enough > limit * MB
        planned = plan.make_plan(graph, plan.Budget(enough, 200 * MB, threads, workers), 1000)
        assert planned.peak_bytes <= enough
    else:
        assert planned.peak_bytes <= limit * MB
    for step in planned.steps:
        assert 1 <= step.at_once <= max(1, min(threads * max(1, workers), step.tasks))


@pytest.mark.parametrize("text", ["", "12XB", "-5MB", "MB", "1.5.2GB", "1iB"])
def test_sizes_that_are_none(delegraph, text):
    with pytest.raises(InputError, match="not a size"):
        memory.parse_bytes(text)
    assert delegraph("plan", "x", "--memory-limit", text).code == 2


def test_the_limit_of_a_control_group(monkeypatch, tmp_path):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "memory.max").write_text("max\n")
    (tmp_path / "memory.max").write_text("1000000000\n")
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path)
    monkeypatch.setattr(memory, "_groups", lambda: ["0::/job"])
    monkeypatch.setattr(memory, "machine_bytes", memory.machine_bytes.__wrapped__)
    assert memory.default_limit() == 600_000_000


@pytest.mark.parametrize(
    ("options", "algorithm"),
    partly_nightly(
        [
            ("grid", "components"),
            ("grid", "pagerank"),
            ("plain", "pagerank"),
            ("plain", "closeness"),
            ("plain", "hits"),
            ("grid", "labels"),
            ("blocks", "leiden"),
            ("plain", "cores"),
            ("grid", "strong"),
            ("grid", "clustering"),
            ("grid", "truss"),
            ("weights", "forest"),
            ("weights", "sssp"),
            ("weights", "path"),
            ("weights", "path --nodes"),
            ("grid", "path"),
            ("plain", "path --nodes"),
            ("weights", "degree"),
            ("plain", "bfs"),
            ("grid", "bfs --together"),
        ],
        ("grid", "pagerank"),
        ("plain", "pagerank"),
        ("plain", "closeness"),
        ("plain", "hits"),
        ("grid", "labels"),
        ("blocks", "leiden"),
        ("plain", "cores"),
        ("grid", "strong"),
        ("grid", "clustering"),
        ("grid", "truss"),
        ("weights", "forest"),
        ("weights", "path"),
        ("weights", "path --nodes"),
        ("grid", "path"),
        ("plain", "path --nodes"),
        ("weights", "degree"),
        ("plain", "bfs"),
        ("grid", "bfs --together"),
    ),
)
def test_programs_keep_their_limit(graphs, tmp_path, options, algorithm):
    """Programs keep the least limit that a refusal names, and a large limit in memory; judging
    keeps its least limit.
    """
    store = tmp_path / "graph.dg"
    names = {"weights": "weighted", "blocks": "blocks"}
    edges = graphs[names.get(options, "heavy")]
    built = run(
        "build",
        edges,
        "-o",
        store,
        *({**OPTIONS, "weights": WEIGHTS, "blocks": ("--layout", "2d", "--grid", "3x1")}[options]),
    )
    assert built.returncode == 0
    args = (*algorithm.split(), store, "-o", tmp_path / "out", "--overwrite")
    if algorithm == "closeness":
        args = (*args, "--sources", 64)
    elif algorithm == "sssp":
        args = (*args, "--source", 0)
    elif algorithm.startswith("path"):
        ends = np.random.default_rng(1).integers(0, 1000, (2, 30))
        pq.write_table(
            pa.table(dict(zip(("source", "target"), ends, strict=True))), tmp_path / "p.parquet"
        )
        args = (*args, "--pairs", tmp_path / "p.parquet")
    elif algorithm.startswith("bfs"):
        args = (*args, "--sources", ",".join(map(str, range(70))))
    limit = least_limit(*args) + 2 * MB
    assert peak_of(command(*args))[0] == 0  # compiles, and holds more
    methods = []
    for bound in (limit, 10_000 * MB):
        code, peak, stderr = peak_of(command(*args, "--restart", "--memory-limit", bound))
        assert (code, peak <= bound) == (0, True), (stderr, peak, bound)
        record = json.loads((tmp_path / "out.run.json").read_text())
        key = "searches" if "bfs" in algorithm else algorithm.split()[0]
        methods.append(record[key]["method"])
    assert methods == ["streamed", "in memory"]
    judge = ("validate", store, tmp_path / "out")
    limit = least_limit(*judge) + 2 * MB
    code, peak, stderr = peak_of(command(*judge, "--memory-limit", limit))
    assert (code, peak <= limit) == (0, True), (stderr, peak, limit)


@pytest.mark.parametrize("algorithm", partly_nightly(["closeness", "betweenness"], "betweenness"))
def test_many_partitions_in_memory_keep_their_limit(tmp_path, algorithm):
    """Many partitions in memory keep their limit: a delegate is a row of each partition but one row
    once merged, and there are few edges.
    """
    src, dst = np.random.default_rng(3).integers(0, 500_000, (2, 1_000_000))
    pq.write_table(pa.table({"src": src, "dst": dst}), tmp_path / "edges.parquet")
    store, out = tmp_path / "graph.dg", tmp_path / "out"
    options = "--partitions", 32, "--threshold", 4
    assert run("build", tmp_path / "edges.parquet", "-o", store, *options).returncode == 0
    args = (algorithm, store, "-o", out, "--sources", 64 if algorithm == "closeness" else 2)
    assert peak_of(command(*args))[0] == 0
    steps = json.loads((tmp_path / "out.run.json").read_text())["plan"]["steps"]
    need = max(step["projected_bytes"] for step in steps if step["name"] == "search")
    limit = need + CODE_BYTES  # as long as it is not compiled
    code, peak, stderr = peak_of(
        command(*args, "--overwrite", "--restart", "--memory-limit", limit)
    )
    assert (code, peak <= limit) == (0, True), (stderr, peak, limit)
    record = json.loads((tmp_path / "out.run.json").read_text())
    assert record[algorithm]["method"] == "in memory"
