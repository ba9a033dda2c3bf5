"""The public functions. Each does what the command of its name does.

Options that several functions take:

- ``memory_limit``, ``device_memory_limit``: bytes, or text such as ``"4GB"``.
- ``device``: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
- ``workers``, ``scheduler``, ``scheduler_file``: a number of local processes, or a Dask cluster, by
  the address of its scheduler, by a ``distributed.Client``, which stays open, or by a file.
- ``timeout``: seconds to wait for a scheduler or a worker that shows no sign of life.
- ``scratch``, ``restart``: a folder for files between steps; whether to start over.
- ``directed``, ``src``, ``dst``: how an edge list is read.
- ``partitions``, ``layout``, ``grid``, ``threshold``, ``order``: the shape of a store; a grid is
  ``"3x2"``.
- ``weight``, ``duplicates``: the column of weights; which weight is kept for rows that repeat an
  edge, ``"min"``, ``"max"`` or ``"sum"``.
- ``loops``: what becomes of self-loops, ``"drop"`` or ``"keep"``.
- ``threads``: cores to use; None for all that this process may use.
- ``checkpoint``: seconds between two saves of a long run.
- ``overwrite``: whether to replace an output that exists, once the new one is complete.
- ``progress``: True shows a progress bar, by tqdm if it is installed. Or a function that is called
  with a step's name, the number of tasks done, and the number of tasks in all, from any thread.

Paths of edge lists, results and files of vertices may be URLs: ``s3://``, ``gs://``, ``abfs://`` or
``file://``. Every function raises InputError for bad input, before anything is written, and
DelegraphError for a failure while running.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Unpack

from ..partition.disk.outputs import local
from ..partition.disk.urls import AnyPath, named
from ..partition.errors import DelegraphError, InputError
from ..partition.numbers import check_whole
from .build.prepare import BuildOptions, StoreOptions, build_options_of
from .parameter_checks import AnyVertices, named_vertices
from .python_side.progress import as_function
from .python_side.public import public
from .questions import FORMS, Form, load
from .run.execute import Executor, Progress
from .run.resources import ResourceOptions, Resources, as_plain, resources_of, usable_threads

# Each function loads what it needs itself, so that none waits for the others' modules.
if TYPE_CHECKING:
    from ..partition.input.weights import Duplicates, LoopsChoice
    from ..partition.store.store import Store
    from .bench.ablation import AblationReport
    from .bench.across import ScalingRow
    from .bench.algorithms import AlgorithmReport
    from .bench.algorithms_across import AlgorithmRow
    from .bench.protocol import BenchReport
    from .build.build import Built
    from .edge_sources.kinds import EdgeSource
    from .engines.auto_device import Asked
    from .engines.engine import Strategy
    from .graph import Graph
    from .judging.searches import Verdict
    from .run.plan import Plan


class AllOptions(ResourceOptions, StoreOptions, total=False):
    """Options of resources, of reading edges and of storing them."""


@public
def build(
    edges: AnyPath | EdgeSource,
    output: AnyPath,
    *,
    threads: int | None = None,
    overwrite: bool = False,
    progress: Progress | bool | None = None,
    **options: Unpack[AllOptions],
) -> Built:
    """Prepare an edge list as a store.

    Args:
        edges: a path to Parquet, or a graph in memory: a table, a sparse matrix, a NetworkX graph,
            or pairs.
        output: the folder of the store.

    Returns:
        The store, the record, and whether the store was there already.
    """
    from .build.build import build_graph
    from .edge_sources.parquet import as_edge_list

    resources, chosen = sorted_options(with_choices_of(edges, options))
    with as_edge_list(edges, chosen) as (path, chosen):
        return build_graph(
            path,
            local(named(output)),
            chosen,
            usable_threads(threads),
            resources,
            overwrite,
            as_function(progress),
        )


@public
def plan(
    edges: AnyPath,
    *,
    exact: bool = False,
    algorithm: str = "bfs",
    threads: int | None = None,
    progress: Progress | bool | None = None,
    **options: Unpack[AllOptions],
) -> Plan:
    """Say what a command would hold in memory and write to disk, step by step. Nothing is written.

    Args:
        edges: an edge list, to plan ``build``; or a store, to plan a question.
        exact: count by reading the edges, instead of taking upper bounds from metadata.
        algorithm: the question to plan for a store, with its default options.
    """
    from ..partition.disk.outputs import is_store
    from .algorithms.run import resources_for
    from .build.build import plan_graph
    from .engines.auto_device import Asked, is_asked_for, with_device
    from .engines.plan import plan_search

    resources, chosen = sorted_options(options)
    edges = named(edges)
    if is_store(edges):
        if exact or options.keys() & StoreOptions.__annotations__.keys():
            raise InputError(
                f"{edges} is a store, which was read and built with options of its own: leave "
                "these out"
            )
        form = _form(algorithm)
        program: Any = None if form.program is None else load(form.program)
        notes: list[str] = []
        store, usually = open_store(edges), Asked(form, form.cost and form.cost.usually)
        cores = usable_threads(threads)
        why_not = notes if is_asked_for(resources) else []
        resources = with_device(usually, store, BuildOptions(), resources, cores, notes)
        resources = resources_for(form.name, resources, why_not, bool(store.info.loops))
        # Rows of each source are written while the graph is held.
        writes_early = form.keys == ("source", "vertex")
        plan = plan_search(edges, cores, resources, program, writes_early)
        return replace(plan, notes=(*notes, *plan.notes))
    if algorithm != "bfs":
        raise InputError(f"{edges} is not a store, so its build is planned: leave out --algorithm")
    threads = usable_threads(threads)
    return plan_graph(edges, chosen, threads, resources, exact, as_function(progress))


def _form(name: str) -> Form:
    if name not in FORMS:
        raise InputError(f"{name!r}: there are {', '.join(FORMS)}")
    return FORMS[name]


@public
def open(
    graph: AnyPath | EdgeSource,
    *,
    device: str = "auto",
    memory_limit: int | str | None = None,
    device_memory_limit: int | str | None = None,
    threads: int | None = None,
    directed: bool | None = None,
    src: str | None = None,
    dst: str | None = None,
    weight: str | None = None,
    duplicates: Duplicates | None = None,
    loops: LoopsChoice | None = None,
    progress: Progress | bool | None = None,
) -> Graph:
    """Load a graph once, to ask it many questions.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        directed, src, dst, weight, duplicates, loops: how an edge list is read; a store has its
            own.
    """
    return open_to_ask(
        graph,
        None,
        threads=threads,
        directed=directed,
        src=src,
        dst=dst,
        weight=weight,
        duplicates=duplicates,
        loops=loops,
        progress=progress,
        device=device,
        memory_limit=memory_limit,
        device_memory_limit=device_memory_limit,
    )


def open_to_ask(
    graph: AnyPath | EdgeSource,
    asked: Asked | None,
    *,
    threads: int | None = None,
    directed: bool | None = None,
    src: str | None = None,
    dst: str | None = None,
    weight: str | None = None,
    duplicates: Duplicates | None = None,
    loops: LoopsChoice | None = None,
    progress: Progress | bool | None = None,
    **resources: Unpack[ResourceOptions],
) -> Graph:
    """Load a graph. asked: the only question that it will be asked; None for any number of them.
    The other arguments are those of ``open``.
    """
    from .edge_sources.parquet import as_edge_list
    from .graph import open_graph

    if directed is None:
        directed = with_choices_of(graph, {}).get("directed")
    chosen = _reading(directed, src, dst, weight, duplicates, loops)
    allowed = resources_of(**resources)
    executor = Executor(usable_threads(threads), as_function(progress))
    with ExitStack() as temporary:
        as_read = as_edge_list(graph, chosen or BuildOptions())
        path, choices = temporary.enter_context(as_read)
        opened = open_graph(path, chosen and choices, executor, allowed, temporary, asked)
        if not isinstance(graph, (str, PathLike)):
            opened.location = f"{type(graph).__name__} in memory"
        return opened


@public
def open_store(path: AnyPath) -> Store:
    """Open a store, to look at what it holds: read its manifest, and check that every file is
    there with its size.
    """
    from ..partition.store.store import open_store

    return open_store(named(path))


@public
def info(
    path: AnyPath, *, src: str = "src", dst: str = "dst", ranks: int | None = None
) -> dict[str, Any]:
    """Describe an edge list, a store or a result, as ``delegraph info --json`` does.

    Args:
        src, dst: the columns of an edge list.
        ranks: for a store, also tell what this many workers would each hold and send.
    """
    from .reports.report import describe

    ranks = as_plain(ranks)
    check_whole("ranks", ranks, 1)
    return describe(named(path), src, dst, ranks)


@public
def validate(
    graph: AnyPath,
    result: AnyPath,
    *,
    memory_limit: int | str | None = None,
    scratch: str | None = None,
    threads: int | None = None,
    directed: bool | None = None,
    src: str | None = None,
    dst: str | None = None,
    weight: str | None = None,
    duplicates: Duplicates | None = None,
    personalize: AnyPath | None = None,
    sources: AnyVertices | None = None,
    progress: Progress | bool | None = None,
) -> Verdict:
    """Judge a result against its graph, by rules that make a result right.

    Args:
        graph: a store or an edge list.
        result: the folder of the result.
        directed, src, dst: how an edge list is read. Edges are directed, too, if the
            result says so, and self-loops are kept if they were kept for the result.
        weight, duplicates: as in ``build``.
        personalize: the file that a PageRank was personalized by.
        sources: the sources of a betweenness, where there were too many for the result to name.
    """
    from .algorithms.validate import validate_result

    chosen = _reading(directed, src, dst, weight, duplicates)
    resources = resources_of(memory_limit=memory_limit, scratch=scratch)
    executor = Executor(usable_threads(threads), as_function(progress))
    file = None if personalize is None else named(personalize)
    source_vertices = None if sources is None else named_vertices(sources)
    return validate_result(
        named(graph), named(result), chosen, executor, resources, file, source_vertices
    )


@public
def report(
    path: AnyPath,
    output: AnyPath,
    overwrite: bool = False,
    *,
    graph: AnyPath | None = None,
    src: str = "src",
    dst: str = "dst",
    weight: str | None = None,
) -> None:
    """Write an HTML page about a store, a result, a batch or the output of ``bench --json``.

    The page is one file, without scripts, that loads nothing.

    Args:
        path: a store, a result, the job file of a batch, or a file that holds what ``bench --json``
            printed.
        output: the page to write.
        overwrite: whether to replace another such page.
        graph: of a result, the store or the edge list that it is of. The page then has a drawing of
            a part of the graph.
        src: the column where edges begin, of an edge list.
        dst: the column where edges end.
        weight: the column of weights, if the result goes by weights.

    Raises:
        InputError: if ``graph`` is not the graph of the result.
    """
    from .reports.page.write import write_page

    write_page(named(path), local(named(output)), overwrite, graph, src, dst, weight)


@public
def bench(
    graph: AnyPath,
    *,
    sources: int = 64,
    seed: int = 1,
    device: str = "auto",
    device_memory_limit: int | str | None = None,
    strategy: Strategy = "auto",
    threads: int | None = None,
    progress: Progress | bool | None = None,
) -> BenchReport:
    """Search from many random sources, validate each result, and measure traversal rates.

    The protocol is Graph500's. ``bench_across`` measures several workers, ``bench_algorithm`` other
    questions, and ``bench_ablation`` single optimizations; all are in ``delegraph.pipeline.api``.

    Args:
        graph: a store, or a graph to generate on a GPU: ``"kronecker:24"``, ``"uniform:24"`` or
            ``"grid:2048x2048"``.
        sources: how many searches to run.
        strategy: what one GPU searches over, ``"rows"`` or ``"slices"``; ``"auto"`` tries both.
    """
    from .bench.device import bench_generated, parse_recipe
    from .bench.protocol import BenchOptions, bench_store
    from .run.devices import device_errors

    recipe = parse_recipe(str(graph))
    on_a_gpu = recipe is not None and device == "auto"
    asked = resources_of(
        device="cuda" if on_a_gpu else device, device_memory_limit=device_memory_limit
    )
    try:
        chosen = asked.chosen_device()
    except InputError as error:
        if not on_a_gpu:
            raise
        raise InputError(
            f"{graph} needs a GPU, and none is usable ({error}): on the CPU, "
            "use 'delegraph generate' and 'delegraph build', and give the store"
        ) from error
    options = BenchOptions(
        sources, seed, usable_threads(threads), progress=as_function(progress), strategy=strategy
    )
    with device_errors():
        if recipe is not None:
            return bench_generated(recipe, options, chosen)
        return bench_store(named(graph), options, chosen, must_fit=device not in ("auto", "cpu"))


@public
def bench_ablation(
    graph: AnyPath,
    *,
    sources: int = 64,
    seed: int = 1,
    threads: int | None = None,
    progress: Progress | bool | None = None,
) -> AblationReport:
    """Search a store by masked products, in memory on the CPU, with and without each of five
    optimizations; every result is held against that of the search's own kernels.
    """
    from .bench.ablation import bench_ablation
    from .bench.protocol import BenchOptions

    options = BenchOptions(sources, seed, usable_threads(threads), progress=as_function(progress))
    return bench_ablation(named(graph), options)


@public
def bench_algorithm(
    graph: AnyPath,
    algorithm: str,
    *,
    runs: int = 16,
    seed: int = 1,
    device: str = "auto",
    memory_limit: int | str | None = None,
    device_memory_limit: int | str | None = None,
    threads: int | None = None,
    progress: Progress | bool | None = None,
) -> AlgorithmReport:
    """Run a question such as "pagerank" many times over a store that stays loaded, and validate the
    last result. For a generated graph, a temporary store is built.
    """
    from ..partition.store.store import open_store
    from .bench.algorithms import (
        bench_algorithm,
        check_algorithm,
        generated_store,
        needs_weights,
    )
    from .bench.device import parse_recipe
    from .bench.protocol import BenchOptions

    check_algorithm(algorithm, runs)
    threads, recipe = usable_threads(threads), parse_recipe(str(graph))
    limits: Any = {"memory_limit": memory_limit, "device_memory_limit": device_memory_limit}
    with ExitStack() as stack:
        if recipe is not None:
            recipe = replace(recipe, weighted=needs_weights(algorithm))
            executor = Executor(threads, as_function(progress))
            resources = resources_of(device=device, **limits)
            graph = stack.enter_context(generated_store(recipe, executor, resources))
        store = open_store(named(graph))
        opened = stack.enter_context(open(graph, device=device, threads=threads, **limits))
        options = BenchOptions(runs, seed, threads, as_function(progress))
        report = bench_algorithm(store, algorithm, opened, options, resources_of(**limits), recipe)
        if device not in ("auto", "cpu") and report["device"] == "cpu":
            raise DelegraphError(f"not on {device}: {'; '.join(opened.notes)}")
    return report


@public
def bench_algorithm_across(
    graph: AnyPath,
    algorithm: str,
    *,
    scaling: str | None = None,
    runs: int = 16,
    seed: int = 1,
    threads: int | None = None,
    progress: Progress | bool | None = None,
    **options: Unpack[ResourceOptions],
) -> list[AlgorithmRow]:
    """Run ``bench_algorithm`` across workers, over a store, or over a generated graph, for which a
    temporary store is built.

    scaling: as in ``bench_across``.
    """
    from .bench.algorithms_across import bench_algorithm_by_workers
    from .bench.protocol import BenchOptions

    chosen = BenchOptions(runs, seed, usable_threads(threads), as_function(progress))
    resources = resources_of(**options)
    return bench_algorithm_by_workers(named(graph), algorithm, scaling, resources, chosen)


@public
def bench_across(
    graph: AnyPath,
    *,
    scaling: str | None = None,
    sources: int = 64,
    seed: int = 1,
    threads: int | None = None,
    progress: Progress | bool | None = None,
    **options: Unpack[AllOptions],
) -> list[ScalingRow]:
    """Run ``bench`` across workers, over a store, or over a generated graph, for which each worker
    takes a GPU.

    scaling: None measures all of the workers. The other values measure 1, 2, 4, ... of the workers:
    "strong" on the same graph; "weak" on generated graphs with as large a share for each worker.
    layout, grid, threshold: of a generated graph. memory_limit: of a store.
    """
    from .bench.across import bench_by_workers
    from .bench.protocol import BenchOptions

    resources, shape = sorted_options(options)
    shaped = options.keys() & StoreOptions.__annotations__.keys()
    bench_options = BenchOptions(sources, seed, usable_threads(threads), as_function(progress))
    return bench_by_workers(named(graph), scaling, resources, shape, shaped, bench_options)


def _reading(
    directed: bool | None,
    src: str | None,
    dst: str | None,
    weight: str | None = None,
    duplicates: Duplicates | None = None,
    loops: LoopsChoice | None = None,
) -> BuildOptions | None:
    """Return the options by which an edge list is read; None if no option is given."""
    given = {"directed": directed, "src": src, "dst": dst}
    given |= {"weight": weight, "duplicates": duplicates, "loops": loops}
    given = {name: value for name, value in given.items() if value is not None}
    return build_options_of(**given) if given else None  # pyright: ignore[reportArgumentType]


def with_choices_of(graph: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for a graph. A graph in memory starts over, since nobody can tell whether
    an earlier attempt had the same graph, and may say by itself whether it is directed.
    """
    if isinstance(graph, (str, PathLike)):
        return {**options}
    from .edge_sources.kinds import directed_of

    directed = directed_of(graph)
    direction = {} if directed is None else {"directed": directed}
    return {**direction, **options, "restart": True}


def sorted_options(options: Any) -> tuple[Resources, BuildOptions]:
    """Sort options into those of resources and those of building. Raises TypeError for an option
    that is neither.
    """
    shape = {name: value for name, value in options.items() if name in StoreOptions.__annotations__}
    resource_options = {name: value for name, value in options.items() if name not in shape}
    unknown = resource_options.keys() - ResourceOptions.__annotations__
    if unknown:
        raise TypeError(f"no such option: {', '.join(sorted(unknown))}")
    return resources_of(**resource_options), build_options_of(**shape)
