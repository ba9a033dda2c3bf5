"""LDBC Graphalytics' examples, judged by Graphalytics' rules, on CPUs and on a GPU.

Breadth-first search and label propagation are exact, components are equal up to a renaming of
labels. PageRank, shortest paths and clustering coefficients are within 1e-4 of the reference,
relatively.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import DATA

import delegraph

EXAMPLES = DATA / "validation" / "ldbc"

on_each_device = pytest.mark.parametrize(
    "where", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
)


def on_examples(test: str) -> Any:
    names = [f"{name}-{kind}" for name in ("example", test) for kind in ("directed", "undirected")]
    return pytest.mark.parametrize("name", names)


class Example(NamedTuple):
    """A converted example. edges: a Parquet edge list. said: the example's properties. wanted:
    answers by vertex, as text.
    """

    edges: Path
    directed: bool
    said: dict[str, str]
    wanted: dict[int, str]


def example(folder: Path, name: str, answer: str) -> Example:
    if not EXAMPLES.is_dir():
        pytest.skip(f"LDBC's examples are not here: no {EXAMPLES}")
    lines = (EXAMPLES / f"{name}.properties").read_text().splitlines()
    pairs = [line.split(" = ") for line in lines if " = " in line]
    properties = {key.removeprefix(f"graph.{name}."): value.strip() for key, value in pairs}
    delegraph.convert(EXAMPLES / f"{name}.e", folder / "edges")
    wanted = answers(EXAMPLES / f"{name}-{answer}")
    return Example(folder / "edges", properties["directed"] == "true", properties, wanted)


def answers(path: Path) -> dict[int, str]:
    lines = (line.split() for line in path.read_text().splitlines())
    return {int(vertex): value for vertex, value in lines}


def result_values(result: Path) -> dict[int, str]:
    delegraph.convert(result, result.with_suffix(".txt"))
    return answers(result.with_suffix(".txt"))


def numbers(values: dict[int, str]) -> dict[int, float]:
    return {vertex: float(value) for vertex, value in values.items()}


@on_each_device
@on_examples("test-bfs")
def test_bfs(tmp_path, name, where):
    edges, directed, properties, wanted = example(tmp_path, name, "BFS")
    source = int(properties["bfs.source-vertex"])
    delegraph.bfs(edges, source, output=tmp_path / "result", directed=directed, device=where)
    assert result_values(tmp_path / "result") == wanted


@on_each_device
@on_examples("test-wcc")
def test_components(tmp_path, name, where):
    edges, directed, _, wanted = example(tmp_path, name, "WCC")
    delegraph.components(edges, output=tmp_path / "result", directed=directed, device=where)
    labels = result_values(tmp_path / "result")
    assert labels.keys() == wanted.keys()
    pairs = {(labels[vertex], wanted[vertex]) for vertex in wanted}
    assert len(pairs) == len(set(labels.values())) == len(set(wanted.values()))


@on_examples("test-cdlp")
def test_label_propagation(tmp_path, name):
    edges, directed, properties, wanted = example(tmp_path, name, "CDLP")
    iterations = int(properties["cdlp.max-iterations"])
    options = {"directed": directed, "iterations": iterations, "unweighted": True}
    delegraph.labels(edges, output=tmp_path / "result", **options)
    assert result_values(tmp_path / "result") == wanted


@on_examples("test-lcc")
def test_clustering(tmp_path, name):
    edges, directed, _, wanted = example(tmp_path, name, "LCC")
    result = delegraph.clustering(edges, directed=directed).table
    found = zip(result["vertex"].to_pylist(), result["clustering"].to_pylist(), strict=True)
    assert dict(found) == pytest.approx(numbers(wanted), rel=1e-4)


@on_each_device
@on_examples("test-pr")
def test_pagerank(tmp_path, name, where):
    edges, directed, properties, wanted = example(tmp_path, name, "PR")
    options = {
        "damping": float(properties["pr.damping-factor"]),
        "iterations": int(properties["pr.num-iterations"]),
        "unweighted": True,
    }
    delegraph.pagerank(
        edges, output=tmp_path / "result", directed=directed, device=where, **options
    )
    assert numbers(result_values(tmp_path / "result")) == pytest.approx(numbers(wanted), rel=1e-4)


@on_each_device
@on_examples("test-sssp")
def test_shortest_paths(tmp_path, name, where):
    edges, directed, properties, wanted = example(tmp_path, name, "SSSP")
    source = int(properties["sssp.source-vertex"])
    options = {"directed": directed, "weight": "weight", "device": where}
    delegraph.sssp(edges, source, output=tmp_path / "result", **options)
    assert numbers(result_values(tmp_path / "result")) == pytest.approx(numbers(wanted), rel=1e-4)
