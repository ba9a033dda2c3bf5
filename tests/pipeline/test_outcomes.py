"""Outcomes of runs whose results were written."""

from __future__ import annotations

from typing import Any

import pytest

import delegraph

EDGES = [(1, 2), (2, 3), (5, 6)]


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("components", {}, "components: 2 components; the largest has 3 vertices"),
        ("bfs", {"source": 1}, "bfs: reached 3 of 5 vertices, depth 2"),
        ("pagerank", {"iterations": 1}, "pagerank: 1 iteration, the last one changed "),
    ],
)
def test_outcomes_print_as_one_line(tmp_path, name, options, told):
    delegraph.build(EDGES, tmp_path / "graph.dg")
    for where in ("written to", "found already in"):
        out = tmp_path / "out"
        outcome = getattr(delegraph, name)(tmp_path / "graph.dg", output=out, **options)
        assert str(outcome).startswith(told)
        assert str(outcome).endswith(f"; {where} {out}")
        assert "\n" not in str(outcome)
        assert repr(outcome) == f"<Outcome of {outcome}>"


def test_outcomes_of_all_questions_are_one_line(tmp_path):
    options: Any = {"weight": "weight"}
    edges = [(*edge, 1) for edge in EDGES]
    asked = {
        "sources": lambda out: delegraph.bfs(edges, sources=[1, 2], output=out),
        "together": lambda out: delegraph.bfs(edges, sources=[1, 2], together=True, output=out),
        "sssp": lambda out: delegraph.sssp(edges, 1, output=out, **options),
        "katz": lambda out: delegraph.katz(edges, output=out),
        "cores": lambda out: delegraph.cores(edges, output=out),
        "degree": lambda out: delegraph.degree(edges, output=out),
        "betweenness": lambda out: delegraph.betweenness(edges, output=out),
        "closeness": lambda out: delegraph.closeness(edges, output=out),
        "harmonic": lambda out: delegraph.harmonic(edges, output=out),
        "eccentricity": lambda out: delegraph.eccentricity(edges, output=out),
    }
    for name, ask in asked.items():
        told = str(ask(tmp_path / name))
        assert told.endswith(f"; written to {tmp_path / name}")
        assert "\n" not in told


def test_outcomes_are_unpacked(tmp_path):
    outcome = delegraph.components(EDGES, output=tmp_path / "out")
    record, already, notes = outcome
    assert (record, already, notes) == (outcome.record, outcome.already, outcome.notes)
    assert not already


def test_stores_and_conversions_print_as_one_line(tmp_path):
    built = delegraph.build(EDGES, tmp_path / "graph.dg")
    assert repr(built) == f"<Built {tmp_path / 'graph.dg'}: 5 vertices, 3 edges; written>"
    (tmp_path / "edges.csv").write_text("src,dst\n1,2\n2,3\n")
    for how in ("written", "found already"):
        converted = delegraph.convert(tmp_path / "edges.csv", tmp_path / "edges")
        assert repr(converted) == f"<Converted csv to an edge list of 2 rows; {how}>"
