"""The public functions: what each command does, for Python.

Common parameters: ``threads``, cores to use, None for all this process may use;
``overwrite``, whether an output that exists is replaced once the new one is whole;
``progress``, called with a step's name, its tasks done and its tasks in all, from any thread.
All raise InputError for bad input, before anything is written, and DelegraphError for what
fails while running.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .run.execute import Executor, Progress, available_threads

# Each function loads what it needs itself, so that none waits for the others' modules.
if TYPE_CHECKING:
    from ..partition.store.grid import Grid, LayoutName
    from .algorithms.bfs import SearchOutcome
    from .bench.protocol import BenchReport
    from .bench.ranks import ScalingRow
    from .build.build import Built
    from .build.generate import Kind
    from .results.validate import Verdict
    from .run.cluster import ClusterOptions
    from .run.plan import Plan
    from .run.resources import Resources

AnyPath = str | PathLike[str]


def generate(
    kind: Kind,
    output: AnyPath,
    *,
    threads: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **recipe: Any,
) -> int:
    """Write a synthetic edge list; ``recipe``: the fields of Recipe. Returns its rows."""
    from .build.generate import Recipe, generate_edges

    executor = Executor(_threads(threads), progress)
    return generate_edges(Recipe(kind, **recipe), Path(output), executor, overwrite)


def build(
    edges: AnyPath,
    output: AnyPath,
    *,
    threads: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    resources: Resources | None = None,
    **options: Any,
) -> Built:
    """Prepare a Parquet edge list as a store; ``options``: the fields of BuildOptions."""
    from .build.build import build_graph
    from .build.prepare import BuildOptions
    from .run.resources import Resources

    return build_graph(
        str(edges),
        Path(output),
        BuildOptions(**options),
        _threads(threads),
        resources or Resources(),
        overwrite,
        progress,
    )


def plan(
    edges: AnyPath,
    *,
    exact: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    resources: Resources | None = None,
    **options: Any,
) -> Plan:
    """What ``build`` would hold and write, step by step; ``options``: as there.

    exact: by passes that count, instead of upper bounds by the metadata. Of a store instead of
    edges: what ``bfs`` would hold.
    """
    from ..partition.disk.outputs import is_store
    from .build.build import plan_graph
    from .build.prepare import BuildOptions
    from .engines.store import plan_search
    from .run.resources import Resources

    resources = resources or Resources()
    if is_store(edges):
        return plan_search(str(edges), _threads(threads), resources)
    return plan_graph(
        str(edges),
        BuildOptions(**options),
        _threads(threads),
        resources,
        exact,
        progress,
    )


def bfs(
    graph: AnyPath,
    source: int | str,
    output: AnyPath,
    *,
    max_depth: int | None = None,
    checkpoint_seconds: float = 60.0,
    timeout_seconds: float = 60.0,
    profile: AnyPath | None = None,
    threads: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    resources: Resources | None = None,
    **options: Any,
) -> SearchOutcome:
    """Search a store or an edge list from ``source``; ``options``: those of BuildOptions.

    Writes the result folder and the run's record beside it; profile: also this Parquet file, with a
    row for each superstep.
    """
    from .algorithms.bfs import search_to_result
    from .build.prepare import BuildOptions
    from .engines.search_run import SearchOptions
    from .run.resources import Resources

    threads = _threads(threads)
    return search_to_result(
        str(graph),
        str(source),
        Path(output),
        SearchOptions(max_depth, threads, checkpoint_seconds, timeout_seconds),
        BuildOptions(**options) if options else None,
        Executor(threads, progress),
        resources or Resources(),
        overwrite,
        None if profile is None else Path(profile),
    )


def validate(store: AnyPath, result: AnyPath, *, threads: int | None = None) -> Verdict:
    """Judge a result against its graph by Graph500's rules."""
    from .results.validate import validate_result

    return validate_result(str(store), str(result), _threads(threads))


def bench(
    graph: AnyPath,
    *,
    sources: int = 64,
    seed: int = 1,
    device: str = "auto",
    device_memory_limit: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> BenchReport:
    """Search from many random sources, validate each result, measure traversal rates.

    graph: a store, or what to generate on a GPU: "kronecker:24", "uniform:24", "grid:2048x2048".
    By several workers: ``bench_across``.
    """
    from .bench.device import bench_generated, parse_recipe
    from .bench.protocol import bench_store
    from .run.devices import choose_device, device_errors

    recipe = parse_recipe(str(graph))
    with device_errors():
        if recipe is not None:
            chosen = choose_device("cuda" if device == "auto" else device, device_memory_limit)
            return bench_generated(recipe, sources, seed, chosen, _threads(threads), progress)
        chosen = choose_device(device, device_memory_limit)
        must_fit = device != "auto"
        return bench_store(str(graph), sources, seed, _threads(threads), progress, chosen, must_fit)


def bench_across(
    graph: AnyPath,
    cluster: ClusterOptions,
    *,
    scaling: str | None = None,
    layout: LayoutName | None = None,
    grid: Grid | None = None,
    threshold: int | None = None,
    sources: int = 64,
    seed: int = 1,
    timeout_seconds: float = 60.0,
    device: str = "auto",
    memory_limit: int | None = None,
    device_memory_limit: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[ScalingRow]:
    """``bench`` across workers: of a store, or of a generated graph, which takes a GPU each.

    scaling: by 1, 2, 4, ... of the workers: "strong", of the same graph; "weak", of generated ones
    with as large a share for each; None: by all of them. layout ("delegate" if None), grid,
    threshold: of a generated graph, as BuildOptions has them.
    memory_limit: of a store, as Resources has it.
    """
    from ..partition.errors import InputError
    from .bench.device import parse_recipe
    from .bench.ranks import Placing, bench_on_workers, ranks_up_to, scaling_runs
    from .bench.store_ranks import bench_store_on_workers
    from .run.resources import Resources

    recipe = parse_recipe(str(graph))
    if scaling is not None and not cluster.workers:
        raise InputError("--scaling needs --workers, to know how far to go")
    workers = cluster.workers or 0
    if recipe is None:
        for name, value in (("layout", layout), ("grid", grid), ("threshold", threshold)):
            if value is not None:
                raise InputError(f"--{name} was decided when the store was built: leave it out")
        if scaling == "weak":
            raise InputError(
                "--scaling weak takes graphs of several sizes, as kronecker:27: of a store say "
                "--scaling strong"
            )
        resources = Resources(
            memory_limit,
            cluster=cluster,
            device=device,
            device_memory_limit=device_memory_limit,
        )
        return bench_store_on_workers(
            *(
                str(graph),
                ranks_up_to(workers) if scaling else [0],
                sources,
                seed,
                _threads(threads),
            ),
            *(resources, timeout_seconds, progress),
        )
    if scaling is not None and grid is not None:
        raise InputError(
            "--grid is for one number of workers, --scaling for several: leave one out"
        )
    if device not in ("auto", "cuda"):
        raise InputError(
            f"workers generate and search a graph on a GPU each: leave out --device {device}"
        )
    if memory_limit is not None:
        raise InputError(
            "--memory-limit is for stores: a graph that is generated stands on the GPUs"
        )
    runs = scaling_runs(recipe, workers, scaling) if scaling else [(0, recipe)]
    return bench_on_workers(
        *(runs, sources, seed, _threads(threads), cluster),
        placing=Placing(layout or "delegate", grid, threshold),
        timeout=timeout_seconds,
        device_limit=device_memory_limit,
        progress=progress,
    )


def _threads(threads: int | None) -> int:
    return available_threads() if threads is None else threads
