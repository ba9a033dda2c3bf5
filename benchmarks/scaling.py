"""Searches of generated graphs by several GPUs: weak and strong scaling, bytes sent, memory.

python benchmarks/scaling.py --workers 2 [--weak kronecker:28 ...] [--strong kronecker:27 ...]
    [--threshold 16] [--sources 64]

weak: the graph is that of all workers; of half of them it has half as many vertices. Efficiency:
the rate of k ranks over k times that of one. Every result is checked by Graph500's rules. Keeps the
figures in benchmarks/results/scaling.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from delegraph.pipeline.api import bench_across
from delegraph.pipeline.bench_report import scaling_table
from delegraph.pipeline.cluster import ClusterOptions

RESULTS = Path(__file__).parent / "results" / "scaling.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weak", nargs="*", default=[])
    parser.add_argument("--strong", nargs="*", default=[])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threshold", type=int)
    parser.add_argument("--sources", type=int, default=64)
    given = parser.parse_args()

    kept = []
    for scaling, names in (("weak", given.weak), ("strong", given.strong)):
        for name in names:
            rows = bench_across(
                name,
                ClusterOptions(workers=given.workers),
                scaling=scaling,
                threshold=given.threshold,
                sources=given.sources,
            )
            print(f"{scaling}, {rows[-1].report['device']}")
            print(scaling_table(rows), flush=True)
            kept += [{"scaling": scaling, **row.document()} for row in rows]
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
