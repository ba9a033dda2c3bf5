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
- ``threads``: cores to use; None for all that this process may use.
- ``checkpoint``: seconds between two saves of a long run.
- ``overwrite``: whether to replace an output that exists, once the new one is complete.
- ``progress``: a function that is called with a step's name, the number of tasks done, and the
  number of tasks in all, from any thread.

Paths of edge lists, results and files of vertices may be URLs: ``s3://``, ``gs://``, ``abfs://`` or
``file://``. Every function raises InputError for bad input, before anything is written, and
DelegraphError for a failure while running.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Unpack

from ..kernels.base.threads import useful_threads
from ..partition.disk.memory import as_bytes
from ..partition.disk.outputs import local
from ..partition.disk.urls import named
from ..partition.errors import DelegraphError, InputError
from ..partition.numbers import check_whole
from . import parameters
from .build.prepare import BuildOptions, StoreOptions, build_options_of
from .parameters import AnyPath, Some, Vertex, Vertices
from .questions import FORMS, load
from .run.execute import Executor, Progress
from .run.resources import ResourceOptions, Resources, as_plain, resources_of

# Each function loads what it needs itself, so that none waits for the others' modules.
if TYPE_CHECKING:
    from ..partition.input.weights import Duplicates
    from ..partition.store.manifest import GraphInfo
    from .algorithms.programs import Question
    from .algorithms.run import Algorithm, Outcome
    from .bench.ablation import AblationReport
    from .bench.across import ScalingRow
    from .bench.algorithms import AlgorithmReport
    from .bench.algorithms_across import AlgorithmRow
    from .bench.protocol import BenchReport
    from .build.build import Built
    from .build.generate import Kind
    from .engines.engine import Strategy
    from .engines.operations.program import Program
    from .frames import Frame
    from .graph import Graph
    from .interchange.convert import Converted
    from .interchange.delimited import IdType
    from .interchange.delimited import WeightType as ChosenWeightType
    from .interchange.formats import FormatName
    from .judging.searches import Verdict
    from .run.plan import Plan


class AllOptions(ResourceOptions, StoreOptions, total=False):
    """What a run may use, and how edges are read and stored."""


class RunningOptions(AllOptions, total=False):
    """Of what is asked of a graph. checkpoint: seconds between two saves of a long run."""

    threads: int | None
    checkpoint: float
    overwrite: bool
    progress: Progress | None


def generate(
    kind: Kind,
    output: AnyPath,
    *,
    threads: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **recipe: Any,
) -> int:
    """Write a synthetic edge list, and return the number of its rows.

    Args:
        kind: ``"kronecker"``, ``"uniform"`` or ``"grid"``.
        output: the folder to write.
        recipe: the options of ``delegraph generate KIND``, such as ``scale=16, seed=1``.
    """
    from .build.generate import Recipe, generate_edges

    executor = Executor(_threads(threads), progress)
    plain = {name: as_plain(value) for name, value in recipe.items()}
    return generate_edges(Recipe(kind, **plain), local(named(output)), executor, overwrite)


def convert(
    input: AnyPath,
    output: AnyPath,
    *,
    format: FormatName | None = None,
    src: str | None = None,
    dst: str | None = None,
    weight: str | None = None,
    header: bool = True,
    id_type: IdType = "auto",
    weight_type: ChosenWeightType = "auto",
    max_unpacked: int | str | None = None,
    memory_limit: int | str | None = None,
    threads: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Converted:
    """Convert a graph file of another program to a Parquet edge list.

    An output named ``.npz`` makes SciPy's sparse matrix of a store instead, and one named ``.txt``
    makes LDBC Graphalytics' text of a result.

    Args:
        format: the format of a graph file; None tells it by the file's name.
        src, dst, weight: columns; of CSV and TSV by name or number, of SNAP's text by number.
        header: whether the first line of CSV or TSV names the columns.
        id_type, weight_type: ``"auto"`` decides by the beginning of the file.
        max_unpacked: how much a compressed file may unpack to, in bytes or as ``"4GB"``;
            ``"none"`` for any amount.

    Returns:
        The record, and whether the output was there already.
    """
    from .interchange.convert import convert_graph
    from .interchange.delimited import Choices

    choices = Choices(src, dst, weight, header, id_type, weight_type)
    executor = Executor(_threads(threads), progress)
    resources = resources_of(memory_limit=memory_limit)
    most = math.inf if max_unpacked == "none" else as_bytes(max_unpacked)
    of = named(input), local(named(output)), format
    return convert_graph(*of, choices, executor, resources, overwrite, most)


def build(
    edges: AnyPath | Frame,
    output: AnyPath,
    *,
    threads: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Unpack[AllOptions],
) -> Built:
    """Prepare an edge list as a store.

    Args:
        edges: a path to Parquet, or a table of Arrow, pandas or Polars.
        output: the folder of the store.

    Returns:
        The store, the record, and whether the store was there already.
    """
    from .build.build import build_graph
    from .frames import as_path, columns_of

    if not isinstance(edges, (str, PathLike)):
        options["restart"] = True  # nobody can tell whether it is the table of an earlier attempt
    resources, chosen = _sorted(options)
    with as_path(edges, columns_of(chosen)) as path:
        return build_graph(
            path, local(named(output)), chosen, _threads(threads), resources, overwrite, progress
        )


def plan(
    edges: AnyPath,
    *,
    exact: bool = False,
    algorithm: str = "bfs",
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[AllOptions],
) -> Plan:
    """Say what a command would hold in memory and write to disk, step by step. Nothing is written.

    Args:
        edges: an edge list, to plan ``build``; or a store, to plan a question.
        exact: count by reading the edges, instead of taking upper bounds from metadata.
        algorithm: the question to plan for a store, with its default options.
    """
    from ..partition.disk.outputs import is_store
    from .build.build import plan_graph
    from .engines.plan import plan_search

    resources, chosen = _sorted(options)
    edges = named(edges)
    if is_store(edges):
        if exact or options.keys() & StoreOptions.__annotations__.keys():
            raise InputError(
                f"{edges} is a store, which was read and built with options of its own: leave "
                "these out"
            )
        program = None
        if algorithm != "bfs":
            asked: Any = {**options}
            resources = replace(resources, device=_where(asked).get("device", "auto"))
            program = _program_of(algorithm)
        writes = algorithm == "bfs-each"
        return plan_search(edges, _threads(threads), resources, program, writes)
    if algorithm != "bfs":
        raise InputError(f"{edges} is not a store, so its build is planned: leave out --algorithm")
    return plan_graph(edges, chosen, _threads(threads), resources, exact, progress)


def _program_of(form: str) -> Callable[[GraphInfo], Program]:
    """The program that ``plan`` plans, of a graph."""
    if form not in FORMS:
        raise InputError(f"{form!r}: there are {', '.join(FORMS)}")
    program = FORMS[form].program
    assert program is not None
    return load(program)


def bfs(
    graph: AnyPath,
    source: Vertex | None = None,
    output: AnyPath | None = None,
    *,
    sources: Vertices | None = None,
    together: bool = False,
    max_depth: int | None = None,
    profile: AnyPath | None = None,
    strategy: Strategy = "auto",
    **options: Unpack[RunningOptions],
) -> Outcome:
    """Search a graph breadth-first, from one source or from several.

    Writes a result folder and its run record.

    Args:
        graph: a store or an edge list.
        source: the id of the vertex to search from.
        output: the folder of the result.
        sources: instead of ``source``, several ids: a sequence, text with commas between them, or a
            Parquet file with a column ``vertex``. Each is searched from on its own.
        together: find the distance to the nearest of ``sources`` instead.
        max_depth: the greatest distance to search, in hops; None for no bound.
        profile: a Parquet file to write, with a row for each superstep of a search from one source.
        strategy: what one GPU searches over, ``"rows"`` or ``"slices"``; ``"auto"`` is rows here.

    Raises:
        InputError: also if a source is not in the graph.
    """
    if output is None:
        raise TypeError("bfs() needs an output")
    parameters.check_sources(source, sources, together)
    if source is not None:
        asked = parameters.bfs(source, max_depth, strategy)
        return _run(asked, graph, output, options, profile)
    if profile is not None or strategy != "auto":
        raise InputError("--profile and --strategy need a search from one --source")
    assert sources is not None
    if together:
        return _ask(parameters.bfs_together(sources, max_depth), graph, output, options)
    return _run(parameters.bfs_each(sources, max_depth), graph, output, _where(options))


def components(graph: AnyPath, output: AnyPath, **options: Unpack[RunningOptions]) -> Outcome:
    """Find the connected components of a graph; the weakly connected ones if it is directed.

    ``component`` is the least vertex id of the component, in the order of the ids' type.

    Args:
        graph: a store or an edge list.
        output: the folder of the result.
    """
    return _ask(parameters.components(), graph, output, options)


def pagerank(
    graph: AnyPath,
    output: AnyPath,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
    iterations: int | None = None,
    personalize: AnyPath | Mapping[Vertex, float] | None = None,
    dangling: Literal["even", "none"] = "even",
    unweighted: bool = False,
    precision: Literal["double", "single"] = "double",
    **options: Unpack[RunningOptions],
) -> Outcome:
    """Compute PageRank. The values add up to 1.

    The run stops when an iteration changes less than ``tolerance`` in all (L1 norm), or after
    ``max_iterations``. The record says whether it has converged.

    Args:
        graph: a store or an edge list. Edges count by their weights, if the graph has any.
        output: the folder of the result.
        damping: the probability to follow an edge, above 0 and below 1.
        iterations: run exactly this many iterations instead.
        personalize: where the walk restarts: a weight for each of some vertices, or a Parquet file
            with ``vertex`` and, unless all weights are equal, ``weight``.
        dangling: ``"even"`` spreads the rank of vertices without outgoing edges as restarts are
            spread; ``"none"`` drops it.
        unweighted: ignore the weights of the graph.
        precision: ``"double"``, or ``"single"`` for float32 values with a relative error of at most
            1e-6, which GPUs compute faster.
    """
    question = parameters.pagerank(
        damping=damping,
        tolerance=tolerance,
        max_iterations=max_iterations,
        iterations=iterations,
        personalize=personalize,
        dangling=dangling,
        unweighted=unweighted,
        precision=precision,
    )
    return _ask(question, graph, output, options)


def sssp(
    graph: AnyPath,
    source: Vertex,
    output: AnyPath,
    *,
    max_distance: float | None = None,
    **options: Unpack[RunningOptions],
) -> Outcome:
    """Find shortest paths from one vertex, by weights.

    Args:
        graph: a store with weights, or an edge list whose column ``weight=`` names.
        source: the id of the vertex to start from.
        output: the folder of the result.
        max_distance: ignore longer paths; None for no bound.

    Raises:
        InputError: also if the graph has no weights, or the source is not in it.
        DelegraphError: also if a distance of integer weights exceeds 2^53.
    """
    return _ask(parameters.sssp(source, max_distance), graph, output, options)


def closeness(
    graph: AnyPath,
    output: AnyPath,
    *,
    sources: Some | None = None,
    seed: int = 1,
    **options: Unpack[RunningOptions],
) -> Outcome:
    """Compute the closeness of every vertex, by distances to it in hops (Wasserman and Faust).

    Args:
        graph: a store or an edge list.
        output: the folder of the result.
        sources: only these vertices: a number of random ones, some ids, or a Parquet file with a
            column ``vertex``.
        seed: chooses the random vertices.
    """
    return _ask(parameters.closeness(sources, seed), graph, output, options)


def betweenness(
    graph: AnyPath,
    output: AnyPath,
    *,
    sources: Some | None = None,
    seed: int = 1,
    normalized: bool = False,
    **options: Unpack[RunningOptions],
) -> Outcome:
    """Compute the betweenness of every vertex: its share of shortest paths, by hops (Brandes 2001).

    Args:
        graph: a store or an edge list.
        output: the folder of the result.
        sources: count the paths from these vertices only, and scale the sums up: a number of random
            vertices, some ids, or a Parquet file with a column ``vertex``.
        seed: chooses the random vertices.
        normalized: divide by the number of pairs of other vertices.
    """
    return _ask(parameters.betweenness(sources, seed, normalized), graph, output, options)


def eccentricity(
    graph: AnyPath,
    output: AnyPath,
    *,
    sources: Some | None = None,
    seed: int = 1,
    **options: Unpack[RunningOptions],
) -> Outcome:
    """Compute the distance from every vertex to the farthest one that it reaches.

    The record holds bounds of the diameter.

    Args:
        graph: a store or an edge list.
        output: the folder of the result.
        sources, seed: as for ``closeness``.
    """
    return _ask(parameters.eccentricity(sources, seed), graph, output, options)


def _where(options: RunningOptions) -> RunningOptions:
    """On CPUs, unless a device is named, or its memory limited."""
    named = options.get("device", "auto") not in ("auto", "cpu")
    if not named and options.get("device_memory_limit") is None:
        return {**options, "device": "cpu"}
    return options


def _ask(question: Question, graph: AnyPath, output: AnyPath, options: RunningOptions) -> Outcome:
    from .algorithms.programs import ByProgram

    return _run(ByProgram(question), graph, output, _where(options))


def _run(
    algorithm: Algorithm[Any],
    graph: AnyPath,
    output: AnyPath,
    options: RunningOptions,
    profile: AnyPath | None = None,
) -> Outcome:
    from .algorithms.run import CHECKPOINT_SECONDS, RunOptions, run_to_result

    rest: dict[str, Any] = {**options}
    threads, progress = _threads(rest.pop("threads", None)), rest.pop("progress", None)
    overwrite = rest.pop("overwrite", False)
    running = RunOptions(threads, rest.pop("checkpoint", CHECKPOINT_SECONDS))
    resources, chosen = _sorted(rest)
    shaped = rest.keys() & StoreOptions.__annotations__.keys()
    return run_to_result(
        algorithm,
        named(graph),
        named(output),
        running,
        chosen if shaped else None,
        Executor(threads, progress),
        resources,
        overwrite,
        None if profile is None else named(profile),
    )


def open(
    graph: AnyPath | Frame,
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
    progress: Progress | None = None,
) -> Graph:
    """Load a graph once, to ask it many questions.

    Args:
        graph: a store or an edge list, or a table of Arrow, pandas or Polars.
        directed, src, dst, weight, duplicates: how an edge list is read; a store has its own.
    """
    from .frames import as_path, columns_of
    from .graph import open_graph

    chosen = _reading(directed, src, dst, weight, duplicates)
    resources = resources_of(
        device=device, memory_limit=memory_limit, device_memory_limit=device_memory_limit
    )
    executor = Executor(_threads(threads), progress)
    with ExitStack() as temporary:
        path = temporary.enter_context(as_path(graph, columns_of(chosen or BuildOptions())))
        return open_graph(path, chosen, executor, resources, temporary)


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
    sources: Vertices | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """Judge a result against its graph, by rules that make a result right.

    Args:
        graph: a store or an edge list.
        result: the folder of the result.
        directed, src, dst: how an edge list is read. Edges are directed, too, if the
            result says so.
        weight, duplicates: as in ``build``.
        personalize: the file that a PageRank was personalized by.
        sources: the sources of a betweenness, where there were too many for the result to name.
    """
    from .algorithms.validate import validate_result

    chosen = _reading(directed, src, dst, weight, duplicates)
    resources = resources_of(memory_limit=memory_limit, scratch=scratch)
    executor = Executor(_threads(threads), progress)
    file = None if personalize is None else named(personalize)
    some = None if sources is None else parameters.named_vertices(sources)
    return validate_result(named(graph), named(result), chosen, executor, resources, file, some)


def report(path: AnyPath, output: AnyPath, overwrite: bool = False) -> None:
    """Write an HTML page about a store, a result, a batch or the output of ``bench --json``.

    The page is one file, without scripts, that loads nothing.

    Args:
        path: a store, a result, the job file of a batch, or a file that holds what ``bench --json``
            printed.
        output: the page to write.
        overwrite: whether to replace another such page.
    """
    from .reports.page.write import write_page

    write_page(named(path), local(named(output)), overwrite)


def bench(
    graph: AnyPath,
    *,
    sources: int = 64,
    seed: int = 1,
    device: str = "auto",
    device_memory_limit: int | str | None = None,
    strategy: Strategy = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
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
    options = BenchOptions(sources, seed, _threads(threads), progress=progress, strategy=strategy)
    with device_errors():
        if recipe is not None:
            return bench_generated(recipe, options, chosen)
        return bench_store(named(graph), options, chosen, must_fit=device not in ("auto", "cpu"))


def bench_ablation(
    graph: AnyPath,
    *,
    sources: int = 64,
    seed: int = 1,
    threads: int | None = None,
    progress: Progress | None = None,
) -> AblationReport:
    """Search a store by masked products, in memory on the CPU, with and without each of five
    optimizations; every result is held against that of the search's own kernels.
    """
    from .bench.ablation import bench_ablation
    from .bench.protocol import BenchOptions

    options = BenchOptions(sources, seed, _threads(threads), progress=progress)
    return bench_ablation(named(graph), options)


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
    progress: Progress | None = None,
) -> AlgorithmReport:
    """Run "components", "pagerank", "sssp", "betweenness" or "closeness" many times over a store
    that stays loaded, or a generated graph, of which a temporary one is built; validate the last
    result.
    """
    from ..partition.store.store import open_store
    from .bench.algorithms import bench_algorithm, check_algorithm, generated_store
    from .bench.device import parse_recipe
    from .bench.protocol import BenchOptions

    check_algorithm(algorithm, runs)
    threads, recipe = _threads(threads), parse_recipe(str(graph))
    limits: Any = {"memory_limit": memory_limit, "device_memory_limit": device_memory_limit}
    with ExitStack() as stack:
        if recipe is not None:
            recipe = replace(recipe, weighted=algorithm == "sssp")
            building = Executor(threads, progress), resources_of(device=device, **limits)
            graph = stack.enter_context(generated_store(recipe, *building))
        store = open_store(named(graph))
        opened = stack.enter_context(open(graph, device=device, threads=threads, **limits))
        options = BenchOptions(runs, seed, threads, progress)
        of = store, algorithm, opened, options, resources_of(**limits), recipe
        report = bench_algorithm(*of)
        if device not in ("auto", "cpu") and report["device"] == "cpu":
            raise DelegraphError(f"not on {device}: {'; '.join(opened.notes)}")
    return report


def bench_algorithm_across(
    graph: AnyPath,
    algorithm: str,
    *,
    scaling: str | None = None,
    runs: int = 16,
    seed: int = 1,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[ResourceOptions],
) -> list[AlgorithmRow]:
    """``bench_algorithm`` across workers: of a store, or of a generated graph, of which a temporary
    one is built.

    scaling: as of ``bench_across``.
    """
    from .bench.algorithms_across import bench_algorithm_by_workers
    from .bench.protocol import BenchOptions

    chosen = BenchOptions(runs, seed, _threads(threads), progress)
    resources = resources_of(**options)
    return bench_algorithm_by_workers(named(graph), algorithm, scaling, resources, chosen)


def bench_across(
    graph: AnyPath,
    *,
    scaling: str | None = None,
    sources: int = 64,
    seed: int = 1,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[AllOptions],
) -> list[ScalingRow]:
    """``bench`` across workers: of a store, or of a generated graph, which takes a GPU each.

    scaling: by 1, 2, 4, ... of the workers: "strong", of the same graph; "weak", of generated ones
    with as large a share for each; None: by all of them. layout, grid, threshold: of a generated
    graph. memory_limit: of a store.
    """
    from .bench.across import bench_by_workers
    from .bench.protocol import BenchOptions

    resources, shape = _sorted(options)
    shaped = options.keys() & StoreOptions.__annotations__.keys()
    bench_options = BenchOptions(sources, seed, _threads(threads), progress)
    return bench_by_workers(named(graph), scaling, resources, shape, shaped, bench_options)


def _reading(
    directed: bool | None,
    src: str | None,
    dst: str | None,
    weight: str | None = None,
    duplicates: Duplicates | None = None,
) -> BuildOptions | None:
    """How an edge list is read, if that is said at all."""
    given = {"directed": directed, "src": src, "dst": dst}
    given |= {"weight": weight, "duplicates": duplicates}
    given = {name: value for name, value in given.items() if value is not None}
    return build_options_of(**given) if given else None  # pyright: ignore[reportArgumentType]


def _sorted(options: Any) -> tuple[Resources, BuildOptions]:
    """TypeError for one that is neither's."""
    shape = {name: value for name, value in options.items() if name in StoreOptions.__annotations__}
    rest = {name: value for name, value in options.items() if name not in shape}
    unknown = rest.keys() - ResourceOptions.__annotations__
    if unknown:
        raise TypeError(f"no such option: {', '.join(sorted(unknown))}")
    return resources_of(**rest), build_options_of(**shape)


def _threads(threads: int | None) -> int:
    threads = as_plain(threads)
    check_whole("threads", threads, 1)
    return useful_threads(threads)
