"""Graph500's protocol on a generated graph, entirely on one device. Nothing is written to disk."""

from __future__ import annotations

import re
import time
from typing import Any

from ...kernels.gpu import prepare as gpu_prepare
from ...kernels.gpu import search as gpu_search
from ...kernels.gpu.device import Device
from ...kernels.gpu.graph import Array, Rows, derive
from ...kernels.gpu.prepare import Columns
from ...partition.errors import InputError
from ...partition.numbers import GREATEST, parse_integer, shown
from ..build.generate import Kind, Recipe
from ..engines.one_device.search import method_of, search_of, slices_bytes
from .protocol import (
    Benched,
    BenchOptions,
    BenchReport,
    DeviceSearcher,
    Measured,
    draw,
    report,
    run_all,
)

_PIECE = 1 << 28  # rows generated at once


def parse_recipe(name: str) -> Recipe | None:
    """Return the graph that a name such as kronecker:20 stands for; None if the text is no such
    name. Raises InputError for an incomplete name.

    >>> parse_recipe("kronecker:20").facts["scale"], parse_recipe("graph.dg")
    (20, None)
    """
    kind: Kind
    for kind in ("kronecker", "uniform"):
        if match := re.fullmatch(rf"{kind}:([0-9]+)", name):
            return Recipe(kind, scale=parse_integer(match[1], most=GREATEST))
    if match := re.fullmatch(r"grid:([0-9]+)x([0-9]+)", name):
        height, width = (parse_integer(side, most=GREATEST) for side in match.groups())
        return Recipe("grid", height=height, width=width)
    if re.match(r"(kronecker|uniform|grid):", name):
        raise InputError(
            f"{shown(name)}: write kronecker:SCALE, uniform:SCALE or grid:HEIGHTxWIDTH, such as "
            "kronecker:20"
        )
    return None


def bench_generated(recipe: Recipe, options: BenchOptions, device: Device | None) -> BenchReport:
    """Generate a graph, prepare it, search it from many sources, and check every result.

    Raises InputError without a device, DelegraphError if a result breaks a rule.
    """
    if device is None:
        raise InputError(
            "a generated graph needs a GPU: for the CPU, make a store with 'delegraph generate' "
            "and 'delegraph build'"
        )
    measured, benched = measure(recipe, options, device)
    return report(measured, benched, options.seed, device)


def measure(recipe: Recipe, options: BenchOptions, device: Device) -> tuple[Measured, Benched]:
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
        held = cupy.get_default_memory_pool().used_bytes()
        held += gpu_search.bytes_needed(graph.vertices, graph.edges, False)
        left = device.memory_bytes - held
        tried = slices_bytes(options.strategy, graph.vertices, graph.edges, left)
        gpu = search_of(device, graph, options.strategy if tried else "rows")
        searcher = DeviceSearcher(gpu, prepared.rows_from)
        searcher.warm_up()
        compiled = time.perf_counter()
    chosen, ids = draw_positions(prepared.id_of_position, graph.used, options, device)
    timings = run_all(searcher, chosen, ids, options.progress)
    facts = facts_of(recipe, prepared.vertices, rows, graph.edges // 2)
    benched = Benched(facts, False, ids, options.threads, done - began)
    return Measured(timings, 0.0, compiled - done, method_of(gpu)), benched


def facts_of(recipe: Recipe, vertices: int, rows: int, edges: int) -> dict[str, Any]:
    facts = {"vertices": vertices, "rows": rows, "edges": edges, "directed": False}
    return {**recipe.facts, **facts}


def make_edges(recipe: Recipe, device: Device, rank: int = 0, ranks: int = 1) -> list[Columns]:
    """Make all rows of a graph, or a rank's share of them, on the device, in pieces."""
    begin, end = (recipe.candidates * at // ranks for at in (rank, rank + 1))
    starts = range(begin, end, _PIECE)
    return [recipe.rows_on(device, first, min(first + _PIECE, end)) for first in starts]


def draw_positions(
    id_of_position: Array, used: int, options: BenchOptions, device: Device
) -> tuple[list[int], list[int | str]]:
    """Draw vertices to search from. Returns their positions and their ids. They are the vertices
    that ``protocol.draw_sources`` draws for a store of the graph.

    used: positions from ``used`` on have no edges.
    """
    with device.use() as cupy:
        by_id = cupy.argsort(id_of_position[:used])
        drawn = by_id[cupy.asarray(draw(used, options))]
        ids: list[int | str] = id_of_position[drawn].get().tolist()
        positions = drawn.get().tolist()
        del by_id, drawn
        cupy.get_default_memory_pool().free_all_blocks()
    return positions, ids
