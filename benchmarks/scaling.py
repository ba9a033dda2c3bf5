"""Searches of generated graphs by several GPUs: scaling, layouts, bytes sent, memory.

python benchmarks/scaling.py --workers 2 [--weak kronecker:28 ...] [--strong kronecker:27 ...]
    [--layouts kronecker:27 ...] [--threshold 16] [--sources 64]

weak: the graph is that of all workers; of half of them it has half as many vertices. Efficiency:
the rate of k ranks over k times that of one. layouts: the same graph by all workers, in each of
them; in grids that push alone, too. Every result is checked by Graph500's rules. Keeps the figures
in benchmarks/results/scaling.json and layouts-gpu.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from delegraph.kernels.base.threads import available_threads
from delegraph.partition.store.grid import Grid, squarest
from delegraph.pipeline.api import bench_across
from delegraph.pipeline.bench.across import bench_generated
from delegraph.pipeline.bench.device import parse_recipe
from delegraph.pipeline.bench.protocol import BenchOptions
from delegraph.pipeline.bench.ranks import Placing
from delegraph.pipeline.reports.bench import exchanged_line, scaling_table
from delegraph.pipeline.run.resources import resources_of

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weak", nargs="*", default=[])
    parser.add_argument("--strong", nargs="*", default=[])
    parser.add_argument("--layouts", nargs="*", default=[])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threshold", type=int)
    parser.add_argument("--sources", type=int, default=64)
    given = parser.parse_args()

    kept = []
    for scaling, names in (("weak", given.weak), ("strong", given.strong)):
        for name in names:
            rows = bench_across(
                name,
                workers=given.workers,
                scaling=scaling,
                sources=given.sources,
                threshold=given.threshold or "auto",
            )
            print(f"{scaling}, {rows[-1].report['device']}")
            print(scaling_table(rows), flush=True)
            kept += [{"scaling": scaling, **row.document()} for row in rows]
            keep("scaling", kept)
    kept = []
    for name in given.layouts:
        for placing in placings(given.workers, given.threshold):
            recipe = parse_recipe(name)
            assert recipe is not None
            options = BenchOptions(given.sources, threads=available_threads())
            workers = resources_of(workers=given.workers)
            (row,) = bench_generated([(given.workers, recipe)], placing, workers, options)
            graph = row.report["graph"]
            about = f"{graph['layout']} {graph.get('grid', '')} {graph.get('direction', '')}"
            print(f"{about}, {row.report['device']}")
            print(scaling_table([row]))
            assert row.exchanged is not None
            print(exchanged_line(row.exchanged), flush=True)
            kept.append(row.document())
            keep("layouts-gpu", kept)


def placings(workers: int, threshold: int | None) -> list[Placing]:
    """Grids: the squarest, that of one row (1d), that of one column."""
    grids = [("1d", None), ("2d", Grid(workers, 1))]
    if squarest(workers).rows > 1:
        grids.insert(0, ("2d", squarest(workers)))
    return [
        Placing(threshold=threshold),
        *(Placing(layout, grid, None, push) for push in (False, True) for layout, grid in grids),
    ]


def keep(name: str, rows: list[dict[str, Any]]) -> None:
    (RESULTS / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
