"""Searches by masked products against the definition, with any optimizations on; switching an
optimization off adds the work that it saves.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.kernels import reference
from delegraph.kernels.base.graph import Graph
from delegraph.kernels.base.team import Team
from delegraph.pipeline.engines.operations import products
from delegraph.pipeline.engines.operations.products import Switches, Work, search, search_bytes
from support.graphs import SHAPES, graphs, make_graph
from support.marks import mostly_slow

NAMES = [switch.name for switch in fields(Switches)]
EVERY = [Switches(*on) for on in product([False, True], repeat=len(NAMES))]
TEAMS = {"alone": Team(1), "together": Team(3)}


@pytest.fixture(autouse=True)
def shared_limits(monkeypatch):
    """Restore after each test the sizes from which threads share a step: tests may set them."""
    for name in ("_SHARED_EDGES", "_SHARED_WORDS", "_SHARED_VERTICES"):
        monkeypatch.setattr(products, name, getattr(products, name))


def share_all() -> None:
    products._SHARED_EDGES = products._SHARED_WORDS = products._SHARED_VERTICES = 0


def entries_of(graph: Graph) -> np.ndarray:
    return np.ones(graph.edges, np.uint32)


@pytest.mark.parametrize("team", TEAMS)
@given(graph=graphs(), data=st.data())
def test_against_the_definition(team, graph, data):
    share_all()
    src, dst, vertices, directed = graph
    source = data.draw(st.integers(0, vertices - 1))
    expected = reference.distances(src, dst, vertices, source, directed)
    rows = make_graph(*graph)
    for switches in EVERY:
        distance, work = search(rows, source, TEAMS[team], switches, entries_of(rows))
        assert distance.tolist() == expected.tolist(), switches
        assert work.depth == expected.max()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", mostly_slow(SHAPES, "hubs", "empty rows"))
def test_every_shape(shape, directed):
    """Searches of every shape are right, most of them large enough that threads share the steps."""
    src, dst = (np.asarray(end, np.uint32) for end in SHAPES[shape])
    vertices = int(max(src.max(), dst.max())) + 1
    graph, source = make_graph(src, dst, vertices, directed), int(src[0])
    expected = reference.distances(src, dst, vertices, source, directed)
    for switches in EVERY:
        distance, _ = search(graph, source, TEAMS["together"], switches, entries_of(graph))
        assert (distance == expected).all(), switches


def hubs() -> Graph:
    src, dst = (np.asarray(end, np.uint32) for end in SHAPES["hubs"])
    return make_graph(src, dst, 3000, False)


def work_of(graph: Graph, **off: bool) -> Work:
    return search(graph, 0, Team(1), replace(Switches(), **off), entries_of(graph))[1]


def test_what_is_off_looks_at_more_edges():
    graph = hubs()
    whole = work_of(graph)
    for name in ("change_of_direction", "masking", "early_exit"):
        assert work_of(graph, **{name: False}).edges > whole.edges, name
    for name in ("structure_only", "operand_reuse"):
        assert work_of(graph, **{name: False}) == whole, name
    unmasked = work_of(graph, masking=False, early_exit=False)
    assert unmasked.edges % graph.edges < whole.edges  # each pull looks at all there are


@pytest.mark.parametrize("direction", [False, True])
def test_values_are_read_unless_the_structure_is_all(direction):
    graph = hubs()
    nothing = np.zeros(graph.edges, np.uint32)
    for structure_only in (False, True):
        switches = Switches(structure_only, direction)
        distance, _ = search(graph, 0, Team(1), switches, nothing)
        assert (np.count_nonzero(distance >= 0) > 1) == structure_only


@pytest.mark.parametrize("structure_only", [False, True])
def test_a_frontier_is_made_dense_unless_what_was_visited_is_reused(structure_only, monkeypatch):
    graph, searches = hubs(), []
    operand = products._Products._operand

    def spied(self) -> np.ndarray:
        searches.append(operand(self))
        reached = self.reached
        again = reached.visited if structure_only else reached.values
        assert (searches[-1] is again) == self._switches.operand_reuse
        return searches[-1]

    monkeypatch.setattr(products._Products, "_operand", spied)
    for reuse in (False, True):
        work_of(graph, structure_only=structure_only, operand_reuse=reuse)
    assert len(searches) > 1


@pytest.mark.parametrize("switches", [Switches(), Switches(*[False] * 5), Switches(False, True)])
def test_holds_what_it_says(switches):
    graph = hubs()
    entries = entries_of(graph)
    products.compile_search(np.uint32)
    search(graph, 0, Team(1), switches, entries)
    tracemalloc.start()
    search(graph, 0, Team(1), switches, entries)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most + entries.nbytes < search_bytes(graph.vertices, graph.edges) + (1 << 16)
