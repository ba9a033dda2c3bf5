"""What every benchmark prints first: machine, versions, command."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"

# Peers come from pip with their modules compiled. Ours are, too, unless the environment forbids it,
# and an installation is editable: then each command would compile all of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def describe(packages: tuple[str, ...]) -> dict:
    """Hardware, versions of ``packages`` and the command, for a benchmark's results."""
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    memory = next(
        int(line.split()[1]) * 1024
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemTotal")
    )
    return {
        "date": date.today().isoformat(),
        "command": " ".join(["python", *(arg.rpartition("/")[2] for arg in sys.argv)]),
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory,
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in ("delegraph", *packages)},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def share_cores() -> None:
    """Threads of OpenMP, of libraries and programs that are started from now on, sleep while they
    wait. Those that spin, as they do by default, took 5 to 30 times as long beside other work; on
    an idle machine and a graph of very many levels they are the faster ones.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def show(environment: dict) -> None:
    print(
        f"{environment['cpu']}, {environment['cores']} cores, "
        f"{environment['memory_bytes'] / 2**30:.0f} GiB; Python {environment['python']}"
    )
    print(", ".join(f"{name} {found}" for name, found in environment["versions"].items() if found))
    print(environment["command"], flush=True)


def delegraph(*arguments: object) -> None:
    """Run a command."""
    line = [sys.executable, "-m", "delegraph", *map(str, arguments), "--quiet"]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)


def keep(name: str, environment: dict, results: list[dict]) -> None:
    """Write ``results/NAME.json``: the environment and the figures that were printed."""
    RESULTS.mkdir(exist_ok=True)
    document = {"environment": environment, "results": results}
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
