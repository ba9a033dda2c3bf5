"""Communities against their definition, on every engine on CPUs."""

from __future__ import annotations

import dataclasses
import itertools
import json
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import delegraph
from delegraph.kernels.base.team import Team
from delegraph.kernels.pieces import tally as kernels
from delegraph.kernels.reference_communities import Weighted, communities
from delegraph.partition.disk.outputs import facts_of, mark
from delegraph.partition.store.grid import Grid
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms import memory_level
from delegraph.pipeline.algorithms.communities import Communities
from delegraph.pipeline.algorithms.community_search import (
    MOST_ITERATIONS,
    CommunitiesProgram,
    stamp_of,
)
from delegraph.pipeline.algorithms.contractions import Contractions
from delegraph.pipeline.algorithms.hierarchy import columns_of
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.operations import contract, spill, tally
from delegraph.pipeline.questions.communities import LARGEST
from delegraph.pipeline.ranks.communicator import RankError
from delegraph.pipeline.results.checkpoint import Checkpoint
from delegraph.pipeline.run import ending
from support.checkpoints import CutOff
from support.graphs import edges_of, graphs, random_edges, store_options
from support.marks import mostly_slow, slow
from support.paths import entries_of
from support.programs import run_program, stored

WEIGHTS = {
    "floats": lambda rng, m: rng.random(m).astype(np.float32),
    "ties": lambda rng, m: rng.integers(0, 3, m),
    "great": lambda rng, m: rng.integers(1 << 31, 1 << 32, m),
    "far apart": lambda rng, m: np.float32(2) ** rng.integers(-100, 100, m),
    "nothing": lambda rng, m: np.zeros(m, np.int64),
}


def amounts_of(store: Store) -> tuple[np.ndarray, np.ndarray, list[int], float]:
    """Return the ends of all edges and self-loops in both directions, what they amount to, and the
    scale.
    """
    if store.info.weights is None:
        u, v = edges_of(store, loops=2)
        return u, v, [1] * len(u), 1.0
    u, v, weight = entries_of(store, loops=2)
    if store.info.weights.kind != "float32":
        return u, v, weight.astype(np.int64).tolist(), 1.0
    most, edges = float(store.info.weights.most), store.info.edges
    weight = weight.astype(np.float64)
    loops, others = float(weight[u == v].sum()), weight[u != v]
    scale = power_below(most * 2 * edges + loops)
    sums = int(sum(np.rint(others * scale).astype(np.uint64).tolist()))
    scale = power_below((sums + edges) / scale + loops)
    return u, v, [int(x) for x in np.rint(weight * scale)], scale


def power_below(most: float) -> float:
    """Return the power of two that takes a number to between 2^61 and 2^62."""
    return 2.0 ** (62 - np.frexp(most)[1]) if most else 1.0


def wanted_communities(store: Store, question: Communities) -> list[np.ndarray]:
    """Return the communities by the definition, and the groups of each level, by global id, as
    global ids.
    """
    order = store.id_order(Team(1))
    number = np.argsort(order)
    u, v, amounts, scale = amounts_of(store)
    graph = Weighted([{} for _ in order], [0] * len(order), [1] * len(order))
    for a, b, amount in zip(number[u].tolist(), number[v].tolist(), amounts, strict=True):
        if a == b:
            graph.inside[a] += amount
        else:
            graph.edges[a][b] = amount
    factor = question.resolution * scale
    if question.objective == "modularity":
        sums = (sum(edges.values()) for edges in graph.edges)
        graph.mass[:] = map(sum, zip(sums, graph.inside, strict=True))
        total = sum(graph.mass)
        factor = question.resolution / total if total else 0.0
    found, hierarchy = communities(
        graph,
        factor,
        question.method == "leiden",
        question.iterations or MOST_ITERATIONS,
        question.max_levels,
        lambda *place: int(stamp_of(question.seed, *place)),
    )
    return [order[np.array(groups, np.uint32)[number]] for groups in (found, *hierarchy)]


def wanted_ties(store: Store, community: np.ndarray) -> dict[frozenset[int], float]:
    """Return what the edges between the largest communities amount to, by definition."""
    names, sizes = np.unique(community, return_counts=True)
    number = np.argsort(store.id_order(Team(1)))
    largest = names[np.lexsort([number[names], -sizes])][:LARGEST].tolist()
    u, v, amounts, scale = amounts_of(store)
    ties: dict[frozenset[int], float] = {}
    for one, other, amount in zip(
        *(community[end].tolist() for end in (u, v)), amounts, strict=True
    ):
        if one != other and one in largest and other in largest:
            ends = frozenset([one, other])
            ties[ends] = ties.get(ends, 0) + amount / scale / 2  # edges stand in both directions
    return ties


def program_of(store: Store, question: Communities) -> CommunitiesProgram:
    return question.planned(store.info)


def check(
    store: Store,
    question: Communities,
    folder: Path,
    ranks: int = 1,
    on_disk: bool = False,
    **options,
) -> dict[str, Any]:
    """Check the communities, and return the record of the run."""
    program = program_of(store, question)
    columns, results = run_program(store, program, folder, ranks, on_disk, **options)
    wanted, *hierarchy = wanted_communities(store, question)
    assert np.array_equal(columns["community"], wanted)
    ties = results[0].record["ties"]
    found = {frozenset(ends): amount for *ends, amount in ties}
    assert len(found) == len(ties)
    assert found == pytest.approx(wanted_ties(store, wanted))
    if question.hierarchy:
        levels = columns_of(columns, store.info.vertices)
        assert [column.name for column in levels] == [f"level_{i}" for i in range(len(hierarchy))]
        for column, groups in zip(levels, hierarchy, strict=True):
            assert np.array_equal(column.values[:], groups)
    return results[0].record


questions = st.builds(
    lambda method, quality, *others: Communities(method, *quality, *others),
    st.sampled_from(["leiden", "louvain"]),
    st.sampled_from([(1.0, "modularity"), (2.5, "modularity"), (0.0, "modularity"), (0.02, "cpm")]),
    st.sampled_from([1, 2, None]),
    st.sampled_from([100, 100, 1]),
    st.integers(0, 3),
    st.booleans(),
)


@pytest.mark.slow
@given(
    graph=graphs(),
    options=store_options(),
    question=questions,
    ranks=st.integers(1, 4),
    on_disk=st.booleans(),
    kind=st.sampled_from([None, *WEIGHTS]),
    narrowed=st.booleans(),
    spilled=st.booleans(),
    shared=st.booleans(),
)
def test_against_the_definition(
    graph, options, question, ranks, on_disk, kind, narrowed, spilled, shared
):
    src, dst, _, _ = graph
    if not len(src):
        return
    weight = None if kind is None else WEIGHTS[kind](np.random.default_rng(1), len(src))
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as monkeypatch:
        if narrowed:
            monkeypatch.setattr(tally, "WINDOW_EDGES", 50)
            monkeypatch.setattr(tally, "_TABLES_BYTES", 0)
            monkeypatch.setattr(memory_level, "_TABLE_BYTES", 0)
            monkeypatch.setattr(kernels, "_LEAST_SLOTS", 16)
            monkeypatch.setattr(tally, "_SHORT", 50)
        if spilled:
            without_room(monkeypatch)
        if shared:
            share_all_rounds(monkeypatch)
        undirected = dataclasses.replace(options, directed=False)
        store = stored(Path(place), src, dst, undirected, weight)
        check(store, question, Path(place) / "out", min(ranks, store.info.partitions), on_disk)


def share_all_rounds(monkeypatch) -> None:
    """Have threads share the work even where there is little."""
    for bound in ("_SERIAL_EDGES", "_EDGES_TO_BEGIN"):
        monkeypatch.setattr(memory_level, bound, 0)


LAYOUTS = {
    "memory": (BuildOptions(), 1, False),
    "disk": (BuildOptions(), 1, True),
    "partitions": (BuildOptions(partitions=3, threshold=6), 1, False),
    "delegates": (BuildOptions(partitions=4, threshold=6), 3, False),
    "2d": (BuildOptions(layout="2d", grid=Grid(2, 2)), 4, True),
    "1d": (BuildOptions(layout="1d", partitions=3), 2, True),
}


@pytest.mark.parametrize("method", mostly_slow(["leiden", "louvain"], "leiden"))
@pytest.mark.parametrize(
    "name", mostly_slow([*LAYOUTS, "threads"], "memory", "delegates", "threads")
)
def test_each_round_on_each_engine(tmp_path, method, name, monkeypatch):
    """Sparse random graphs: what differs in one round, in a tie or in who may join whom, changes
    the communities of most of them.
    """
    if name == "threads":
        share_all_rounds(monkeypatch)
    options, ranks, on_disk = LAYOUTS["memory" if name == "threads" else name]
    for seed in range(4):
        folder = tmp_path / str(seed)
        folder.mkdir()
        src, dst = random_edges(seed, 150, 300)
        weight = np.random.default_rng(seed).integers(1, 4, len(src)) if seed % 2 else None
        store = stored(folder, src, dst, options, weight)
        question = Communities(method, iterations=2, hierarchy=True)
        check(store, question, folder / "out", ranks, on_disk)
        below = Communities(method, 0.1, "cpm", max_levels=1)  # which may fall into parts
        check(store, below, folder / "below", ranks, on_disk)


def test_each_round_goes_on_from_the_one_before(tmp_path):
    """A search that is cut off after each round of each level goes on, each time on another engine,
    to the same communities.
    """
    src, dst = random_edges(1, 300, 600)
    store = stored(tmp_path, src, dst, BuildOptions(partitions=3, threshold=8))
    question = Communities("leiden", iterations=2, hierarchy=True)
    cuts, is_whole, levels = 0, False, set()
    engines = itertools.cycle([(1, False), (3, False), (2, True), (1, True)])
    while not is_whole:
        ranks, on_disk = next(engines)
        checkpoint = CutOff(tmp_path / "saved", 0, "this")
        checkpoint.left = 1
        try:
            run = store, question, tmp_path / str(cuts), ranks, on_disk
            check(*run, checkpoint=checkpoint)
            is_whole = True
        except (KeyboardInterrupt, RankError):
            cuts += 1
            at, *_ = json.loads((tmp_path / "saved" / "search.json").read_text())["facts"]
            levels.add(tuple(at[:2]))
    assert cuts > 20
    assert levels >= {(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)}


@pytest.mark.parametrize("method", ["leiden", "louvain"])
@pytest.mark.parametrize("where", ["add", "_merge"])
def test_asked_to_end_while_a_level_is_contracted(tmp_path, monkeypatch, where, method):
    """A run that is asked to end while pairs are added up, or merged from files, ends at once, and
    goes on to the same communities.
    """
    src, dst = random_edges(2, 2000, 9000)
    store = stored(tmp_path, src, dst, BuildOptions(partitions=2))
    question = Communities(method, iterations=1)
    monkeypatch.setattr(contract, "LEAST_PAIRS", 16)
    monkeypatch.setattr(Contractions, "fits", lambda *_: False)
    kind: Any = contract.PairSums if where == "add" else spill.PairRuns
    plain, asked = getattr(kind, where), []

    def asking(*args: Any) -> Any:
        asked.append(ending.ask())
        return plain(*args)

    saved: tuple[Any, ...] = tmp_path / "saved", 1000, "this"
    monkeypatch.setattr(kind, where, asking)
    with ending.watching(), pytest.raises((KeyboardInterrupt, RankError)):
        check(store, question, tmp_path / "first", on_disk=True, checkpoint=Checkpoint(*saved))
    ending.forget()
    monkeypatch.setattr(kind, where, plain)
    assert asked
    at, *_ = json.loads((tmp_path / "saved" / "search.json").read_text())["facts"]
    assert at[3] == "contract"
    check(store, question, tmp_path / "second", on_disk=True, checkpoint=Checkpoint(*saved))


# Bad input, and extremes


def test_directed_graphs_are_refused(edge_list, tmp_path):
    """A directed graph is refused with one line, before it is read and in every way to ask."""
    edges, store = edge_list([1, 2], [2, 3]), tmp_path / "graph.dg"
    delegraph.build(edges, store, directed=True, device="cpu")
    for ask in (
        lambda: delegraph.leiden(edges, directed=True),
        lambda: delegraph.louvain(store),
        lambda: delegraph.open(store).leiden(),
        lambda: delegraph.leiden(store, output=tmp_path / "out"),
    ):
        with pytest.raises(delegraph.InputError, match=r"undirected graphs.*leave out directed"):
            ask()


@pytest.mark.parametrize("resolution", [-1.0, 1e300, float("nan"), float("inf")])
def test_strange_resolutions(edge_list, resolution):
    with pytest.raises(delegraph.InputError, match="resolution"):
        delegraph.leiden(edge_list([1], [2]), resolution=resolution)


@pytest.mark.parametrize("method", ["leiden", "louvain"])
@pytest.mark.parametrize(
    ("src", "dst", "weight", "wanted", "quality"),
    [
        ([5], [5], None, [5], None),
        ([1, 2], [2, 1], None, [1, 1], 0.0),
        ([1, 2, 3], [2, 3, 1], [0, 0, 0], [1, 2, 3], None),
        ([1, 2, 3], [2, 3, 1], [7, 7, 7], [1, 1, 1], 0.0),
        ([1, 2, 5, 6, 2], [2, 3, 6, 7, 6], [9, 9, 9, 9, 1], [1, 1, 1, 5, 5, 5], 36 / 37 - 0.5),
    ],
    ids=["a loop", "one edge", "weights of 0", "all alike", "two groups"],
)
def test_extremes(edge_list, method, src, dst, weight, wanted, quality):
    """Graphs of loops alone, weights that are all 0 or all alike."""
    columns = {} if weight is None else {"weight": weight}
    edges = edge_list(np.array(src, np.int64), np.array(dst, np.int64), **columns)
    result = getattr(delegraph, method)(edges, weight=None if weight is None else "weight")
    assert result.table.sort_by("vertex")["community"].to_pylist() == wanted
    assert result.record[method]["quality"] == (quality and pytest.approx(quality))


def test_resolution_0_gives_components(edge_list):
    """Without expectations, all that edges connect is one community."""
    src, dst = random_edges(3, 200, 150)
    edges = edge_list(src, dst)
    for method in ("leiden", "louvain"):
        found = getattr(delegraph, method)(edges, resolution=0.0).table.sort_by("vertex")
        wanted = delegraph.components(edges).table.sort_by("vertex")
        assert found["community"].to_pylist() == wanted["component"].to_pylist()


def without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave no memory for levels above level 0, and little for the pairs that make them."""
    monkeypatch.setattr(Contractions, "fits", lambda *given: False)
    monkeypatch.setattr(contract, "LEAST_PAIRS", 20)
    monkeypatch.setattr(spill, "_RUNS_AT_ONCE", 3)


@pytest.mark.parametrize("name", mostly_slow(LAYOUTS, "memory", "disk", "delegates"))
def test_levels_on_disk(tmp_path, monkeypatch, name):
    """Levels that do not fit memory are read from disk, each made from the one below."""
    without_room(monkeypatch)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    options, ranks, on_disk = LAYOUTS[name]
    src, dst = random_edges(2, 150, 300)
    store = stored(tmp_path, src, dst, options, np.arange(300) % 3)
    before = {path.name for path in tmp_path.iterdir()}
    record = check(store, Communities("leiden"), tmp_path / "out", ranks, on_disk)
    assert [level["on_disk"] for level in record["levels"]] == [on_disk, True, True, True]
    assert record["read"] > 0
    assert {path.name for path in tmp_path.iterdir()} == before | {"out"}


def test_levels_on_disk_and_in_memory(tmp_path, monkeypatch):
    """A level that does not fit memory is contracted to one that does, and that one to another."""
    monkeypatch.setattr(Contractions, "fits", lambda self, labels, *given: labels < 40)
    store = stored(tmp_path, *random_edges(2, 150, 300), BuildOptions())
    for on_disk in (False, True):
        out = tmp_path / str(on_disk)
        record = check(store, Communities("louvain"), out, on_disk=on_disk)
        places = [level["on_disk"] for level in record["levels"]]
        assert places[:3] == [on_disk, True, False]


@pytest.mark.parametrize("seed", [1, slow(2)])
def test_seeds(edge_list, seed):
    """A seed gives the same communities however a store is ordered; ids decide, not places."""
    src, dst = random_edges(4, 300, 900)
    edges, tables = edge_list(src, dst), []
    for order in ("degree", "none", "random"):
        store = edges.parent / f"{order}.dg"
        delegraph.build(edges, store, order=order, device="cpu")
        tables.append(delegraph.leiden(store, seed=seed).table.sort_by("vertex"))
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    assert not tables[0].equals(delegraph.leiden(edges, seed=seed + 9).table.sort_by("vertex"))


def test_until_stable(edge_list):
    """Iterations end once nothing moves, and not before."""
    src, dst = random_edges(5, 400, 1200)
    result = delegraph.leiden(edge_list(src, dst), iterations="until-stable")
    facts, made = result.record["leiden"], result.record["levels"]
    assert facts["stable"]
    assert 2 <= facts["iterations"] < MOST_ITERATIONS
    moves = [
        sum(level["moves"] for level in made if level["iteration"] == i + 1)
        for i in range(facts["iterations"])
    ]
    assert moves[-1] == 0
    assert all(moves[:-1])


@pytest.mark.parametrize("other", ["less", "nothing"])
def test_the_quality_of_another_graph(edge_list, tmp_path, other):
    """A result is wrong for a graph in which its quality is another one, or in which no edge counts
    so that there is none.
    """
    src, dst = [1, 2, 3, 4, 5, 6, 1], [2, 3, 1, 5, 6, 4, 4]
    edges = edge_list(src, dst, weight=[1] * 7)
    delegraph.leiden(edges, output=tmp_path / "out", weight="weight")
    weight = [0] * 7 if other == "nothing" else [1] * 6 + [5]
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"src": src, "dst": dst, "weight": weight}), path)
    verdict = delegraph.validate(path, tmp_path / "out", weight="weight")
    assert [rule["rule"] for rule in verdict["rules"]] == ([4] if other == "nothing" else [4, 7])
    assert delegraph.validate(edges, tmp_path / "out", weight="weight")["valid"]


def test_what_joins_the_largest_communities(edge_list):
    """The record tells the edges between the ten largest communities, by weight."""
    rng, (src, dst) = np.random.default_rng(8), random_edges(8, 300, 450)
    ends = np.unique(np.sort([src, dst], axis=0), axis=1)
    weight = rng.random(ends.shape[1]).astype(np.float32)
    result = delegraph.leiden(edge_list(*ends, weight=weight), weight="weight", iterations=1)
    table = result.table
    community = dict(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    sizes = Counter(community.values())
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:10]
    wanted: Counter[frozenset[int]] = Counter()
    for u, v, w in zip(*ends.tolist(), weight.tolist(), strict=True):
        pair = frozenset((community[u], community[v]))
        if len(pair) == 2 and pair <= {*largest}:
            wanted[pair] += w
    told = {frozenset(tie["communities"]): tie["weight"] for tie in result.record["ties"]}
    assert len(told) > 1
    assert told == {pair: pytest.approx(total) for pair, total in wanted.items()}


@pytest.mark.parametrize("method", ["leiden", slow("louvain")])
def test_a_hierarchy(edge_list, tmp_path, method):
    """Each level has at most half as many groups as the one below it, and no level stands twice."""
    src, dst = random_edges(6, 600, 900)
    edges, out = edge_list(src, dst), tmp_path / "out"
    getattr(delegraph, method)(edges, output=out, hierarchy=True)
    table = pq.read_table(out)
    levels = [f"level_{i}" for i in range(table.num_columns - 2)]
    assert table.column_names == ["vertex", "community", *levels]
    groups = [len(table[column].unique()) for column in levels]
    assert len(groups) > 1
    assert all(2 * more <= less for less, more in pairwise(groups))
    assert len(table["community"].unique()) < groups[-1]
    verdict: Any = delegraph.validate(edges, out)
    assert verdict["valid"]
    record = json.loads(out.with_suffix(".run.json").read_text())
    assert record[method]["disconnected"] == verdict["disconnected"]


def test_a_hierarchy_that_does_not_nest(edge_list, tmp_path):
    """Groups that lie in several of the next level, or that edges do not connect, are found."""
    src, dst = random_edges(6, 600, 900)
    edges, out = edge_list(src, dst), tmp_path / "out"
    delegraph.leiden(edges, output=out, hierarchy=True)
    (file,) = out.glob("*.parquet")
    table = pq.read_table(file)
    for name, other, broken in (("level_0", "community", {4, 5}), ("level_1", "vertex", {4, 5})):
        changed = table.set_column(table.column_names.index(name), name, table[other])
        pq.write_table(changed.replace_schema_metadata(table.schema.metadata), file)
        rules = {rule["rule"] for rule in delegraph.validate(edges, out)["rules"]}
        assert broken <= rules


def qualities_of(edges: pa.Table, community: dict[int, int], objective: str) -> float:
    """Return the quality of communities at resolution 1, by its definition."""
    rows = zip(*(edges[name].to_pylist() for name in ("src", "dst", "weight")), strict=True)
    weights = {(*sorted((u, v)),): w for u, v, w in rows if u != v}
    inside = sum(w for (u, v), w in weights.items() if community[u] == community[v])
    if objective == "cpm":
        sizes = Counter(community.values()).values()
        return inside - sum(n * (n - 1) / 2 for n in sizes)
    total, strength = sum(weights.values()), Counter()
    for (u, v), w in weights.items():
        strength[community[u]] += w
        strength[community[v]] += w
    return inside / total - sum((s / total / 2) ** 2 for s in strength.values())


@pytest.mark.parametrize("objective", ["modularity", "cpm"])
def test_the_best_move(edge_list, tmp_path, objective):
    """The best move is the one of all moves to a neighbour's community; where a result says that
    it is stable, one that is left is an error.
    """
    rng, (src, dst) = np.random.default_rng(7), random_edges(7, 60, 150)
    pairs = np.unique(np.sort([src, dst], axis=0), axis=1)
    weight = rng.integers(1, 9, pairs.shape[1])
    edges, out = edge_list(*pairs, weight=weight), tmp_path / "out"
    delegraph.louvain(edges, output=out, objective=objective, weight="weight")
    (file,) = out.glob("*.parquet")
    table = pq.read_table(file)
    community = {v: v % 5 for v in table["vertex"].to_pylist()}

    def write(**measured: float) -> None:
        """Write other communities, of which the run has measured something."""
        facts: Any = facts_of(table.schema.metadata, "result")
        facts["measured"] = measured
        other = table.set_column(1, "community", [[community[v] for v in sorted(community)]])
        pq.write_table(other.replace_schema_metadata(mark(**facts, kind="result")), file)

    write()
    before, gains = qualities_of(pq.read_table(edges), community, objective), {}
    for u, v in [*zip(*pairs, strict=True), *zip(*pairs[::-1], strict=True)]:
        moved = community | {int(u): community[int(v)]}
        gain = qualities_of(pq.read_table(edges), moved, objective) - before
        gains[int(u), community[int(v)]] = gain
    verdict: Any = delegraph.validate(edges, out, weight="weight")
    move, best = verdict["best_move"], max(gains.values())
    assert best > 0
    assert verdict["valid"]
    assert move["gain"] == pytest.approx(best)
    assert gains[move["vertex"], move["community"]] == pytest.approx(best)
    write(stable=1.0)
    verdict = delegraph.validate(edges, out, weight="weight")
    assert [rule["rule"] for rule in verdict["rules"]] == [7]


@pytest.mark.parametrize("text", [False, True])
def test_ids_of_any_size(edge_list, tmp_path, text):
    """Ids beyond 2^53 differ by one: a community is named by the least of them, exactly."""
    first = [(1 << 60) + i for i in range(6)]
    ids = [f"v{i}" for i in first] if text else first
    pairs = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3)]
    edges = edge_list(*([ids[pair[end]] for pair in pairs] for end in (0, 1)))
    table = delegraph.leiden(edges).table.sort_by("vertex")
    assert table.to_pydict() == {"vertex": ids, "community": [ids[0]] * 3 + [ids[3]] * 3}
    delegraph.leiden(edges, output=tmp_path / "out")
    assert delegraph.validate(edges, tmp_path / "out")["valid"]
