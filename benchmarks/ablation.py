"""What each of five optimizations brings to a search by masked products: ``bench --ablation``.

    python benchmarks/ablation.py [--graphs kron20,reddit_related] [--data FOLDER] [--sources 64]

Of each graph the command's table. Speed-ups are medians of ratios, search by search, and so hold on
a machine that does other work, too; times do not.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import environment
import real
from end_to_end import GRAPHS

from delegraph.pipeline.api import bench_ablation
from delegraph.pipeline.reports.bench import ablation_table


def main() -> None:
    parser = argparse.ArgumentParser(description="Switch optimizations off.")
    parser.add_argument("--graphs", default="kron20,reddit_related,fb_schools,world_highways")
    real.add_option(parser)
    parser.add_argument("--sources", type=int, default=64)
    options = parser.parse_args()
    about = environment.describe(("numba",))
    environment.show(about)
    results = []
    for name, edges in real.asked_for(options, "", GRAPHS.__contains__):
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "graph.dg"
            if edges is None:
                edges = Path(folder) / "edges"
                environment.delegraph("generate", *GRAPHS[name].split(), "-o", edges)
            environment.delegraph("build", edges, "-o", store, "--device", "cpu")
            report = bench_ablation(store, sources=options.sources)
        print(
            f"\n{name}, depth {report['depth']['median']:g}\n{ablation_table(report)}", flush=True
        )
        kept = ("threads", "seed", "depth", "added", "without", "by_hand")
        results.append({"graph": name, **{key: report[key] for key in kept}})
    environment.keep("ablation", about, results)


if __name__ == "__main__":
    main()
