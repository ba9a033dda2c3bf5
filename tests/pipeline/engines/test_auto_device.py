"""The device that ``--device auto`` stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import delegraph
from delegraph.partition.input.edges import EdgeList, open_edges
from delegraph.pipeline.engines import auto_device
from delegraph.pipeline.engines.auto_device import Asked, Size, estimate, with_device
from delegraph.pipeline.questions import FORMS, QUESTIONS
from delegraph.pipeline.questions.question import Cost
from delegraph.pipeline.run.resources import resources_of

EDGES = [(1, 2), (2, 3)]
LIMIT = 16 << 30
STORE = Size("store", 1 << 28, 1 << 28, 1 << 23)


@pytest.fixture
def store(tmp_path):
    delegraph.build(EDGES, tmp_path / "graph.dg")
    return delegraph.open_store(tmp_path / "graph.dg")


@pytest.fixture
def gpu_is_there(monkeypatch):
    """A machine that seems to have a GPU; gives the numbers of devices that begin to start."""
    begun: list[int] = []
    monkeypatch.setattr(auto_device, "_may_have_gpu", lambda: True)
    monkeypatch.setattr(auto_device, "begin_driver", begun.append)
    return begun


def test_a_form_has_a_cost_if_it_runs_on_gpus():
    assert {name for name, form in FORMS.items() if form.on_gpus} == {
        name for name, form in FORMS.items() if form.cost is not None
    }


@pytest.mark.parametrize("name", sorted(name for name, form in FORMS.items() if form.cost))
def test_a_cost_goes_by_a_parameter_of_the_question(name):
    (question,) = [question for question, one in QUESTIONS.items() if FORMS[name] in one.forms]
    cost = FORMS[name].cost
    assert cost is not None
    assert cost.cpu > cost.gpu > 0
    names = {parameter.name for parameter in QUESTIONS[question].parameters}
    assert cost.repeated == "" or cost.repeated in names


def test_more_work_makes_the_gpu_the_faster_one():
    times = [
        estimate(Cost(50, 0.05, "sources"), sources, STORE, 16, LIMIT) for sources in (0, 1, 4, 64)
    ]
    assert [one.prefers_gpu for one in times] == [False, True, True, True]
    assert times[1].cpu < times[2].cpu < times[3].cpu
    per_vertex = estimate(Cost(50, 0.05, "sources"), None, STORE, 16, LIMIT)
    assert per_vertex == estimate(Cost(50, 0.05, "sources"), 1 << 23, STORE, 16, LIMIT)


def test_cores_and_ranks_share_the_work():
    cost = Cost(50, 0.05)
    alone, shared = (estimate(cost, 1, STORE, threads, LIMIT) for threads in (1, 16))
    assert alone.cpu == pytest.approx(16 * shared.cpu)
    assert estimate(cost, 1, STORE._replace(ranks=4), 4, LIMIT).cpu == pytest.approx(shared.cpu)


def test_edges_that_do_not_fit_memory_are_read_in_each_pass():
    cost = Cost(1, 0.01, "iterations")
    fits, streams = (estimate(cost, 20, STORE, 16, limit).cpu for limit in (LIMIT, 1 << 29))
    assert streams > 2 * fits


@pytest.mark.parametrize(
    ("name", "times", "rows", "device"),
    [
        ("bfs", 1, 3_000_000, "cpu"),
        ("bfs", 1, 268_000_000, "auto"),
        ("pagerank", 20, 3_000_000, "cpu"),
        ("pagerank", 20, 67_000_000, "auto"),
        ("leiden", 2, 67_000_000, "auto"),
        ("clustering", 1, 3_000_000, "cpu"),
        ("clustering", 1, 268_000_000, "auto"),
        ("path", 0, 268_000_000, "cpu"),
    ],
)
def test_the_choice_for_an_edge_list(
    edge_list, monkeypatch, gpu_is_there, name, times, rows, device
):
    edges = open_edges(edge_list([1, 2], [2, 3]), "src", "dst")
    monkeypatch.setattr(EdgeList, "rows", rows)
    notes: list[str] = []
    resources = resources_of(memory_limit=LIMIT)
    chosen = with_device(Asked(FORMS[name], times), edges, None, resources, 16, notes)
    assert chosen == replace(resources, device=device)
    assert gpu_is_there == ([0] if device == "auto" else [])
    assert len(notes) == (device == "cpu" and name != "path")


def test_what_is_asked_for_is_taken(store, gpu_is_there):
    asked = Asked(FORMS["degree"], 1)
    notes: list[str] = []
    for resources in (
        resources_of(device="cuda"),
        resources_of(device="cpu"),
        resources_of(device_memory_limit=1 << 30),
    ):
        assert with_device(asked, store, None, resources, 2, notes) is resources
    assert not notes
    assert not gpu_is_there


def test_little_host_memory_is_left_to_the_cpu(store, monkeypatch, gpu_is_there):
    monkeypatch.setattr(auto_device, "_START", 0)
    asked = Asked(FORMS["leiden"], 1 << 30)
    for limit, device in ((1 << 30, "auto"), (1 << 29, "cpu")):
        notes: list[str] = []
        resources = resources_of(memory_limit=limit)
        assert with_device(asked, store, None, resources, 2, notes).device == device
        told = ["on the CPU, as a GPU needs 1 GiB of host memory: --device cuda uses the GPU"]
        assert notes == (told if device == "cpu" else [])


def test_a_command_says_why_the_gpu_is_not_used(store, tmp_path, gpu_is_there):
    outcome = delegraph.pagerank(store.path, output=tmp_path / "ranks")
    line = "on the CPU, by estimate 0.6 s sooner than on the GPU: --device cuda uses the GPU"
    assert outcome.notes[0] == line.replace("--device cuda", 'device="cuda"')
    assert outcome.record["device"] == "cpu"
    assert delegraph.pagerank(store.path).notes[0] == outcome.notes[0]


def test_a_result_in_memory_has_the_notes_of_one_on_disk(tmp_path, gpu_is_there):
    edges = [*EDGES, (1, 2), (3, 3)]
    delegraph.build(edges, tmp_path / "graph.dg")
    for graph in (edges, tmp_path / "graph.dg"):
        written = delegraph.pagerank(graph, output=tmp_path / "ranks", overwrite=True)
        assert len(written.notes) == 3
        assert delegraph.pagerank(graph).notes == written.notes


def test_nothing_is_said_where_there_is_no_gpu(store, tmp_path):
    assert not delegraph.pagerank(store.path, output=tmp_path / "ranks").notes
    assert delegraph.plan(store.path, algorithm="leiden").device is None


def test_nothing_is_said_of_gpus_that_nobody_has_asked_for(tmp_path, monkeypatch):
    """A question that a GPU would answer sooner, but that it does not answer for this graph."""
    monkeypatch.setattr(auto_device, "_START", -1)  # any GPU is sooner
    edges = [(1, 2, 3), (2, 2, 1)]
    delegraph.build(edges, tmp_path / "graph.dg", weight="weight", loops="keep")
    asked: dict[str, Any] = {"output": tmp_path / "out", "overwrite": True}
    told = delegraph.pagerank(tmp_path / "graph.dg", **asked)
    planned = delegraph.plan(tmp_path / "graph.dg", algorithm="pagerank")
    assert not any("GPU" in note for note in planned.notes)
    assert not any("GPU" in note for note in told.notes)
    assert told.record["device"] == "cpu"
