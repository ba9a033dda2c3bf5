"""Two worker processes against one of two threads; what a message between ranks costs.

    python benchmarks/ranks.py [--graphs kron20,grid1000] [--sources 8]

Times of searches are the supersteps' (without starting, loading, writing), medians over the
sources; bytes are those that all ranks send in a search of the median source. Of PageRank an
iteration's is taken, the median of all but the first one; of components the search's; run by run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import environment
import numpy as np
from direction import GRAPHS

from delegraph.kernels.base.team import Team
from delegraph.partition.store.store import open_store
from delegraph.pipeline.ranks.tcp import TcpCommunicator

EXCHANGES = 3000
RUNS = 5  # of a program
DELEGRAPH = [sys.executable, "-m", "delegraph"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Searches by ranks on one machine's CPU.")
    parser.add_argument("--graphs", default="kron20,grid1000")
    parser.add_argument("--sources", type=int, default=8)
    options = parser.parse_args()
    about = environment.describe(("distributed", "numba"))
    environment.show(about)
    results: list[dict[str, Any]] = [{"exchange_seconds": exchange_seconds()}]
    print(f"an exchange between two processes: {1e6 * results[0]['exchange_seconds']:.0f} us")
    for name in options.graphs.split(","):
        with tempfile.TemporaryDirectory() as folder:
            results.append(measure(name, options.sources, Path(folder)))
    environment.keep("ranks", about, results)


def exchange_seconds() -> float:
    """Of two ranks in processes of their own: one small message each way, and both have it."""
    context = multiprocessing.get_context("spawn")
    first, second, found = context.Queue(), context.Queue(), context.Queue()
    ranks = [
        context.Process(target=_exchange, args=(0, first, second, found)),
        context.Process(target=_exchange, args=(1, second, first, found)),
    ]
    for rank in ranks:
        rank.start()
    seconds = found.get()
    for rank in ranks:
        rank.join()
    return seconds


def _exchange(rank: int, own: Queue, other: Queue, found: Queue) -> None:
    communicator = TcpCommunicator("benchmark", rank, 2, "tcp://127.0.0.1", 60.0)
    own.put(communicator.address)
    addresses = [communicator.address, other.get()]
    communicator.join(addresses if rank == 0 else addresses[::-1])
    message = [np.zeros(4, np.int64), np.zeros(3, np.uint32)]
    for _ in range(EXCHANGES // 10):
        communicator.exchange([message, message])
    began = time.perf_counter()
    for _ in range(EXCHANGES):
        communicator.exchange([message, message])
    if rank == 0:
        found.put((time.perf_counter() - began) / EXCHANGES)
    communicator.close()


def measure(name: str, sources: int, folder: Path) -> dict[str, Any]:
    edges, store = f"{folder}/edges", f"{folder}/graph.dg"
    run("generate", *GRAPHS[name].split(), "-o", edges)
    run("build", edges, "-o", store, "--partitions", "2")
    ids = open_store(store).vertices(Team(1), ["vertex"])["vertex"].to_numpy()
    chosen = np.random.default_rng(1).choice(ids, sources, replace=False)
    runs: dict[int, list[Any]] = {1: [], 2: []}
    for source in chosen:
        for workers, records in runs.items():
            out = f"{folder}/out"
            asked = ("--source", str(source), "--workers", str(workers), "--threads", "2")
            ran = run("bfs", store, "-o", out, *asked, "--json", "--overwrite", "--quiet")
            records.append(json.loads(ran.stdout))
    times = {
        workers: [sum(step["seconds"] for step in of_all(record)) for record in records]
        for workers, records in runs.items()
    }
    ratio = statistics.median(b / a for a, b in zip(times[1], times[2], strict=True))
    middle = runs[2][int(np.argsort(times[2])[len(times[2]) // 2])]
    sent = {
        kind: sum(step["bytes_sent"][kind] for step in of_all(middle))
        for kind in middle["supersteps"][0]["bytes_sent"]
    }
    each = statistics.median(
        seconds / count_of(record) for seconds, record in zip(times[2], runs[2], strict=True)
    )
    print(
        f"{name}: two processes take {ratio:.2f} times as long as one of two threads "
        f"({len(times[1])} sources); {count_of(middle)} supersteps of {1e3 * each:.2f} ms; "
        f"sent: {sent}",
        flush=True,
    )
    programs = {
        "pagerank": (("--iterations", "11"), seconds_of_iteration),
        "components": ((), lambda record: record["seconds"]["search"]),
    }
    ratios = {}
    for command, (more, seconds_of) in programs.items():
        each_way = []
        for _ in range(RUNS):
            some = []
            for workers in (1, 2):
                asked = ("--workers", str(workers), "--threads", "2", *more)
                how = ("-o", f"{folder}/out", *asked, "--json", "--overwrite", "--quiet")
                some.append(seconds_of(json.loads(run(command, store, *how).stdout)))
            each_way.append(some[1] / some[0])
        ratios[command] = statistics.median(each_way)
        print(
            f"{name}: {command}, two processes take {ratios[command]:.2f} times as long", flush=True
        )
    return {
        "graph": name,
        "programs": ratios,
        "sources": len(times[1]),
        "seconds": times,
        "ratio": ratio,
        "supersteps": count_of(middle),
        "bytes_sent": sent,
    }


def seconds_of_iteration(record: dict[str, Any]) -> float:
    return statistics.median(step["seconds"] for step in record["iterations"][1:])


def of_all(record: dict[str, Any]) -> list[dict[str, Any]]:
    """What can be added up over a search: its supersteps, and of a long one sums of the rest."""
    return [*record["supersteps"], *filter(None, [record["supersteps_between"]])]


def count_of(record: dict[str, Any]) -> int:
    return sum(step.get("supersteps", 1) for step in of_all(record))


def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*DELEGRAPH, *arguments], capture_output=True, check=True)


if __name__ == "__main__":
    main()
