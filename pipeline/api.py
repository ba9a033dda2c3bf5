"""The public functions: what each command does, for Python, with its options by their names.

Options that several take:

    memory_limit, device_memory_limit   bytes, or as "4GB"
    device                              "auto", "cpu", "cuda" or "cuda:1"
    workers, scheduler, scheduler_file  where tasks run, and ranks search; a scheduler by its
                                        address, or as a distributed.Client, which stays open
    timeout                             seconds to wait for one of these that shows no sign of life
    scratch, restart                    a folder for files between steps; whether to start over
    directed, src, dst                  how an edge list is read
    partitions, layout, grid, threshold, order   the shape of a store; a grid as "3x2"
    weight, duplicates                  a column of weights, and "min", "max" or "sum" of those of
                                        rows that are the same edge
    threads                             cores to use, None for all this process may use
    overwrite                           whether an output that exists is replaced once the new one
                                        is whole
    progress                            called with a step's name, its tasks done and its tasks in
                                        all, from any thread

Paths of edge lists, results and files of vertices may be URLs: s3://, gs://, abfs:// or file://
(see 'Object stores' in the documentation). All raise InputError for bad input, before anything is
written, and DelegraphError for what fails while running.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

from ..kernels.base.threads import useful_threads
from ..partition.disk.memory import as_bytes
from ..partition.disk.outputs import local
from ..partition.disk.urls import named
from ..partition.errors import DelegraphError, InputError
from ..partition.numbers import check_whole
from . import questions
from .build.prepare import BuildOptions, StoreOptions, build_options_of
from .questions import AnyPath, Some, Vertex, Vertices
from .run.execute import Executor, Progress
from .run.resources import ResourceOptions, Resources, as_plain, resources_of

# Each function loads what it needs itself, so that none waits for the others' modules.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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

Planned = Literal[
    "bfs",
    "bfs-each",
    "bfs-together",
    "components",
    "pagerank",
    "sssp",
    "closeness",
    "eccentricity",
    "betweenness",
]
"""What may run over a store. bfs-each, bfs-together: from several sources."""


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
    """Write a synthetic edge list; ``recipe``: the fields of Recipe. Returns its rows."""
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
    """Convert a graph file of another program to a Parquet edge list; or a store to SciPy's sparse
    matrix, an output named ``.npz``; or a result to LDBC Graphalytics' text, one named ``.txt``.

    format: of a graph file, None to tell it by the name. src, dst, weight: columns of CSV and TSV
    by name or number, of SNAP's text by number. header: whether the first line of CSV or TSV names
    columns. id_type, weight_type: "auto" by the beginning of the file. max_unpacked: what a
    compressed file may unpack to, in bytes, as "4GB", or "none" for any number. Returns the record,
    and whether the output was there already.
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
    """Prepare an edge list as a store: Parquet, or a table of Arrow, pandas or Polars."""
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
    algorithm: Planned = "bfs",
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[AllOptions],
) -> Plan:
    """What ``build`` would hold and write, step by step; of a store, what ``bfs``, or another
    algorithm with its default options, would hold.

    exact: by passes that count, instead of upper bounds by the metadata.
    """
    from ..partition.disk.outputs import is_store
    from .build.build import plan_graph
    from .engines.store import plan_search

    resources, chosen = _sorted(options)
    edges = named(edges)
    if is_store(edges):
        if exact or options.keys() & StoreOptions.__annotations__.keys():
            raise InputError(
                f"{edges} is a store: leave out the options that were fixed by 'delegraph build'"
            )
        program = None
        if algorithm != "bfs":
            asked: Any = {**options}
            resources = replace(resources, device=_where(asked).get("device", "auto"))
            program = _program(algorithm)
        writes = algorithm == "bfs-each"
        return plan_search(edges, _threads(threads), resources, program, writes)
    if algorithm != "bfs":
        raise InputError(f"{edges} is not a store, so its build is planned: leave out --algorithm")
    return plan_graph(edges, chosen, _threads(threads), resources, exact, progress)


def _program(algorithm: str) -> Callable[[GraphInfo], Program]:
    """Of a graph, with default options."""
    import numpy as np

    from ..partition.input.arrow import load_functions
    from .algorithms.betweenness import Brandes
    from .algorithms.bfs_each import first_batch
    from .algorithms.bfs_together import Nearest
    from .algorithms.components import JoinAll
    from .algorithms.many_sources import Sums
    from .algorithms.pagerank import PageRank
    from .algorithms.sssp import planned_paths

    if algorithm == "components":
        return lambda info: JoinAll()
    if algorithm == "pagerank":
        return PageRank().walk
    if algorithm == "sssp":
        return planned_paths

    def every(vertices: int) -> NDArray[np.uint32]:  # their number is enough for a plan
        return np.broadcast_to(np.uint32(0), vertices)

    if algorithm in ("bfs-each", "bfs-together"):
        load_functions()  # as where sources are looked up
    if algorithm == "bfs-each":
        return lambda info: first_batch(every(info.vertices), None)
    if algorithm == "bfs-together":
        return lambda info: Nearest(every(1))
    if algorithm == "betweenness":
        return lambda info: Brandes(info.vertices, every(info.vertices))
    if algorithm not in ("closeness", "eccentricity"):
        raise InputError(f"{algorithm!r} is unknown: choose one of {', '.join(get_args(Planned))}")
    return lambda info: Sums(every(info.vertices), along=True)


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
    """Search a store or an edge list from ``source``, or from ``sources``.

    Writes the result folder and the run's record beside it; profile: also this Parquet file, with a
    row for each superstep of one search. sources: ids, as text with commas between them, too, or a
    Parquet file with ``vertex``; each is searched from for itself, unless ``together``, which gives
    the distance to the nearest. strategy: what one GPU searches over, "rows" or "slices"; for a
    single search, "auto" is rows.
    """
    if output is None:
        raise TypeError("bfs() needs an output")
    questions.check_sources(source, sources, together)
    if source is not None:
        asked = questions.bfs(source, max_depth, strategy)
        return _run(asked, graph, output, options, profile)
    if profile is not None or strategy != "auto":
        raise InputError("--profile and --strategy are only for a search from one --source")
    assert sources is not None
    if together:
        return _ask(questions.bfs_together(sources, max_depth), graph, output, options)
    return _run(questions.bfs_each(sources, max_depth), graph, output, _where(options))


def components(graph: AnyPath, output: AnyPath, **options: Unpack[RunningOptions]) -> Outcome:
    """Find the connected components of a store or an edge list; weakly, if it is directed."""
    return _ask(questions.components(), graph, output, options)


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
    """PageRank of a store or an edge list, until an iteration changes less than ``tolerance`` (L1).

    iterations: instead, exactly so many. personalize: where the walk teleports to: a weight for
    each of some vertices, or a Parquet file with ``vertex`` and, if they differ, ``weight``.
    dangling: whether what vertices without edges out of them hold is spread as the walk teleports,
    or dropped. Edges count by their weights, if the graph has any; unweighted: all alike.
    precision: "single" gives float32, off by 1e-6 at most, relatively, and faster on GPUs.
    """
    stops = tolerance, max_iterations, iterations
    of = personalize, dangling, unweighted, precision
    return _ask(questions.pagerank(damping, *stops, *of), graph, output, options)


def sssp(
    graph: AnyPath,
    source: Vertex,
    output: AnyPath,
    *,
    max_distance: float | None = None,
    **options: Unpack[RunningOptions],
) -> Outcome:
    """Shortest paths from ``source`` by the weights of a store, or of an edge list, whose column
    ``weight`` names; those that are no longer than ``max_distance``.
    """
    return _ask(questions.sssp(source, max_distance), graph, output, options)


def closeness(
    graph: AnyPath,
    output: AnyPath,
    *,
    sources: Some | None = None,
    seed: int = 1,
    **options: Unpack[RunningOptions],
) -> Outcome:
    """Closeness of every vertex of a store or an edge list, by distances to it (Wasserman-Faust).

    sources: of so many vertices at random instead, of some ids, or of those in a Parquet file.
    """
    return _ask(questions.closeness(sources, seed), graph, output, options)


def betweenness(
    graph: AnyPath,
    output: AnyPath,
    *,
    sources: Some | None = None,
    seed: int = 1,
    normalized: bool = False,
    **options: Unpack[RunningOptions],
) -> Outcome:
    """Betweenness of every vertex: shortest paths, by hops, that lead through it.

    sources: count those from so many vertices at random, from some ids, or from those in a Parquet
    file, and scale them up. normalized: divide by the number of pairs.
    """
    return _ask(questions.betweenness(sources, seed, normalized), graph, output, options)


def eccentricity(
    graph: AnyPath,
    output: AnyPath,
    *,
    sources: Some | None = None,
    seed: int = 1,
    **options: Unpack[RunningOptions],
) -> Outcome:
    """Eccentricity of every vertex, and bounds of the diameter; sources as for ``closeness``."""
    return _ask(questions.eccentricity(sources, seed), graph, output, options)


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
    """Load a store, or an edge list, which may be a table of Arrow, pandas or Polars, to be asked
    many times; see Graph.

    directed, src, dst, weight, duplicates: of an edge list; a store has its own.
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
    """What there is to know about an edge list, a store or a result, without searching it, as
    ``delegraph info --json`` prints it.

    src, dst: columns of an edge list. ranks: of a store, also what so many workers would hold each,
    and send each other.
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
    """Judge a result against its graph, a store or an edge list, by rules that make it right.

    directed, src, dst: of an edge list, as in ``open``; edges are directed, too, where the result
    says that they are. weight, duplicates: as in ``build``. personalize: the file that a PageRank
    was personalised by. sources: whose paths a betweenness has counted, where they were so many
    that it does not say them.
    """
    from .algorithms.validate import validate_result

    chosen = _reading(directed, src, dst, weight, duplicates)
    resources = resources_of(memory_limit=memory_limit, scratch=scratch)
    executor = Executor(_threads(threads), progress)
    file = None if personalize is None else named(personalize)
    some = None if sources is None else questions.named_vertices(sources)
    return validate_result(named(graph), named(result), chosen, executor, resources, file, some)


def report(path: AnyPath, output: AnyPath, overwrite: bool = False) -> None:
    """Write an HTML page, whole in itself, about a store, a result, a batch (its file of jobs), or
    a file of what ``bench --json`` printed. overwrite: whether another such page may be replaced.
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
    """Search from many random sources, validate each result, measure traversal rates.

    graph: a store, or what to generate on a GPU: "kronecker:24", "uniform:24", "grid:2048x2048".
    strategy: what one GPU searches over, "rows" or "slices"; "auto" tries both when it has loaded.
    By several workers: ``bench_across``; optimizations of it one by one: ``bench_ablation``; other
    algorithms: ``bench_algorithm``, ``bench_algorithm_across``.
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
            f"{graph} is generated on a GPU, but none can be used ({error}): make a store with "
            "'delegraph generate' and 'delegraph build'"
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
