"""How long the command line takes to answer: imports and help, as whole processes.

python benchmarks/startup.py --runs 10
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

import environment

COMMANDS = {
    "python": [sys.executable, "-c", ""],
    "import delegraph.cli.main": [sys.executable, "-c", "import delegraph.cli.main"],
    "delegraph --help": [sys.executable, "-m", "delegraph", "--help"],
    "delegraph bfs --help": [sys.executable, "-m", "delegraph", "bfs", "--help"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time to import the command line and to help.")
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    about = environment.describe(("click",))
    environment.show(about)
    results = []
    for name, command in COMMANDS.items():
        seconds = []
        for _ in range(runs + 1):
            started = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - started)
        median = statistics.median(seconds[1:])  # the first one warms the file cache
        print(f"{name:28}{median:8.3f} s")
        results.append({"command": name, "seconds": median})
    environment.keep("startup", about, results)


if __name__ == "__main__":
    main()
