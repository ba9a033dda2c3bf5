"""A judge notices a change of any cell of a right result."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph
from delegraph.pipeline.questions import FORMS
from support.marks import slow

STRANGER = 999


class Graph(NamedTuple):
    """A store of random edges with weights. weight_of: weights by both ends of an edge."""

    path: Path
    vertices: int
    weight_of: dict[tuple[int, int], int]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory) -> dict[str, Graph]:
    return {kind: graph(tmp_path_factory.mktemp(kind), kind) for kind in ("undirected", "directed")}


def graph(folder: Path, kind: str) -> Graph:
    """Build a store of one large component and, apart, a path of four vertices."""
    rng = np.random.default_rng(5)
    src, dst = rng.integers(0, 40, (2, 90))
    src, dst = np.append(src, [50, 51, 52]), np.append(dst, [51, 52, 53])
    ends = np.unique(np.sort([src, dst], axis=0), axis=1)
    src, dst = ends[:, ends[0] != ends[1]]
    weight = rng.integers(1, 9, len(src))
    pq.write_table(pa.table({"src": src, "dst": dst, "weight": weight}), folder / "e.parquet")
    store = folder / "graph.dg"
    directed = kind == "directed"
    delegraph.build(folder / "e.parquet", store, directed=directed, weight="weight", threads=1)
    weight_of = dict(
        zip(zip(src.tolist(), dst.tolist(), strict=True), weight.tolist(), strict=True)
    )
    if not directed:
        weight_of |= {(v, u): weight for (u, v), weight in weight_of.items()}
    return Graph(store, len({*src.tolist(), *dst.tolist()}), weight_of)


PAIRS = [(3, 7), (7, 3), (50, 53), (3, 52), (11, 11), *((i, i + 5) for i in range(20))]

QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "bfs": ("bfs", {"source": 3}),
    "bfs to a depth": ("bfs", {"source": 3, "max_depth": 2}),
    "bfs of each": ("bfs", {"sources": [*range(20), 51]}),
    "bfs of each to a depth": ("bfs", {"sources": [3, 7, 51], "max_depth": 2}),
    "bfs together": ("bfs", {"sources": [3, 7], "together": True}),
    "components": ("components", {}),
    "pagerank": ("pagerank", {}),
    "pagerank of few": ("pagerank", {"iterations": 2}),
    "hits": ("hits", {}),
    "hits of few": ("hits", {"max_iterations": 2}),
    "eigenvector": ("eigenvector", {}),
    "katz": ("katz", {}),
    "katz of few": ("katz", {"alpha": 0.001, "max_iterations": 3}),
    "labels": ("labels", {}),
    "labels of few": ("labels", {"iterations": 2}),
    "leiden": ("leiden", {}),
    "louvain": ("louvain", {"seed": 2}),
    "communities by level": ("leiden", {"hierarchy": True}),
    "communities of Potts": ("leiden", {"objective": "cpm", "resolution": 0.1}),
    "cores": ("cores", {}),
    "cores of a core": ("cores", {"min": 3}),
    "degree": ("degree", {}),
    "strong": ("strong", {}),
    "condensation": ("strong", {"condense": True}),
    "clustering": ("clustering", {}),
    "truss": ("truss", {}),
    "forest": ("forest", {}),
    "sssp": ("sssp", {"source": 3}),
    "sssp to a distance": ("sssp", {"source": 3, "max_distance": 8}),
    "path": ("path", {"pairs": PAIRS}),
    "path by hops": ("path", {"pairs": PAIRS, "unweighted": True}),
    "path of one pair": ("path", {"source": 3, "target": 38}),
    "path with nodes": ("path", {"pairs": PAIRS, "nodes": True}),
    "path of one pair with nodes": ("path", {"source": 3, "target": 38, "nodes": True}),
    "closeness": ("closeness", {}),
    "closeness of some": ("closeness", {"sources": [3, 7, 8]}),
    "harmonic": ("harmonic", {}),
    "harmonic of some": ("harmonic", {"sources": [3, 7, 8], "normalized": True}),
    "eccentricity": ("eccentricity", {}),
    "eccentricity at random": ("eccentricity", {"sources": 5, "seed": 2}),
    "betweenness": ("betweenness", {"normalized": True}),
    "betweenness of some": ("betweenness", {"sources": [3, 7, 8]}),
    "betweenness of one": ("betweenness", {"sources": [3]}),
    "betweenness at random": ("betweenness", {"sources": 5, "seed": 2, "normalized": True}),
}


def other_values(rng: np.random.Generator, value: Any, kind: pa.DataType, name: str) -> list[Any]:
    """Return other values that a cell may hold."""
    if name in ("distance", "eccentricity", "core") and pa.types.is_integer(kind):
        known = value or 0
        return [known + 1, known - 1, 2 * known + 3, int(rng.integers(0, 9)), 2**31 - 1, None]
    if pa.types.is_floating(kind):
        known = value or 0.0
        few = [known * 1.01, known + 1e-3, known / 2, -known, 0.0, float("nan"), float("inf")]
        return [*few, 1e300, None]
    return [int(rng.integers(0, 54)), int(rng.integers(0, 54)), STRANGER, -1, None]


def still_right(
    graph: Graph, question: str, column: str, row: dict[str, Any], to: Any, rows: list[dict]
) -> bool:
    """Return whether the changed cell is as right: another valid parent, or a PageRank that two
    iterations allow.
    """
    edge = to, row.get("vertex", -1)
    if column == "parent" and row["distance"] and edge in graph.weight_of:
        (above,) = (other["distance"] for other in rows if other["vertex"] == to)
        step = graph.weight_of[edge] if question.startswith("sssp") else 1
        return above is not None and above + step == row["distance"]
    if column == "pagerank" and question == "pagerank of few" and to is not None:
        # After two iterations any start may still matter as much; but not what jumps alone make.
        return 0.15 / graph.vertices <= to < row["pagerank"] + 0.8
    return False


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("undirected", 1),
        slow("directed", 1),
        *(slow(kind, seed) for kind in ("undirected", "directed") for seed in range(2, 5)),
    ],
)
@pytest.mark.parametrize("question", QUESTIONS)
def test_changed_cells_are_found(graphs, tmp_path, question, kind, seed):
    graph = graphs[kind]
    name, options = QUESTIONS[question]
    if kind == "directed" and not FORMS[name].on_directed:
        pytest.skip(f"{name} is a question of undirected graphs")
    getattr(delegraph, name)(graph.path, output=tmp_path / "out", threads=1, **options)
    right = delegraph.validate(graph.path, tmp_path / "out", threads=1)
    assert (right["valid"], right["judged"], right["unjudged"]) == (True, "all", 0)
    (path,) = (tmp_path / "out").glob("*.parquet")
    table = pq.read_table(path)
    rows = table.to_pylist()
    if not rows:
        pytest.skip("an undirected graph has no edges between strong components")
    rng = np.random.default_rng(seed)
    for field in table.schema:
        row = int(rng.integers(len(rows)))
        was = rows[row][field.name]
        for to in other_values(rng, was, field.type, field.name):
            if to == was or still_right(graph, question, field.name, rows[row], to, rows):
                continue
            values = table[field.name].to_pylist()
            values[row] = to
            at = table.schema.get_field_index(field.name)
            nullable = pa.field(field.name, field.type)
            changed = table.set_column(at, nullable, pa.array(values, field.type))
            pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
            verdict = delegraph.validate(graph.path, tmp_path / "out", threads=1)
            assert not verdict["valid"], (field.name, rows[row], to)
            assert verdict["rules"]
