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
    import polars as pl

    rows = pl.read_parquet(edges, columns=["src", "dst"])
    both = pl.concat([rows, rows.select(src="dst", dst="src")])
    frontier = pl.DataFrame({"src": [source]}, schema={"src": rows["src"].dtype})
    visited = frontier.select(vertex="src", distance=pl.lit(0, pl.Int32))
    level = 0
    while len(frontier):
        level += 1
        frontier = (
            both.join(frontier, on="src", how="semi")
            .select(src="dst")
            .unique()
            .join(visited, left_on="src", right_on="vertex", how="anti")
        )
        found = frontier.select(vertex="src", distance=pl.lit(level, pl.Int32))
        visited = pl.concat([visited, found])
    vertices = both.select(vertex="src").unique()
    vertices.join(visited, on="vertex", how="left").write_parquet(out)


def duckdb_(edges: str, source: int, out: str) -> None:
    import duckdb

    db = duckdb.connect()
    glob = f"{edges}/*.parquet" if Path(edges).is_dir() else edges
    db.execute(f"create view rows as select src, dst from read_parquet('{glob}')")
    db.execute("create table ways as select src, dst from rows union all select dst, src from rows")
    db.execute(f"create table visited as select {source}::bigint as vertex, 0 as distance")
    level = 0
    while True:
        level += 1
        found = db.execute(
            f"""insert into visited
            select distinct dst, {level} from ways
            where src in (select vertex from visited where distance = {level - 1})
            and dst not in (select vertex from visited)"""
        ).fetchone()
        if not found or not found[0]:
            break
    db.execute(
        f"""copy (select v.vertex, distance from (select distinct src as vertex from ways) v
        left join visited using (vertex)) to '{out}' (format parquet)"""
    )


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


def networkit_graph(src, dst, n: int):
    import networkit as nk
    import numpy as np

    pairs = (src.astype(np.uint64), dst.astype(np.uint64))
    return nk.graph.GraphFromCoo(pairs, n=n, weighted=False, directed=False)


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


def igraph_graph(src, dst, n: int):
    import igraph
    import numpy as np

    return igraph.Graph(n, np.stack([src, dst], axis=1))


def igraph_search(graph, source: int):
    import numpy as np

    row = np.array(graph.distances(source=source)[0])
    return np.where(np.isfinite(row), row, -1).astype(np.int32)


def igraph_(edges: str, source: int, out: str) -> None:
    src, dst, present = _read(edges)
    _write(out, present, igraph_search(igraph_graph(src, dst, len(present)), source))


PEERS: dict[str, Callable[[str, int, str], None]] = {
    "polars": polars_,
    "duckdb": duckdb_,
    "scipy": scipy_,
    "networkit": networkit_,
    "python-graphblas": graphblas_,
    "igraph": igraph_,
}

if __name__ == "__main__":
    PEERS[sys.argv[1]](sys.argv[2], int(sys.argv[3]), sys.argv[4])
