"""Questions of a store from disk, inside a memory limit: what they hold, and what share of the
disk's rate they have.

    python benchmarks/inside_limit.py STORE ... [--limit 512MB] [--questions labels,cores,...]
        [--folder /scratch]

Each question is a command of its own, whose store is out of the page cache at first. Printed are
the most memory that the command held, the seconds of the work, the edges that it looked at in a
second, the bytes that it read in a second, and these as a share of the disk's rate: that of reading
all files of the store once, cold, with one thread a core. Above 1, pages were read again from the
page cache. A question that does not fit the limit says what the plan asks for.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import environment
from memory import drop_pages

from delegraph.pipeline.questions import FORMS

QUESTIONS = ("pagerank", "components", "hits", "eigenvector", "katz", "degree", "labels", "cores")
OPTIONS: dict[str, tuple[str, ...]] = {
    "pagerank": ("--iterations", "10"),
    "hits": ("--max-iterations", "10"),
    "eigenvector": ("--max-iterations", "10"),
    "katz": ("--max-iterations", "10"),
    "labels": ("--iterations", "10"),
}
"""Options by which a question does so much as others measure."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("stores", nargs="+", type=Path)
    parser.add_argument("--limit", default="512MB")
    parser.add_argument("--questions", default=",".join((*QUESTIONS, "forest")))
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    print(json.dumps(environment.describe(("numpy", "numba"))))
    for store in args.stores:
        rate = disk_rate(store)
        print(
            f"{store.name}: {store_bytes(store) / 1e9:.2f} GB, the disk reads {rate / 1e9:.2f} GB/s"
        )
        for question in args.questions.split(","):
            drop_pages(store)
            with tempfile.TemporaryDirectory(dir=args.folder) as folder:
                print(f"  {question:12} {told(question, store, args.limit, Path(folder), rate)}")


def told(question: str, store: Path, limit: str, folder: Path, rate: float) -> str:
    """Run a command, and return what is to be printed of it."""
    out = folder / "out"
    words = [question, str(store), "-o", str(out), "--memory-limit", limit, "--quiet"]
    began = time.perf_counter()
    line = [sys.executable, "-m", "delegraph", *words, *OPTIONS.get(question, ())]
    run = subprocess.run(line, capture_output=True, text=True)
    wall = time.perf_counter() - began
    if run.returncode:
        return run.stderr.strip().splitlines()[-1]
    record = json.loads(out.with_name("out.run.json").read_text())
    seconds = record["seconds"]["search"]
    edges, read = (work_of(record, question, key) for key in ("edges_examined", "bytes_read"))
    held = record["plan"]["measured_peak_bytes"]
    return (
        f"{wall:7.1f} s, search {seconds:7.1f} s, held {held / 1e6:4.0f} MB, "
        f"{edges / seconds / 1e6:6.0f} M edges/s, {read / 1e9:6.2f} GB read, "
        f"{read / seconds / rate:.2f} of the disk's rate"
    )


def work_of(record: dict[str, Any], question: str, key: str) -> int:
    """Return a sum over a run: of its main facts, or of its iterations."""
    facts = record[FORMS[question].key]
    if key in facts:
        return facts[key]
    return sum(iteration[key] for iteration in record["iterations"])


def disk_rate(store: Path) -> float:
    """Return the bytes that the disk gives in a second, of cold files."""
    drop_pages(store)
    files = [path for path in store.rglob("*") if path.is_file()]
    began = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        total = sum(threads.map(_read, files))
    return total / (time.perf_counter() - began)


def _read(path: Path) -> int:
    total, buffer = 0, bytearray(4 << 20)
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(buffer):
            total += count
    return total


def store_bytes(store: Path) -> int:
    return sum(path.stat().st_size for path in store.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
