"""Directed PageRank and weak components with other libraries: Parquet in, Parquet out.

    python benchmarks/livejournal_peers.py TOOL components|pagerank EDGES OUT.parquet

Each is written the way its users would, with what it offers for the job. The rows of EDGES are
distinct and no self-loops, so nobody has to look for repeats; ids are non-negative integers, and
the vertices are those that occur in some row.

PageRank follows the rows from src to dst, with damping 0.85, for exactly ITERATIONS iterations,
from even ranks. What vertices without outgoing rows hold is spread evenly. Two libraries differ:

- igraph solves the linear system exactly (PRPACK) and has no iterations to count.
- GraphFrames begins with 1 for each vertex, drops what such vertices hold, and scales the ranks in
  the end to sum up to the number of vertices: the limit is the same, the way there is not.

DuckDB finds components by the least label among neighbours, then by that label's label (pointer
jumping), until all stay.
"""

# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false
# pyright: reportOptionalMemberAccess=false, reportOptionalCall=false
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from algorithm_peers import (
    DAMPING,
    LIBRARIES,
    Library,
    components_by,
    duckdb_least_labels,
    duckdb_ranks,
    pagerank_by,
)
from peers import igraph_graph, networkit_graph

ITERATIONS = 20


def scipy_directed(src, dst, n: int):
    """A row for each target, and how many edges leave each vertex."""
    import numpy as np
    from scipy.sparse import coo_matrix

    incoming = coo_matrix((np.ones(len(src)), (dst, src)), shape=(n, n)).tocsr()
    return incoming, np.bincount(src, minlength=n)


def scipy_pagerank(graph):
    from algorithm_peers import scipy_ranks

    return scipy_ranks(*graph, most=ITERATIONS, tolerance=0)


def networkit_directed(src, dst, n: int):
    return networkit_graph(src, dst, n, directed=True)


def networkit_pagerank(graph):
    import networkit as nk
    import numpy as np

    sinks = nk.centrality.SinkHandling.DistributeSinks
    found = nk.centrality.PageRank(graph, damp=DAMPING, tol=1e-300, distributeSinks=sinks)
    found.maxIterations = ITERATIONS
    found.run()
    return np.asarray(found.scores(asarray=True)), found.numberOfIterations()


def igraph_directed(src, dst, n: int):
    return igraph_graph(src, dst, n, directed=True)


def igraph_pagerank(graph):
    return graph.pagerank(directed=True, damping=DAMPING, implementation="prpack"), 0


DIRECTED: dict[str, Library] = {
    "networkit": LIBRARIES["networkit"]._replace(
        simple=networkit_directed, pagerank=networkit_pagerank
    ),
    "igraph": LIBRARIES["igraph"]._replace(simple=igraph_directed, pagerank=igraph_pagerank),
    "scipy": LIBRARIES["scipy"]._replace(simple=scipy_directed, pagerank=scipy_pagerank),
}


def duckdb_rows(edges: str):
    """A connection with the table ``forward`` of rows, and of vertices."""
    import duckdb

    db = duckdb.connect()
    db.execute("set preserve_insertion_order = false")
    glob = f"{edges}/*.parquet" if Path(edges).is_dir() else edges
    db.execute(f"create table forward as select src as a, dst as b from read_parquet('{glob}')")
    db.execute("create table vertices as select a as v from forward union select b from forward")
    return db


def duckdb_components(edges: str, out: str) -> None:
    db = duckdb_rows(edges)
    db.execute("create view edges as select a, b from forward union all select b, a from forward")
    duckdb_least_labels(db, out)


def duckdb_pagerank(edges: str, out: str) -> None:
    db = duckdb_rows(edges)
    db.execute("alter table forward rename to edges")
    duckdb_ranks(db, out, most=ITERATIONS, tolerance=None)


def graphframes_graph(edges: str, out: str):
    """A graph of a local Spark on two cores.

    GRAPHFRAMES_JAR is GraphFrames' Scala part; unset, Spark gets it from Maven. GRAPHFRAMES_MEMORY
    is the JVM's heap. Two hundred shuffle partitions, Spark's default, are for clusters: eight
    suit two cores.
    """
    from importlib.metadata import version

    from graphframes import GraphFrame
    from pyspark.sql import SparkSession

    scratch = str(Path(out).parent / "spark")
    jar = os.environ.get("GRAPHFRAMES_JAR")
    package = f"io.graphframes:graphframes-spark4_2.13:{version('graphframes-py')}"
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", os.environ.get("GRAPHFRAMES_MEMORY", "12g"))
        .config(*(("spark.jars", jar) if jar else ("spark.jars.packages", package)))
        .config("spark.driver.extraClassPath", jar or "")
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.local.dir", scratch)
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setCheckpointDir(f"{scratch}/checkpoints")
    rows = spark.read.parquet(edges).select("src", "dst")
    ends = rows.select(rows["src"].alias("id")).union(rows.select(rows["dst"].alias("id")))
    return spark, GraphFrame(ends.distinct(), rows)


def graphframes_components(edges: str, out: str) -> None:
    spark, graph = graphframes_graph(edges, out)
    # The documentation recommends -1: joins that Spark adapts, instead of broadcasts by hand.
    found = graph.connectedComponents(broadcastThreshold=-1)
    _finish(spark, found.selectExpr("id as vertex", "component"), out)


def graphframes_pagerank(edges: str, out: str) -> None:
    spark, graph = graphframes_graph(edges, out)
    found = graph.pageRank(resetProbability=1 - DAMPING, maxIter=ITERATIONS).vertices
    _finish(spark, found.selectExpr("id as vertex", "pagerank"), out)


def _finish(spark, found, out: str) -> None:
    """Write, and wait for the JVM: processor time counts once a process has been waited for."""
    found.write.mode("overwrite").parquet(out)
    gateway = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


OTHERS: dict[str, dict[str, Callable[[str, str], None]]] = {
    "duckdb": {"components": duckdb_components, "pagerank": duckdb_pagerank},
    "graphframes": {"components": graphframes_components, "pagerank": graphframes_pagerank},
}
PEERS = {  # and the modules that each needs
    "duckdb": ("duckdb",),
    "networkit": ("networkit",),
    "scipy": ("scipy",),
    "igraph": ("igraph",),
    "graphframes": ("pyspark", "graphframes"),
}


def main(tool: str, algorithm: str, edges: str, out: str) -> None:
    if tool in OTHERS:
        OTHERS[tool][algorithm](edges, out)
    else:
        job = {"components": components_by, "pagerank": pagerank_by}[algorithm]
        job(DIRECTED[tool], edges, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
