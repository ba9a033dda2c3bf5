"""Texts that ``bench`` prints: of searches, an algorithm, an ablation, and by numbers of ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..bench.ablation import OPTIMIZATIONS, AblationReport, WayReport
from ..bench.across import ScalingRow
from ..bench.algorithms import AlgorithmReport
from ..bench.algorithms_across import AlgorithmRow
from ..bench.protocol import BenchReport, Quartiles
from ..bench.searchers import Exchanged


def where(report: BenchReport | AlgorithmReport) -> str:
    """Name the CPU or device that one process ran on."""
    cpu = f"{report['threads']} threads of the CPU"
    return cpu if report["device"] == "cpu" else report["device"]


def where_of_all(report: BenchReport | AlgorithmReport) -> str:
    """Name the CPUs or devices that several processes ran on."""
    cpus = f"{report['threads']} threads of CPUs"
    return cpus if report["device"] == "cpu" else report["device"]


def quartiles_table(rows: Iterable[tuple[str, Quartiles, float]]) -> str:
    """Return a table of quartiles. rows: for each its name, and the factor of its values."""
    lines = [f"{'':14}{'min':>10}{'q1':>10}{'median':>10}{'q3':>10}{'max':>10}"]
    for name, quartiles, scale in rows:
        values = (quartiles[key] for key in ("min", "q1", "median", "q3", "max"))
        lines.append(f"{name:<14}" + "".join(f"{value * scale:>10.4g}" for value in values))
    return "\n".join(lines)


def searches_text(report: BenchReport) -> str:
    rows = [
        ("search, ms", report["search_seconds"], 1e3),
        ("GTEPS", report["gteps"], 1.0),
        ("depth", report["depth"], 1.0),
    ]
    built = report["preparation_seconds"]
    return (
        f"{len(report['sources'])} searches, all valid; {report['gteps_harmonic_mean']:.3f} GTEPS "
        f"(harmonic mean), on {where(report)}"
        f"{', over slices' if report['method'] == 'slices' else ''}\n"
        f"{quartiles_table(rows)}\n"
        f"preparation {'unknown' if built is None else f'{built:.3f} s'}, "
        f"load {report['load_seconds']:.3f} s, compile {report['compile_seconds']:.3f} s"
    )


def searches_by_ranks_text(rows: Sequence[ScalingRow]) -> str:
    report, exchanged = rows[-1].report, rows[-1].exchanged
    lines = [
        f"{len(report['sources'])} searches each, all valid, on {where_of_all(report)}",
        scaling_table(rows),
    ]
    if exchanged is not None:
        lines.append(exchanged_line(exchanged))
    return "\n".join(lines)


def algorithm_text(report: AlgorithmReport) -> str:
    rows = [("a run, ms", report["seconds"], 1e3)]
    if "iteration_seconds" in report:
        rows.append(("iteration, ms", report["iteration_seconds"], 1e3))
    return (
        f"{report['runs']} runs of {report['algorithm']}, the last one valid; {report['evps']:.4g} "
        f"vertices and edges a second (harmonic mean), on {where(report)}\n{quartiles_table(rows)}"
    )


def algorithms_text(rows: Sequence[AlgorithmRow]) -> str:
    """Return the text on an algorithm by numbers of ranks."""
    last = rows[-1].report
    runs, algorithm, method = last["runs"], last["algorithm"], last["method"]
    return (
        f"{runs} runs of {algorithm} each, last results valid, {method}, on {where_of_all(last)}\n"
        f"{algorithm_scaling_table(rows)}"
    )


def algorithm_scaling_table(rows: Sequence[AlgorithmRow]) -> str:
    """Return a table of an algorithm's times, a line for each number of ranks."""
    graphs = [_graph_name(row.report["graph"]) for row in rows]
    width = max(16, *(len(graph) + 1 for graph in graphs))
    walks = "iteration_seconds" in rows[0].report
    head = f"{'graph':<{width}}{'ranks':>6}{'median ms':>11}{'max ms':>10}"
    lines = [head + f"{'iteration ms':>14}" * walks + f"{'EVPS':>11}{'eff. %':>8}"]
    for name, (ranks, report, efficiency, _) in zip(graphs, rows, strict=True):
        median, most = (1e3 * report["seconds"][key] for key in ("median", "max"))
        line = f"{name:<{width}}{ranks:>6}{median:>11.3f}{most:>10.3f}"
        if "iteration_seconds" in report:
            line += f"{1e3 * report['iteration_seconds']['median']:>14.3f}"
        lines.append(line + f"{report['evps']:>11.4g}{100 * efficiency:>8.0f}")
    return "\n".join(lines)


def scaling_table(rows: Sequence[ScalingRow]) -> str:
    """Return a table of searches, a line for each number of ranks. Bytes are those that all ranks
    sent in a search.
    """
    graphs = [_graph_name(row.report["graph"]) for row in rows]
    width = max(16, *(len(graph) + 1 for graph in graphs))
    head = (
        f"{'graph':<{width}}{'ranks':>6}{'threshold':>10}{'nn %':>7}{'median ms':>10}{'max ms':>9}"
        f"{'GTEPS':>10}{'eff. %':>7}{'prepared s':>11}{'sent MB':>9}{'GB a rank':>10}"
    )
    lines = [head]
    for name, (ranks, report, exchanged, efficiency, _) in zip(graphs, rows, strict=True):
        graph, seconds, prepared = report["graph"], report["search_seconds"], "-"
        line = f"{name:<{width}}{ranks:>6}"
        if exchanged is None or "threshold" not in graph:
            line += f"{'-':>10}{'-':>7}"
        else:
            line += f"{graph['threshold']:>10}{100 * graph['nn_share']:>7.2f}"
        line += f"{seconds['median'] * 1e3:>10.3f}{seconds['max'] * 1e3:>9.3f}"
        line += f"{report['gteps']['median']:>10.4g}{100 * efficiency:>7.0f}"
        if report["preparation_seconds"] is not None:
            prepared = f"{report['preparation_seconds']:.2f}"
        line += f"{prepared:>11}"
        if exchanged is not None:
            sent = sum(exchanged.bytes_sent.values())
            line += f"{sent / 1e6:>9.2f}{exchanged.held_bytes / 1e9:>10.2f}"
        lines.append(line)
    return "\n".join(lines)


def _graph_name(graph: dict[str, Any]) -> str:
    """Return the name of a store, or of a generated graph."""
    if "path" in graph:
        return Path(graph["path"]).name
    size = f"{graph['height']}x{graph['width']}" if graph["kind"] == "grid" else graph["scale"]
    return f"{graph['kind']}:{size}"


def exchanged_line(exchanged: Exchanged) -> str:
    """Return a line on the bytes that ranks sent each other in a search."""
    sent = ", ".join(f"{size:,.0f} {kind}" for kind, size in exchanged.bytes_sent.items())
    return f"{exchanged.supersteps:.3g} supersteps a search, bytes sent: {sent}"


def ablation_text(report: AblationReport) -> str:
    count, cores = len(report["sources"]), report["threads"]
    return (
        f"{count} searches in each way, all valid, on {cores} threads of the CPU; medians\n"
        f"{ablation_table(report)}"
    )


def ablation_table(report: AblationReport) -> str:
    """Return the paper's table: optimizations added one after the other, then each left out alone.
    Figures are medians; examined edges are means.
    """
    head = f"{'optimization':<24}{'GTEPS':>10}{'speed-up':>10}{'median ms':>11}{'edges M':>10}"
    names = ["baseline", *map(_spoken, OPTIMIZATIONS)]
    rows = zip(names, report["added"], strict=True)
    lines = [head, *(_way_line(name, way) for name, way in rows)]
    lines += [_way_line("kernels by hand", report["by_hand"]), "", "all but one"]
    return "\n".join([*lines, *(_way_line(_spoken(n), w) for n, w in report["without"].items())])


def _spoken(optimization: str) -> str:
    return optimization.replace("_", " ")


def _way_line(name: str, way: WayReport) -> str:
    speed_up = "-" if way["speed_up"] is None else f"{way['speed_up']:.2f}x"
    line = f"{name:<24}{way['gteps']['median']:>10.4g}{speed_up:>10}"
    seconds, edges = way["search_seconds"]["median"], way["edges_examined"]
    return f"{line}{seconds * 1e3:>11.4g}{edges / 1e6:>10.4g}"
