"""Programs over stores, by every engine on CPUs: in memory and on disk, on one rank and on
several.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import delegraph
from delegraph.kernels.base.team import Team
from delegraph.partition.store.store import Store, open_store
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.operations.operations import Operations
from delegraph.pipeline.engines.operations.program import Program, ProgramResult
from delegraph.pipeline.engines.operations.vectors import Vector
from delegraph.pipeline.engines.ranks import result as rank_result
from delegraph.pipeline.engines.ranks.edges import stream_team
from delegraph.pipeline.engines.ranks.search import load_rank
from delegraph.pipeline.ranks.communicator import telling_others
from delegraph.pipeline.results.checkpoint import Checkpoint

from .ranks import communicators, run


def stored(folder: Path, src: Any, dst: Any, options: BuildOptions, weight: Any = None) -> Store:
    """Build a store of the given edges, with their weights, if any."""
    table = {"src": np.asarray(src), "dst": np.asarray(dst)}
    if weight is not None:
        table["w"] = weight
    pq.write_table(pa.table(table), folder / "e.parquet")
    delegraph.build(
        folder / "e.parquet",
        folder / "graph.dg",
        threads=2,
        device="cpu",
        directed=options.directed,
        partitions=options.partitions,
        layout=options.layout,
        grid=None if options.grid is None else str(options.grid),
        threshold=options.threshold,
        order=options.order,
        loops=options.loops,
        weight=None if weight is None else "w",
    )
    return open_store(folder / "graph.dg")


def run_program(
    store: Store,
    program: Program,
    folder: Path,
    ranks: int = 1,
    on_disk: bool = False,
    threads: int = 2,
    checkpoint: Checkpoint | None = None,
    extra_bytes: int = 0,
) -> tuple[dict[str, np.ndarray], list[ProgramResult]]:
    """Run a program; return its columns by global id, and the result of each rank."""

    def one(communicator) -> ProgramResult:
        with telling_others(communicator.rank, communicator):
            place = communicator.rank, ranks
            team = stream_team(threads) if on_disk else Team(threads)
            weighted = program.weighted
            graph = load_rank(store, *place, team, on_disk=on_disk, weighted=weighted)
            result = program.run(
                Operations(graph, communicator, team, store.info.directed, checkpoint, extra_bytes),
                lambda *_: None,
            )
            parts = {k: (v.own, v.shared) for k, v in result.values.items() if type(v) is Vector}
            whole = {k: v for k, v in result.values.items() if type(v) is not Vector}
            if parts:
                rank_result.save_vectors(folder, parts, graph.held, communicator.rank)
            if communicator.rank == 0:
                rank_result.save_whole(folder, whole)  # pyright: ignore - arrays
            return result

    folder.mkdir(exist_ok=True)
    with communicators("single" if ranks == 1 else "threads", ranks) as group:
        results = run(group, one)
    for result in results:
        if isinstance(result, Exception):
            raise result
    names = list(results[0].values)
    columns = rank_result.gather_columns(store, folder, names)
    return dict(zip(names, columns, strict=True)), results
