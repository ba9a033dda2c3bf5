"""Graph500's protocol on a generated graph, all of it on one device: nothing on disk."""

from __future__ import annotations

import re
import time

from ..kernels import gpu_prepare
from ..kernels.device import Device
from ..kernels.device_graph import Rows, derive
from ..kernels.gpu_prepare import Columns, DeviceRows
from ..partition.errors import InputError
from .bench import BenchReport, draw, report, run_all
from .device_search import DeviceSearcher
from .execute import Progress
from .generate import Kind, Recipe

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
    gpu_prepare.warm_up(device, recipe.candidates, False)
    with device.use() as cupy:
        blocks = make_edges(recipe, device)
        rows = sum(len(src) for src, _ in blocks)
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        prepared = gpu_prepare.prepare(device, blocks, recipe.domain, directed=False)
        cupy.get_default_memory_pool().free_all_blocks()
        graph = derive(device, Rows(prepared.offsets, prepared.targets))
        cupy.cuda.Device().synchronize()
        done = time.perf_counter()
        searcher = DeviceSearcher(device, graph, prepared.rows_from)
        searcher.warm_up()
        compiled = time.perf_counter()
    chosen, ids = draw_ranks(prepared, graph.used, sources, seed, device)
    runs = run_all(searcher, chosen, ids, progress)
    return report(
        runs,
        graph={
            **recipe.facts,
            "vertices": prepared.vertices,
            "rows": rows,
            "edges": graph.edges // 2,
            "directed": False,
        },
        device=device,
        threads=threads,
        seed=seed,
        sources=ids,
        directed=False,
        preparation_seconds=done - began,
        load_seconds=0.0,
        compile_seconds=compiled - done,
    )


def make_edges(recipe: Recipe, device: Device) -> list[Columns]:
    """All rows of a graph, made on the device, piece by piece."""
    starts = range(0, recipe.candidates, _PIECE)
    ends = [min(first + _PIECE, recipe.candidates) for first in starts]
    return [recipe.rows_on(device, *piece) for piece in zip(starts, ends, strict=True)]


def draw_ranks(
    prepared: DeviceRows, used: int, sources: int, seed: int, device: Device
) -> tuple[list[int], list[int | str]]:
    """Vertices to search from, by rank and by id: by rising id, as of a store, the same ones.

    used: ranks from there on have no edges.
    """
    with device.use() as cupy:
        by_id = cupy.argsort(prepared.id_of_rank[:used])
        drawn = by_id[cupy.asarray(draw(used, sources, seed))]
        ids: list[int | str] = prepared.id_of_rank[drawn].get().tolist()
        ranks = drawn.get().tolist()
        del by_id, drawn
        cupy.get_default_memory_pool().free_all_blocks()
    return ranks, ids
