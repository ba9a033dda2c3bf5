"""Questions with other libraries: a Parquet edge list in, Parquet out.

    python benchmarks/algorithm_peers.py TOOL components|pagerank|leiden|louvain EDGES OUT.parquet

Each is written the way its users would, with what it offers for the job. Edges are undirected;
ids are non-negative integers. The vertices are the ids that occur in some row.

A component may have any label. PageRank counts each edge once and no self-loops, with damping
0.85. It starts even, spreads what vertices without edges hold evenly, and stops when an iteration
changes less than 1e-6 in all (L1), or after 100.
"""

# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false
# pyright: reportOptionalMemberAccess=false, reportOptionalCall=false, reportUnusedExpression=false
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from peers import _read, graphblas_matrix, igraph_graph, networkit_graph, scipy_matrix

DAMPING = 0.85
TOLERANCE = 1e-6
ITERATIONS = 100


class Library(NamedTuple):
    """A library that holds a graph in memory.

    graph, simple: of src, dst and the number of vertices; simple drops repeats and self-loops.
    components: labels of a graph. pagerank: ranks of a simple graph, and how many iterations.
    weighted: a graph of src, dst, weights and the number of vertices, each edge once. sssp: its
    distances from a vertex, of what is not reached inf or more than any path.
    betweenness: of a simple graph, from some sources, not scaled; None where the library takes
    only their number, and picks them. cores: core numbers of a simple graph. harmonic:
    of some vertices of a simple graph, not divided. clustering: coefficients of a simple graph.
    degree: sums of the weights of each vertex's edges, of a weighted graph. labels: by label
    propagation, of a simple graph.
    directed: a graph of src, dst and the number of vertices, each edge once. strong: labels of the
    strong components of this graph. forest: weights of the edges of a minimum spanning forest of a
    weighted graph. leiden, louvain: communities of a simple graph, a number for each vertex.
    """

    graph: Callable[..., Any]
    simple: Callable[..., Any]
    components: Callable[[Any], Any]
    pagerank: Callable[[Any], tuple[Any, int]]
    weighted: Callable[..., Any] | None = None
    sssp: Callable[[Any, int], Any] | None = None
    betweenness: Callable[[Any, list[int]], Any] | None = None
    cores: Callable[[Any], Any] | None = None
    harmonic: Callable[[Any, list[int]], Any] | None = None
    degree: Callable[[Any], Any] | None = None
    labels: Callable[[Any], Any] | None = None
    directed: Callable[..., Any] | None = None
    strong: Callable[[Any], Any] | None = None
    clustering: Callable[[Any], Any] | None = None
    forest: Callable[[Any], Any] | None = None
    leiden: Callable[[Any], Any] | None = None
    louvain: Callable[[Any], Any] | None = None


def components_by(library: Library, edges: str, out: str) -> None:
    """Ids are places; labels of places that are no vertices are left out."""
    import numpy as np

    src, dst, present = _read(edges)
    labels = library.components(library.graph(src, dst, len(present)))
    _write(out, np.flatnonzero(present), "component", np.asarray(labels)[present])


def pagerank_by(library: Library, edges: str, out: str) -> None:
    """Vertices are counted up first: the start and the teleport depend on how many there are."""
    import numpy as np

    src, dst, present = _read(edges)
    vertex = np.flatnonzero(present)
    place = np.cumsum(present) - 1
    rank, _ = library.pagerank(library.simple(place[src], place[dst], len(vertex)))
    _write(out, vertex, "pagerank", rank)


def communities_by(method: str, library: Library, edges: str, out: str) -> None:
    import numpy as np

    src, dst, present = _read(edges)
    vertex = np.flatnonzero(present)
    place = np.cumsum(present) - 1
    find = getattr(library, method)
    labels = find(library.simple(place[src], place[dst], len(vertex)))
    _write(out, vertex, "community", np.asarray(labels))


def _write(out: str, vertex, name: str, values) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"vertex": vertex, name: values}), out)


def scipy_simple(src, dst, n: int):
    """A matrix of ones, both ways."""
    import numpy as np
    from scipy.sparse import coo_matrix

    keep = src != dst
    src, dst = src[keep], dst[keep]
    ends = (np.concatenate([src, dst]), np.concatenate([dst, src]))
    matrix = coo_matrix((np.ones(len(ends[0])), ends), shape=(n, n)).tocsr()
    matrix.data[:] = 1  # repeats were added up
    return matrix


def scipy_components(matrix):
    from scipy.sparse.csgraph import connected_components

    return connected_components(matrix, directed=False)[1]


def scipy_strong(matrix):
    from scipy.sparse.csgraph import connected_components

    return connected_components(matrix, connection="strong")[1]


def scipy_pagerank(matrix):
    import numpy as np

    return scipy_ranks(matrix, np.diff(matrix.indptr))


def scipy_ranks(incoming, degree, most: int = ITERATIONS, tolerance: float = TOLERANCE):
    """Power iteration. incoming: a row for each target. degree: edges that leave each vertex."""
    import numpy as np

    n = incoming.shape[0]
    dangling = degree == 0
    share = DAMPING / np.maximum(degree, 1)
    rank = np.full(n, 1 / n)
    iterations = 0
    for _ in range(most):
        iterations += 1
        before = rank
        rank = incoming @ (before * share)
        rank += (1 - DAMPING + DAMPING * before[dangling].sum()) / n
        if np.abs(rank - before).sum() < tolerance:
            break
    return rank, iterations


def scipy_weighted(src, dst, weight, n: int):
    """Both ways."""
    import numpy as np
    from scipy.sparse import coo_matrix

    ends = (np.concatenate([src, dst]), np.concatenate([dst, src]))
    both = np.concatenate([weight, weight]).astype(np.float64)
    return coo_matrix((both, ends), shape=(n, n)).tocsr()


def scipy_sssp(matrix, source: int):
    """Searched as directed, it makes no transpose."""
    from scipy.sparse.csgraph import dijkstra

    return dijkstra(matrix, directed=True, indices=source)


def scipy_degree(matrix):
    import numpy as np

    return np.asarray(matrix.sum(axis=1)).ravel()


def scipy_forest(matrix):
    from scipy.sparse.csgraph import minimum_spanning_tree

    return minimum_spanning_tree(matrix).data


def networkit_simple(src, dst, n: int):
    graph = networkit_graph(src, dst, n)
    graph.removeMultiEdges()
    graph.removeSelfLoops()
    return graph


def networkit_components(graph):
    import networkit as nk

    found = nk.components.ConnectedComponents(graph)
    found.run()
    return found.getPartition().getVector()


def networkit_directed(src, dst, n: int):
    return networkit_graph(src, dst, n, directed=True)


def networkit_strong(graph):
    import networkit as nk

    found = nk.components.StronglyConnectedComponents(graph)
    found.run()
    return found.getPartition().getVector()


def networkit_pagerank(graph):
    """Divided by the sum in the end.

    NetworKit does not spread what vertices without edges hold in an undirected graph. As they would
    spread it evenly, the ranks keep their proportions without it.
    """
    import networkit as nk
    import numpy as np

    found = nk.centrality.PageRank(graph, damp=DAMPING, tol=TOLERANCE)
    found.norm = nk.centrality.Norm.L1_NORM
    found.maxIterations = ITERATIONS
    found.run()
    rank = np.asarray(found.scores(asarray=True))
    return rank / rank.sum(), found.numberOfIterations()


def networkit_weighted(src, dst, weight, n: int):
    import networkit as nk
    import numpy as np

    pairs = (src.astype(np.uint64), dst.astype(np.uint64))
    return nk.graph.GraphFromCoo((weight.astype(np.float64), pairs), n=n, weighted=True)


def networkit_sssp(graph, source: int):
    import networkit as nk
    import numpy as np

    found = nk.distance.Dijkstra(graph, source, storePaths=False)
    found.run()
    return np.asarray(found.getDistances(asarray=True))


def networkit_betweenness(graph, sources: list[int]) -> None:
    """It picks the sources itself, so its sums are others."""
    import networkit as nk

    nk.centrality.EstimateBetweenness(graph, len(sources), parallel=True).run()


def networkit_cores(graph):
    import networkit as nk

    found = nk.centrality.CoreDecomposition(graph)
    found.run()
    return found.scores()


def networkit_labels(graph):
    import networkit as nk

    found = nk.community.PLP(graph)
    found.run()
    return found.getPartition()


def networkit_clustering(graph):
    import networkit as nk
    import numpy as np

    found = nk.centrality.LocalClusteringCoefficient(graph, turbo=True).run()
    return np.asarray(found.scores(asarray=True))


def networkit_leiden(graph):
    import networkit as nk

    found = nk.community.ParallelLeiden(graph)
    found.run()
    return found.getPartition().getVector()


def networkit_louvain(graph):
    import networkit as nk

    found = nk.community.PLM(graph)
    found.run()
    return found.getPartition().getVector()


def graphblas_simple(src, dst, n: int):
    keep = src != dst
    return graphblas_matrix(src[keep], dst[keep], n)


def graphblas_components(matrix):
    """FastSV (Zhang, Azad, Hu 2020): labels and labels of labels, until these stay."""
    import graphblas as gb
    import numpy as np

    n = matrix.nrows
    places = np.arange(n)
    label = gb.Vector.from_dense(places)
    above = label.dup()  # the label of the label
    least = label.dup()
    while True:
        least(gb.binary.min) << gb.semiring.min_second(matrix @ above)
        roots = label.to_dense()
        hooks = gb.Vector.from_coo(roots, least.to_dense(), size=n, dup_op=gb.binary.min)
        for lower in (hooks, least, above):
            label(gb.binary.min) << lower
        before, above = above, label[label.to_dense()].new()
        if above.isequal(before):
            return label.to_dense()


def graphblas_pagerank(matrix):
    """Matrix-vector products over plus.second; the matrix is symmetric."""
    import graphblas as gb
    import numpy as np

    n = matrix.nrows
    degree = matrix.reduce_rowwise(gb.monoid.plus[float]).new()  # of vertices with edges alone
    share = gb.unary.minv(degree).new()
    share << share * DAMPING
    rank = gb.Vector.from_scalar(1 / n, n, dtype=np.float64)
    iterations = 0
    for _ in range(ITERATIONS):
        iterations += 1
        before = rank
        lost = before.dup(mask=~degree.S).reduce(gb.monoid.plus).get(0)
        even = (1 - DAMPING + DAMPING * lost) / n
        rank = gb.Vector.from_scalar(even, n, dtype=np.float64)
        shared = before.ewise_mult(share, gb.binary.times).new()
        rank(gb.binary.plus) << gb.semiring.plus_second[float](matrix @ shared)
        changed = gb.unary.abs(rank.ewise_mult(before, gb.binary.minus).new()).new()
        if changed.reduce(gb.monoid.plus).get() < TOLERANCE:
            break
    return rank.to_dense(), iterations


def graphblas_weighted(src, dst, weight, n: int):
    """Both ways."""
    import graphblas as gb
    import numpy as np

    rows, columns = np.concatenate([src, dst]), np.concatenate([dst, src])
    both = np.concatenate([weight, weight]).astype(np.float64)
    return gb.Matrix.from_coo(rows, columns, both, nrows=n, ncols=n)


def graphblas_degree(matrix):
    import graphblas as gb

    return matrix.reduce_rowwise(gb.monoid.plus).new().to_dense(0)


def graphblas_clustering(matrix):
    """Each triangle is found at each of its corners once, by masked products of halves."""
    import graphblas as gb
    import numpy as np

    lower, upper = gb.select.tril(matrix, -1).new(), gb.select.triu(matrix, 1).new()
    plus, pair = gb.monoid.plus, gb.semiring.plus_pair[np.int64]
    below = pair(lower @ lower.T).new(mask=lower.S)
    across = pair(upper @ lower.T).new(mask=upper.S)
    found = np.zeros(matrix.nrows)
    for corners in (
        below.reduce_rowwise(plus),
        below.reduce_columnwise(plus),
        across.reduce_rowwise(plus),
    ):
        found += corners.new().to_dense(0)
    degree = matrix.reduce_rowwise(gb.agg.count).new().to_dense(0)
    return found / np.maximum(degree * (degree - 1) / 2, 1)


def igraph_simple(src, dst, n: int):
    return igraph_graph(src, dst, n).simplify()


def igraph_components(graph):
    return graph.connected_components().membership


def igraph_pagerank(graph):
    """PRPACK solves the system until it is exact: it has no iterations to count."""
    return graph.pagerank(directed=False, damping=DAMPING, implementation="prpack"), 0


def igraph_betweenness(graph, sources: list[int]):
    import numpy as np

    return 2 * np.asarray(graph.betweenness(directed=False, sources=sources))  # a pair counts once


def igraph_harmonic(graph, vertices: list[int]):
    return graph.harmonic_centrality(vertices, normalized=False)


def igraph_weighted(src, dst, weight, n: int):
    graph = igraph_graph(src, dst, n)
    graph.es["weight"] = weight
    return graph


def igraph_degree(graph):
    return graph.strength(weights="weight")


def igraph_clustering(graph):
    import numpy as np

    return np.asarray(graph.transitivity_local_undirected(mode="zero"))


def duckdb_edges(edges: str):
    """A connection with the table ``edges`` of distinct edges, both ways, and of vertices."""
    import duckdb

    db = duckdb.connect()
    glob = f"{edges}/*.parquet" if Path(edges).is_dir() else edges
    db.execute(f"create table rows as select src, dst from read_parquet('{glob}')")
    db.execute("create table vertices as select src as v from rows union select dst from rows")
    db.execute(
        """create table edges as select src as a, dst as b from rows where src <> dst
        union select dst, src from rows where src <> dst"""
    )
    db.execute("drop table rows")
    return db


def duckdb_components(edges: str, out: str) -> None:
    """The least label of each vertex and its neighbours, then that label's label, until all stay.

    Labels of labels shorten long chains.
    """
    duckdb_least_labels(duckdb_edges(edges), out)


def duckdb_least_labels(db, out: str) -> None:
    """db: a connection with ``edges``, both ways, and ``vertices``."""
    db.execute("create table state as select v, v as component from vertices")
    while True:
        db.execute(
            """create or replace table found as
            with near as (
                select b as v, min(component) as component from edges join state on a = v group by b
            )
            select state.v, least(state.component, near.component) as component
            from state left join near using (v)"""
        )
        db.execute(
            """create or replace table next as select found.v, up.component
            from found join found up on found.component = up.v"""
        )
        changed = """select count(*) from next join state using (v)
            where next.component <> state.component"""
        if not db.execute(changed).fetchall()[0][0]:
            break
        db.execute("drop table state")
        db.execute("alter table next rename to state")
    db.execute(f"copy (select v as vertex, component from state) to '{out}' (format parquet)")


def duckdb_pagerank(edges: str, out: str) -> None:
    """A join and a sum of shares for each iteration."""
    duckdb_ranks(duckdb_edges(edges), out)


def duckdb_ranks(db, out: str, most: int = ITERATIONS, tolerance: float | None = TOLERANCE) -> None:
    """db: a connection with ``edges``, from a to b, and ``vertices``. tolerance: None for none."""
    db.execute(
        """create table state as
        select v, coalesce(degree, 0) as degree, 1 / (select count(*) from vertices) as rank
        from vertices left join (select a as v, count(*) as degree from edges group by a) using (v)
        """
    )
    n = db.execute("select count(*) from vertices").fetchall()[0][0]
    for _ in range(most):
        lost = "select coalesce(sum(rank), 0) from state where degree = 0"
        even = (1 - DAMPING + DAMPING * db.execute(lost).fetchall()[0][0]) / n
        db.execute(
            f"""create or replace table next as
            with share as (select v, rank / degree as part from state where degree > 0),
            came as (select b as v, sum(part) as got from edges join share on a = v group by b)
            select v, degree, {even} + {DAMPING} * coalesce(got, 0) as rank
            from state left join came using (v)"""
        )
        changed = float("inf")
        if tolerance is not None:
            change = "select sum(abs(next.rank - state.rank)) from next join state using (v)"
            changed = db.execute(change).fetchall()[0][0]
        db.execute("drop table state")
        db.execute("alter table next rename to state")
        if tolerance is not None and changed < tolerance:
            break
    db.execute(
        f"copy (select v as vertex, rank as pagerank from state) to '{out}' (format parquet)"
    )


def polars_edges(edges: str):
    """Distinct edges, both ways, and vertices."""
    import polars as pl

    rows = pl.read_parquet(edges, columns=["src", "dst"])
    ends = [rows.select(v=pl.col(end).unique()) for end in ("src", "dst")]
    apart = rows.filter(pl.col("src") != pl.col("dst"))
    both = [apart.select(a="src", b="dst"), apart.select(a="dst", b="src")]
    return pl.concat(both).unique(), pl.concat(ends).unique()


def polars_components(edges: str, out: str) -> None:
    """The least label of each vertex and its neighbours, then that label's label, until all stay.

    Labels of labels shorten long chains.
    """
    import polars as pl

    pairs, vertices = polars_edges(edges)
    state = vertices.with_columns(component="v")
    while True:
        near = (
            pairs.lazy()
            .join(state.lazy(), left_on="a", right_on="v")
            .group_by("b")
            .agg(near=pl.col("component").min())
        )
        found = state.lazy().join(near, left_on="v", right_on="b", how="left")
        least = found.with_columns(least=pl.min_horizontal("component", "near")).collect()
        up = least.select(least="v", up="least")
        state = least.join(up, on="least", how="left")
        same = (state["component"] == state["up"]).all()
        state = state.select("v", component="up")
        if same:
            break
    state.rename({"v": "vertex"}).write_parquet(out)


def polars_pagerank(edges: str, out: str) -> None:
    """A join and a sum of shares for each iteration."""
    import polars as pl

    pairs, vertices = polars_edges(edges)
    n = len(vertices)
    degrees = pairs.group_by("a").agg(degree=pl.len())
    state = vertices.join(degrees, left_on="v", right_on="a", how="left")
    state = state.with_columns(rank=pl.lit(1 / n))
    for _ in range(ITERATIONS):
        lost = state.filter(pl.col("degree").is_null()).select(pl.sum("rank")).item()
        share = state.lazy().select("v", part=pl.col("rank") / pl.col("degree"))
        came = (
            pairs.lazy()
            .join(share, left_on="a", right_on="v")
            .group_by("b")
            .agg(came=pl.col("part").sum())
        )
        even = (1 - DAMPING + DAMPING * lost) / n
        rank = even + DAMPING * pl.col("came").fill_null(0)
        found = state.lazy().join(came, left_on="v", right_on="b", how="left")
        ranked = found.select("v", "degree", rank=rank, before="rank").collect()
        changed = (ranked["rank"] - ranked["before"]).abs().sum()
        state = ranked.drop("before")
        if changed < TOLERANCE:
            break
    state.select(vertex="v", pagerank="rank").write_parquet(out)


def igraph_cores(graph):
    return graph.coreness()


def igraph_forest(graph):
    edges = graph.spanning_tree(weights="weight", return_tree=False)
    return graph.es[edges]["weight"]


def igraph_leiden(graph):
    """Two iterations, its default."""
    return graph.community_leiden(objective_function="modularity", n_iterations=2).membership


def igraph_louvain(graph):
    return graph.community_multilevel().membership


LIBRARIES: dict[str, Library] = {
    "scipy": Library(
        scipy_matrix,
        scipy_simple,
        scipy_components,
        scipy_pagerank,
        scipy_weighted,
        scipy_sssp,
        degree=scipy_degree,
        directed=scipy_matrix,
        strong=scipy_strong,
        forest=scipy_forest,
    ),
    "networkit": Library(
        networkit_graph,
        networkit_simple,
        networkit_components,
        networkit_pagerank,
        networkit_weighted,
        networkit_sssp,
        networkit_betweenness,
        networkit_cores,
        labels=networkit_labels,
        directed=networkit_directed,
        strong=networkit_strong,
        clustering=networkit_clustering,
        leiden=networkit_leiden,
        louvain=networkit_louvain,
    ),
    "python-graphblas": Library(
        graphblas_matrix,
        graphblas_simple,
        graphblas_components,
        graphblas_pagerank,
        graphblas_weighted,
        degree=graphblas_degree,
        clustering=graphblas_clustering,
    ),
    "igraph": Library(
        igraph_graph,
        igraph_simple,
        igraph_components,
        igraph_pagerank,
        igraph_weighted,
        betweenness=igraph_betweenness,
        cores=igraph_cores,
        harmonic=igraph_harmonic,
        degree=igraph_degree,
        clustering=igraph_clustering,
        forest=igraph_forest,
        leiden=igraph_leiden,
        louvain=igraph_louvain,
    ),
}
QUERIES: dict[str, dict[str, Callable[[str, str], None]]] = {
    "duckdb": {"components": duckdb_components, "pagerank": duckdb_pagerank},
    "polars": {"components": polars_components, "pagerank": polars_pagerank},
}
PEERS = (*LIBRARIES, *QUERIES)


def main(tool: str, algorithm: str, edges: str, out: str) -> None:
    if tool in QUERIES:
        QUERIES[tool][algorithm](edges, out)
    else:
        jobs = {"components": components_by, "pagerank": pagerank_by}
        job = jobs.get(algorithm, partial(communities_by, algorithm))
        job(LIBRARIES[tool], edges, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
