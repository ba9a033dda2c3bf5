"""The same job with other libraries: a Parquet edge list in, a Parquet of distances out.

    python benchmarks/peers.py polars EDGES SOURCE OUT.parquet

Each is written the way its users would, with what it offers for the job. None is asked for
parents, which delegraph writes too. Undirected; ids are non-negative integers.
"""

# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false
# pyright: reportOptionalMemberAccess=false, reportOptionalCall=false, reportUnusedExpression=false
from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def polars_(edges: str, source: int, out: str) -> None:
    """Joins of the rows with the frontier, both ways, and with what is visited."""
    import polars as pl

    rows = pl.read_parquet(edges, columns=["src", "dst"])
    frontier = pl.DataFrame({"vertex": [source]}, schema={"vertex": rows["src"].dtype})
    visited = frontier.with_columns(distance=pl.lit(0, pl.Int32))
    level = 0
    while len(frontier):
        level += 1
        reached = [
            rows.join(frontier, left_on=end, right_on="vertex", how="semi").select(vertex=other)
            for end, other in (("src", "dst"), ("dst", "src"))
        ]
        frontier = pl.concat(reached).unique().join(visited, on="vertex", how="anti")
        found = frontier.with_columns(distance=pl.lit(level, pl.Int32))
        visited = pl.concat([visited, found])
    ends = [rows.select(vertex=pl.col(end).unique()) for end in ("src", "dst")]
    vertices = pl.concat(ends).unique()
    vertices.join(visited, on="vertex", how="left").write_parquet(out)


def polars_gather(edges: str, source: int, out: str) -> None:
    """Distances gathered by id for every row at every level: no joins, ids as places."""
    # The fastest way found; it needs ids that are small numbers.
    import numpy as np
    import polars as pl

    rows = pl.read_parquet(edges, columns=["src", "dst"])
    n = int(max(rows["src"].max(), rows["dst"].max())) + 1  # pyright: ignore
    distance = np.full(n, -1, np.int32)
    distance[source] = 0
    level = 0
    while True:
        known = pl.lit(pl.Series(distance))
        from_src = (pl.col("a") == level) & (pl.col("b") < 0)
        from_dst = (pl.col("b") == level) & (pl.col("a") < 0)
        found = (
            rows.lazy()
            .with_columns(a=known.gather(pl.col("src")), b=known.gather(pl.col("dst")))
            .filter(from_src | from_dst)
            .select(pl.when(pl.col("a") == level).then("dst").otherwise("src").alias("vertex"))
            .collect()
        )
        if not len(found):
            break
        level += 1
        distance[found["vertex"].to_numpy()] = level
    present = np.zeros(n, bool)
    present[rows["src"].to_numpy()] = True
    present[rows["dst"].to_numpy()] = True
    vertex = np.flatnonzero(present)
    hops = pl.col("distance")
    pl.DataFrame({"vertex": vertex, "distance": distance[vertex]}).with_columns(
        pl.when(hops < 0).then(None).otherwise(hops).alias("distance")
    ).write_parquet(out)


def duckdb_(edges: str, source: int, out: str) -> None:
    """Semi-joins of the rows with the frontier and with what is unreached."""
    import duckdb

    db = duckdb.connect()
    glob = f"{edges}/*.parquet" if Path(edges).is_dir() else edges
    db.execute(f"create table rows as select src, dst from read_parquet('{glob}')")
    db.execute(
        f"""create table state as
        select vertex, case when vertex = {source} then 0 end as distance
        from (select distinct src as vertex from rows union select distinct dst from rows)"""
    )
    level = 0
    while True:
        level += 1
        frontier = f"(select vertex from state where distance = {level - 1}) frontier"
        db.execute(
            f"""create or replace table found as select distinct vertex from (
            select dst as vertex from rows semi join {frontier} on src = frontier.vertex
            union all select src from rows semi join {frontier} on dst = frontier.vertex
            ) reached semi join (select vertex from state where distance is null) unreached
            using (vertex)"""
        )
        if not db.execute("select count(*) from found").fetchall()[0][0]:
            break
        db.execute(
            f"update state set distance = {level} from found where state.vertex = found.vertex"
        )
    db.execute(f"copy state to '{out}' (format parquet)")


def _read(edges: str):
    import numpy as np
    import pyarrow.parquet as pq

    table = pq.read_table(edges, columns=["src", "dst"])
    src, dst = table["src"].to_numpy(), table["dst"].to_numpy()
    present = np.zeros(int(max(src.max(), dst.max())) + 1, bool)
    present[src] = True
    present[dst] = True
    return src, dst, present


def _write(out: str, present, distance) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    vertex = np.flatnonzero(present)
    hops = distance[vertex].astype(np.int32)
    table = pa.table({"vertex": vertex, "distance": pa.array(hops, mask=hops < 0)})
    pq.write_table(table, out)


def scipy_matrix(src, dst, n: int):
    import numpy as np
    from scipy.sparse import coo_matrix

    ones = np.ones(len(src), np.int8)
    return coo_matrix((ones, (src, dst)), shape=(n, n)).tocsr()


def scipy_search(matrix, source: int, directed: bool = False):
    """Distances from SciPy's order and predecessors: levels are runs of the order."""
    import numpy as np
    from scipy.sparse.csgraph import breadth_first_order

    order, before = breadth_first_order(matrix, source, directed=directed)
    place = np.zeros(matrix.shape[0], np.int64)
    place[order] = np.arange(len(order))
    parents = place[before[order[1:]]]  # rises along the order
    distance = np.full(matrix.shape[0], -1, np.int32)
    start, stop, level = 0, 1, 0
    while start < stop:
        distance[order[start:stop]] = level
        start, stop = stop, 1 + int(np.searchsorted(parents, stop, side="left"))
        level += 1
    return distance


def scipy_(edges: str, source: int, out: str) -> None:
    src, dst, present = _read(edges)
    _write(out, present, scipy_search(scipy_matrix(src, dst, len(present)), source))


def networkit_graph(src, dst, n: int, directed: bool = False):
    import networkit as nk
    import numpy as np

    pairs = (src.astype(np.uint64), dst.astype(np.uint64))
    return nk.graph.GraphFromCoo(pairs, n=n, weighted=False, directed=directed)


def networkit_search(graph, source: int):
    import networkit as nk
    import numpy as np

    search = nk.distance.BFS(graph, source, storePaths=False)
    search.run()
    distance = np.asarray(search.getDistances(asarray=True))
    distance[distance > len(distance)] = -1
    return distance


def networkit_(edges: str, source: int, out: str) -> None:
    src, dst, present = _read(edges)
    _write(out, present, networkit_search(networkit_graph(src, dst, len(present)), source))


def graphblas_matrix(src, dst, n: int):
    import graphblas as gb
    import numpy as np

    rows, columns = np.concatenate([src, dst]), np.concatenate([dst, src])
    return gb.Matrix.from_coo(rows, columns, True, dtype=bool, nrows=n, ncols=n)


def graphblas_search(matrix, source: int):
    """Levels by masked vector-matrix products over any.pair."""
    import graphblas as gb
    import numpy as np

    n = matrix.nrows
    level = gb.Vector(np.int32, n)
    frontier = gb.Vector(bool, n)
    frontier[source] = True
    depth = 0
    while frontier.nvals:
        level(frontier.S) << depth
        frontier(~level.S, replace=True) << gb.semiring.any_pair[bool](frontier @ matrix)
        depth += 1
    return level.to_dense(-1, np.int32)


def graphblas_(edges: str, source: int, out: str) -> None:
    src, dst, present = _read(edges)
    _write(out, present, graphblas_search(graphblas_matrix(src, dst, len(present)), source))


def igraph_graph(src, dst, n: int, directed: bool = False):
    import igraph
    import numpy as np

    return igraph.Graph(n, np.stack([src, dst], axis=1), directed=directed)


def igraph_search(graph, source: int):
    import numpy as np

    row = np.array(graph.distances(source=source)[0])
    return np.where(np.isfinite(row), row, -1).astype(np.int32)


def igraph_(edges: str, source: int, out: str) -> None:
    src, dst, present = _read(edges)
    _write(out, present, igraph_search(igraph_graph(src, dst, len(present)), source))


PEERS: dict[str, Callable[[str, int, str], None]] = {
    "polars": polars_,
    "polars-gather": polars_gather,
    "duckdb": duckdb_,
    "scipy": scipy_,
    "networkit": networkit_,
    "python-graphblas": graphblas_,
    "igraph": igraph_,
}

if __name__ == "__main__":
    PEERS[sys.argv[1]](sys.argv[2], int(sys.argv[3]), sys.argv[4])
