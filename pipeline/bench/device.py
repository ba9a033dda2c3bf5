"""Graph500's protocol on a generated graph, all of it on one device: nothing on disk."""

from __future__ import annotations

import re
import time
from typing import Any, NamedTuple

from ...kernels.gpu import prepare as gpu_prepare
from ...kernels.gpu.device import Device
from ...kernels.gpu.graph import Array, Rows, derive
from ...kernels.gpu.prepare import Columns
from ...partition.errors import InputError
from ..build.generate import Kind, Recipe
from ..engines.device import DeviceSearcher
from ..run.execute import Progress
from .protocol import BenchReport, Timings, draw, report, run_all

_PIECE = 1 << 28  # rows generated at once


def parse_recipe(name: str) -> Recipe | None:
    """The graph that ``name`` asks for; None where it is no such name.

    >>> parse_recipe("kronecker:20").facts["scale"], parse_recipe("graph.dg")
    (20, None)
    """
    kind: Kind
    for kind in ("kronecker", "uniform"):
        if match := re.fullmatch(rf"{kind}:(\d+)", name):
            return Recipe(kind, scale=int(match[1]))
    if match := re.fullmatch(r"grid:(\d+)x(\d+)", name):
        return Recipe("grid", height=int(match[1]), width=int(match[2]))
    return None


class Measured(NamedTuple):
    """Searches of a generated graph. facts: of the graph, for the report. ids: of the sources."""

    runs: Timings
    ids: list[int | str]
    facts: dict[str, Any]
    preparation_seconds: float
    compile_seconds: float


def bench_generated(
    recipe: Recipe,
    sources: int,
    seed: int,
    device: Device | None,
    threads: int,
    progress: Progress | None = None,
) -> BenchReport:
    """Generate a graph, prepare it, search it ``sources`` times, check every result.

    Raises InputError without a device, DelegraphError if a result breaks a rule.
    """
    if device is None:
        raise InputError(
            "a graph is generated and searched at once on a GPU only: on the CPU, 'delegraph "
            "generate' and 'delegraph build' make a store to bench"
        )
    return report_of(measure(recipe, sources, seed, device, progress), device, threads, seed)


def measure(
    recipe: Recipe, sources: int, seed: int, device: Device, progress: Progress | None = None
) -> Measured:
    gpu_prepare.warm_up(device, recipe.candidates, False)
    with device.use() as cupy:
        batches = make_edges(recipe, device)
        rows = sum(len(src) for src, _ in batches)
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        prepared = gpu_prepare.prepare(device, batches, recipe.domain, directed=False)
        cupy.get_default_memory_pool().free_all_blocks()
        graph = derive(device, Rows(prepared.offsets, prepared.targets))
        cupy.cuda.Device().synchronize()
        done = time.perf_counter()
        searcher = DeviceSearcher(device, graph, prepared.rows_from)
        searcher.warm_up()
        compiled = time.perf_counter()
    chosen, ids = draw_positions(prepared.id_of_position, graph.used, sources, seed, device)
    runs = run_all(searcher, chosen, ids, progress)
    facts = facts_of(recipe, prepared.vertices, rows, graph.edges // 2)
    return Measured(runs, ids, facts, done - began, compiled - done)


def facts_of(recipe: Recipe, vertices: int, rows: int, edges: int) -> dict[str, Any]:
    facts = {"vertices": vertices, "rows": rows, "edges": edges, "directed": False}
    return {**recipe.facts, **facts}


def report_of(measured: Measured, device: Device | str, threads: int, seed: int) -> BenchReport:
    """device: of several ranks, theirs in words."""
    return report(
        measured.runs,
        graph=measured.facts,
        device=device,
        threads=threads,
        seed=seed,
        sources=measured.ids,
        directed=False,
        preparation_seconds=measured.preparation_seconds,
        load_seconds=0.0,
        compile_seconds=measured.compile_seconds,
    )


def make_edges(recipe: Recipe, device: Device, rank: int = 0, ranks: int = 1) -> list[Columns]:
    """All rows of a graph, or a rank's share of them, made on the device piece by piece."""
    begin, end = (recipe.candidates * at // ranks for at in (rank, rank + 1))
    starts = range(begin, end, _PIECE)
    return [recipe.rows_on(device, first, min(first + _PIECE, end)) for first in starts]


def draw_positions(
    id_of_position: Array, used: int, sources: int, seed: int, device: Device
) -> tuple[list[int], list[int | str]]:
    """Vertices to search from, by position and by id: by rising id, as of a store, the same ones.

    used: positions from there on have no edges.
    """
    with device.use() as cupy:
        by_id = cupy.argsort(id_of_position[:used])
        drawn = by_id[cupy.asarray(draw(used, sources, seed))]
        ids: list[int | str] = id_of_position[drawn].get().tolist()
        positions = drawn.get().tolist()
        del by_id, drawn
        cupy.get_default_memory_pool().free_all_blocks()
    return positions, ids
