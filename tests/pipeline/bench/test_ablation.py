"""The ablation table: the ways that are measured, and a check that each way is right.

No test asserts a speed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_type_hints

import pytest

import delegraph
from delegraph.partition.errors import DelegraphError, LimitError
from delegraph.pipeline.api import bench_ablation
from delegraph.pipeline.bench import ablation
from delegraph.pipeline.bench.ablation import ADDED, OPTIMIZATIONS, WAYS, AblationReport, WayReport
from delegraph.pipeline.engines.operations.products import Switches
from delegraph.pipeline.reports.bench import ablation_table
from support.graphs import random_edges
from support.schema import conforms


@pytest.fixture
def store(edge_list, tmp_path):
    """Return a function that builds a store with options."""

    def build(**options):
        path = tmp_path / "graph.dg"
        delegraph.build(edge_list(*random_edges(1, 300, 4000)), path, device="cpu", **options)
        return path

    return build


def test_ways():
    """The added ways switch optimizations on one by one, as in Table 2; of the five ways that
    switch one off, four are new ways.
    """
    assert [sum(vars(switches).values()) for switches in ADDED] == list(range(6))
    assert ADDED[-1] == Switches()
    assert len(WAYS) == 1 + 6 + 4  # all without operand reuse is the last row but one


@pytest.mark.parametrize("options", [{}, {"directed": True}, {"partitions": 3}], ids=str)
def test_report(store, options):
    report = bench_ablation(store(**options), sources=3, seed=3, threads=2)
    assert json.loads(json.dumps(report)) == report
    assert report.keys() == get_type_hints(AblationReport).keys()
    assert len(report["sources"]) == 3
    assert [row["on"] for row in report["added"]] == [
        list(OPTIMIZATIONS[:count]) for count in range(6)
    ]
    assert [row["speed_up"] is None for row in report["added"]] == [True, *[False] * 5]
    for name, row in report["without"].items():
        assert set(row["on"]) == set(OPTIMIZATIONS) - {name}
    assert list(report["without"]) == list(OPTIMIZATIONS)
    for row in (*report["added"], *report["without"].values(), report["by_hand"]):
        assert conforms(row, WayReport)
        assert row["gteps"]["min"] <= row["gteps_harmonic_mean"] <= row["gteps"]["max"]
    table = ablation_table(report).splitlines()
    assert len(table) == 1 + 6 + 1 + 2 + 5
    assert all(
        line.startswith(name.replace("_", " "))
        for name, line in zip(OPTIMIZATIONS, table[-5:], strict=True)
    )


def test_the_report_is_documented():
    text = (Path(__file__).parents[3] / "docs" / "reference" / "run-record.md").read_text()
    for name in (*get_type_hints(AblationReport), *get_type_hints(WayReport)):
        assert f"`{name}`" in text, name


def test_a_way_that_is_wrong_fails(store, monkeypatch):
    search = ablation.search

    def search_wrongly(graph, source, team, switches, entries):
        distance, work = search(graph, source, team, switches, entries)
        if switches == ADDED[2]:
            distance[distance.argmax()] += 1
        return distance, work

    monkeypatch.setattr(ablation, "search", search_wrongly)
    with pytest.raises(DelegraphError, match="with structure only, change of direction"):
        bench_ablation(store(), sources=2)


def test_what_does_not_fit_is_refused(store, monkeypatch):
    monkeypatch.setattr(ablation, "machine_bytes", lambda: 1 << 20)
    with pytest.raises(LimitError):
        bench_ablation(store())
