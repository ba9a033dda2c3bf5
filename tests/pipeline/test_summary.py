"""Findings of questions: after a run, of a result on disk, in memory and in notebooks."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph
from delegraph.pipeline import summary
from delegraph.pipeline.questions import FORMS
from delegraph.pipeline.results import names as result_names
from delegraph.pipeline.results.result import open_result
from delegraph.pipeline.summary import findings_of, range_name
from support.graphs import random_edges
from support.marks import mostly_slow

QUESTIONS = {
    "bfs": {"source": 3},
    "bfs-together": {"sources": [3, 5], "together": True},
    "components": {},
    "pagerank": {"iterations": 5},
    "hits": {},
    "labels": {},
    "leiden": {},
    "cores": {},
    "degree": {},
    "strong": {},
    "clustering": {},
    "sssp": {"source": 3},
    "closeness": {"sources": 20},
    "harmonic": {"sources": 20},
    "betweenness": {"sources": 4},
    "eccentricity": {"sources": 20},
}


def ids(numbers: np.ndarray, id_type: str) -> pa.Array:
    if id_type == "string":
        return pa.array([f"v{number}" for number in numbers])
    if id_type == "uuid":
        return pa.array([UUID(int=int(number)).bytes for number in numbers], pa.uuid())
    return pa.array(numbers)


@pytest.fixture(params=mostly_slow(["int64", "string", "uuid"], "string"))
def edges(request, tmp_path) -> Path:
    """A graph of several components, with a vertex alone (of a loop)."""
    src, dst = random_edges(2, 300, 400)
    pairs = np.arange(1000, 1020, 2)
    src = np.r_[src, 3, 5, 900, 901, 950, pairs]
    dst = np.r_[dst, 5, 9, 901, 902, 950, pairs + 1]
    weight = pa.array((src * 7 + dst) % 11, pa.int32())
    columns = {"src": ids(src, request.param), "dst": ids(dst, request.param), "weight": weight}
    pq.write_table(pa.table(columns), tmp_path / "edges.parquet")
    return tmp_path / "edges.parquet"


def called(name: str, edges: Path) -> dict[str, Any]:
    """Return the arguments of a question, with ids of the graph's type."""
    kind = pq.read_schema(edges).field("src").type
    arguments: dict[str, Any] = dict(QUESTIONS[name])
    for key in ("source", "sources"):
        if key in arguments and (key == "source" or isinstance(arguments[key], list)):
            given = np.atleast_1d(arguments[key])
            word = "int64" if pa.types.is_integer(kind) else str(kind).split("<")[-1].split("[")[0]
            made = ids(given, "uuid" if "uuid" in str(kind) else word).to_pylist()
            arguments[key] = made[0] if key == "source" else made
    return arguments


def ask(name: str, graph: Any, weighted: bool, **options: Any) -> Any:
    question = name.split("-")[0]
    if weighted and name == "sssp":
        options["weight"] = "weight"
    return getattr(delegraph, question)(graph, **options)


def top_by_definition(name: str, table: Any) -> list[tuple[str, Any]]:
    kind, column = FORMS[name].finding or ("", "")
    if kind == "groups":
        pairs = Counter(table[column].to_pylist()).items()
    else:
        pairs = zip(table["vertex"].to_pylist(), table[column].to_pylist(), strict=True)
    rows = [(str(vertex), value) for vertex, value in pairs if value is not None]
    order = {str(vertex): i for i, vertex in enumerate(table["vertex"].to_pylist())}
    return sorted(rows, key=lambda row: (-row[1], order[row[0]]))


@pytest.mark.parametrize("name", QUESTIONS)
def test_found_is_what_the_columns_say(edges, tmp_path, monkeypatch, name):
    """The record, the result on disk and the result in memory say the same, from one file or many,
    and it is what sorting gives.
    """
    monkeypatch.setattr(result_names, "_LEAST_ROWS", 64)  # several files
    monkeypatch.setattr(summary, "_GROUPS", 50)  # groups are counted in several passes
    arguments = called(name, edges)
    outcome = ask(name, edges, True, output=tmp_path / "out", **arguments)
    table = pa.concat_tables(
        pq.read_table(path) for path in sorted((tmp_path / "out").glob("*.parquet"))
    )
    assert len([*(tmp_path / "out").glob("*.parquet")]) > 1
    wanted = top_by_definition(name, table)
    found = outcome.record["found"]
    assert [(str(vertex), value) for vertex, value in found["top"]] == wanted[:10]
    assert json.loads((tmp_path / "out.run.json").read_text())["found"] == found
    on_disk = findings_of(open_result(tmp_path / "out"), 25)
    document = on_disk.facts()
    assert [(str(vertex), value) for vertex, value in document["top"]] == wanted[:25]
    assert {**found, "top": []} == {
        **{key: value for key, value in document.items() if key != "distribution"},
        "top": [],
    }
    assert sum(count for _, _, count in document["distribution"]) == len(wanted)
    in_memory = ask(name, edges, True, **arguments)
    values = dict(in_memory.top(10**6))
    assert [(str(v), pytest.approx(x)) for v, x in values.items()] == wanted
    assert in_memory.record["found"].keys() == found.keys()
    kind, _ = FORMS[name].finding or ("", "")
    if kind == "groups":
        assert found["alone"] == sum(size == 1 for _, size in wanted)
        key = {"strong": "components", "leiden": "communities"}.get(name, name)
        assert found["groups"] == len(wanted) == outcome.record[name][key]
        assert outcome.record[name]["alone"] == found["alone"]
    if kind == "distances":
        assert found["reached"] + found["unreached"] == table.num_rows


@pytest.mark.parametrize("options", [{}, {"partitions": 3}, {"order": "random"}], ids=str)
@pytest.mark.parametrize("name", ["components", "pagerank", "bfs"])
def test_found_is_the_same_from_any_store(edges, tmp_path, name, options):
    arguments = called(name, edges)
    delegraph.build(edges, tmp_path / "graph.dg", **options)
    found = [
        ask(name, graph, False, output=tmp_path / word, **arguments).record["found"]
        for graph, word in ((edges, "one"), (tmp_path / "graph.dg", "other"))
    ]
    tops = [[vertex for vertex, _ in one["top"]] for one in found]
    values = [[value for _, value in one["top"]] for one in found]
    assert values[0] == pytest.approx(values[1])
    if name != "pagerank":  # whose last digits, and so the order of ties, may differ
        assert tops[0] == tops[1]


def test_commands_print_the_top(ok, delegraph, edges, tmp_path):
    line = ("components", edges, "-o", tmp_path / "out")
    first, *table = ok(*line).out.splitlines()
    assert "components; the largest has" in first
    assert first.endswith("; 1 vertex is alone")
    assert len(table) == 1 + 5
    assert table[0].split() == ["component", "vertices,", "the", "largest"]
    assert ok(*line).out.splitlines() == [first, *table]  # found already
    assert ok(*line, "--top", 0).out.splitlines() == [first]
    longer = ok(*line, "--top", 12).out.splitlines()  # more than its record names
    assert longer[:7] == [first, *table]
    assert len(longer) == 1 + 1 + 12
    assert len(ok(*line, "--top", 12, "--json").json["found"]["top"]) == 12
    assert ok("components", edges, "--no-output", "--top", 12).out.splitlines() == longer
    record = ok("components", edges, "--no-output", "--json").json
    assert record["found"] == json.loads((tmp_path / "out.run.json").read_text())["found"]
    for wrong in (-1, 1001, "x"):
        assert delegraph(*line, "--top", wrong).code == 2


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("-o", "out", "--no-output"), "--output and --no-output exclude each other"),
        ((), "name an output folder, or give --no-output"),
        (("--no-output", "--workers", 2), "nothing for --workers to do"),
        (("--no-output", "--checkpoint", 2), "nothing for --checkpoint to do"),
        (("--no-output", "--overwrite"), "nothing for --overwrite to do"),
        (("--no-output", "--profile", "steps.parquet"), "nothing for --profile to do"),
    ],
    ids=str,
)
def test_no_output_takes_no_options_of_outputs(delegraph, edge_list, tmp_path, more, told):
    run = delegraph("bfs", edge_list([0, 1], [1, 2]), "--source", 0, *more)
    assert run.code == 2
    assert told in run.err
    assert not (tmp_path / "out").exists()


def test_a_result_whose_record_is_older(ok, edges, tmp_path):
    """A record without findings: the command reads the result for them."""
    line = ("pagerank", edges, "-o", tmp_path / "out")
    wanted = ok(*line).out
    path = tmp_path / "out.run.json"
    record = json.loads(path.read_text())
    del record["found"]
    path.write_text(json.dumps(record))
    assert ok(*line).out == wanted


@pytest.mark.parametrize("name", QUESTIONS)
def test_info_draws_a_distribution(ok, edges, tmp_path, name):
    ask(name, edges, True, output=tmp_path / "out", **called(name, edges))
    document = ok("info", tmp_path / "out", "--json").json
    out = ok("info", tmp_path / "out").out
    low, high, count = document["distribution"][0]
    if len(document["distribution"]) <= 24 and name != "sssp":
        assert re.search(rf"^  {re.escape(range_name(low, high))} +{count} ", out, re.MULTILINE)
    assert max(map(len, out.splitlines())) < 100
    assert "\N{FULL BLOCK}" * 40 in out or "#" * 40 in out


def test_extremes(ok, edge_list):
    """One vertex, loops alone, all values alike."""
    for src, dst in (([7], [7]), ([7, 8], [7, 8]), ([0, 1, 2], [1, 2, 0])):
        graph = edge_list(src, dst)
        vertices = len({*src, *dst})
        for name in ("components", "pagerank", "closeness", "betweenness", "eccentricity"):
            run = ok(name, graph, "--no-output", "--top", 9)
            rows = run.out.splitlines()[2:]
            alone = name == "components" and len(src) == 3
            assert len(rows) == (1 if alone else vertices)
        with delegraph.open(graph) as opened:
            wanted = [(0, 3)] if len(src) == 3 else [(vertex, 1) for vertex in src]
            assert opened.components().top() == wanted
            values = opened.harmonic(normalized=True)["harmonic"].to_pylist()
            assert values == ([1.0] if len(src) == 3 else [0.0]) * vertices
            assert "<svg" not in opened.pagerank()._repr_html_()


def test_distances_of_weights_that_are_zero(ok, edge_list, tmp_path):
    edges = edge_list([0, 1], [1, 2], w=pa.array([0.0, 0.0]))
    ok("sssp", edges, "--source", 0, "--weight", "w", "-o", tmp_path / "out")
    assert re.search(r"^  0 +3  ", ok("info", tmp_path / "out").out, re.MULTILINE)
    assert "distance" in delegraph.sssp(edges, 0, weight="w")._repr_html_()


def test_ids_do_not_reach_the_terminal_as_they_are(ok, edge_list):
    names = ["a\x1b[31m", "b\nc", "x" * 10_000]
    out = ok("components", edge_list(names, names[1:] + names[:1]), "--no-output").out
    assert "  a\\x1b[31m" in out
    long = ok("pagerank", edge_list(names, names[1:] + names[:1]), "--no-output").out
    assert f"  {'x' * 19}\u2026{'x' * 20}  " in long
    assert "  b\\x0ac" in long
    assert max(map(len, long.splitlines())) < 80


def test_a_column_of_weights_that_is_not_read(ok, edge_list, tmp_path):
    """Questions that could go by weights say so, others do not."""
    edges = edge_list([0, 1], [1, 2], weight=[1, 2])
    told = "the column weight is not read: name it with --weight to go by it"
    assert told in ok("pagerank", edges, "--no-output").err
    assert told in ok("pagerank", edges, "-o", tmp_path / "ranks").err
    assert told in ok("pagerank", edges, "-o", tmp_path / "ranks").err  # found already
    assert told in ok("build", edges, "-o", tmp_path / "graph.dg").err
    for more in (("pagerank", "--unweighted"), ("pagerank", "--weight", "weight"), ("components",)):
        name, *options = more
        assert told not in ok(name, edges, "--no-output", *options).err
    notes = delegraph.pagerank(edges).notes
    assert "the column weight is not read: name it with weight= to go by it" in notes


def test_top_is_not_for_searches_from_several_sources(delegraph, edge_list):
    line = ("bfs", edge_list([0, 1], [1, 2]), "--sources", "0,1", "--no-output")
    assert delegraph(*line).out == "6 rows of 2 sources, depth 2\n"
    run = delegraph(*line, "--top", 3)
    assert (run.code, "--top does not go with --sources" in run.err) == (2, True)


def test_a_result_of_few_groups_is_not_read_again(ok, edge_list, tmp_path, monkeypatch):
    """A record that names all groups suffices, whatever --top says."""
    line = ("components", edge_list([0, 2], [1, 3]), "-o", tmp_path / "out")
    wanted = ok(*line, "--top", 3).out
    monkeypatch.setattr(summary, "findings_of", None)  # reads the result
    assert ok(*line, "--top", 3).out == wanted


@pytest.mark.parametrize(
    "kind", [pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_results_that_other_programs_wrote(tmp_path, kind):
    """Names as views of strings or dictionaries, and a result without rows."""
    names = pa.array(["a", "a", "b"], pa.string())
    table = pa.table({"vertex": ["a", "c", "b"], "component": names.cast(kind)})
    pq.write_table(table, tmp_path / "parts.parquet")
    found = delegraph.info(tmp_path / "parts.parquet")
    assert (found["top"], found["components"]) == ([["a", 2], ["b", 1]], 2)
    pq.write_table(table.slice(0, 0), tmp_path / "none.parquet")
    assert delegraph.info(tmp_path / "none.parquet")["top"] == []


def test_options_of_a_result_are_escaped(ok, edge_list, tmp_path):
    ok("bfs", edge_list(["d\x1b[31m"], ["e"]), "--source", "d\x1b[31m", "-o", tmp_path / "out")
    assert "\x1b" not in ok("info", tmp_path / "out").out
