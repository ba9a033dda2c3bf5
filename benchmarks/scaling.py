"""Searches of generated graphs by several GPUs: weak and strong scaling, bytes sent, memory.

python benchmarks/scaling.py [--weak kronecker:25 ...] [--strong kronecker:26 ...] [--ranks 1 2]
    [--thresholds auto 64 ...] [--sources 64] [--json FILE]

weak: the graph is for one rank; of two it has twice as many vertices. Efficiency: the rate of k
ranks over k times that of one. Every result is checked by Graph500's rules.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace

from delegraph.pipeline.cluster import ClusterOptions
from delegraph.pipeline.device_bench import parse_recipe
from delegraph.pipeline.generate import Recipe
from delegraph.pipeline.rank_bench import bench_on_workers


def grown(recipe: Recipe, ranks: int) -> Recipe:
    """The same kind of graph with ``ranks`` (a power of two) times as many vertices."""
    if recipe.kind == "grid":
        return replace(recipe, height=recipe.height * ranks)
    return replace(recipe, scale=recipe.scale + ranks.bit_length() - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weak", nargs="*", default=[])
    parser.add_argument("--strong", nargs="*", default=[])
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--thresholds", nargs="+", default=["auto"])
    parser.add_argument("--sources", type=int, default=64)
    parser.add_argument("--json")
    given = parser.parse_args()

    rows = []
    print(
        f"{'graph':24}{'ranks':>6}{'threshold':>10}{'delegates':>12}{'nn %':>7}"
        f"{'ms':>9}{'max ms':>9}{'GTEPS':>8}{'eff. %':>8}{'deleg. MB':>10}{'norm. MB':>10}"
        f"{'GB each':>8}{'graph GB':>9}{'Table I':>8}{'prep. s':>8}",
        flush=True,
    )
    for scaling, names in (("weak", given.weak), ("strong", given.strong)):
        for name in names:
            first = parse_recipe(name)
            assert first is not None, name
            for threshold in given.thresholds:
                wanted = None if threshold == "auto" else int(threshold)
                recipes = [grown(first, k) if scaling == "weak" else first for k in given.ranks]
                reports = bench_on_workers(
                    *(first, given.sources, 1, wanted),
                    *(ClusterOptions(workers=max(given.ranks)), 16, 60.0),
                    rank_counts=given.ranks,
                    recipes=recipes,
                )
                alone = None
                for (ranks, report, exchanged), recipe in zip(reports, recipes, strict=True):
                    rate = report["gteps"]["median"]
                    alone = alone or rate / ranks
                    graph = report["graph"]
                    size = recipe.scale or f"{recipe.height}x{recipe.width}"
                    line = f"{scaling} {recipe.kind}:{size}"
                    line = f"{line:24}{ranks:6}{graph.get('threshold', 0):10}"
                    line += f"{graph.get('delegates', 0):12,}{100 * graph.get('nn_share', 1):7.2f}"
                    line += f"{1e3 * report['search_seconds']['median']:9.3f}"
                    line += f"{1e3 * report['search_seconds']['max']:9.3f}"
                    line += f"{rate:8.0f}{100 * rate / ranks / alone:8.0f}"
                    if exchanged is not None:
                        line += f"{exchanged.delegate_bytes / 1e6:10.2f}"
                        line += f"{exchanged.normal_bytes / 1e6:10.2f}"
                        for held in (exchanged.device_bytes, exchanged.graph_bytes):
                            line += f"{held / 1e9:8.2f} "
                        line += f"{exchanged.table_bytes / 1e9:7.2f}"
                    else:
                        line += " " * 45
                    line += f"{report['preparation_seconds']:8.2f}"
                    print(line, flush=True)
                    rows.append(
                        {
                            "scaling": scaling,
                            "ranks": ranks,
                            "recipe": asdict(recipe),
                            "report": report,
                            "exchanged": exchanged and exchanged._asdict(),
                        }
                    )
    if given.json:
        with open(given.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
