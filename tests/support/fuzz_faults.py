"""Commands with faults: a system call fails, or the run is killed or its files are damaged.

    python -m support.fuzz_faults FOLDER SEED FIRST LAST

Each case prints a line that describes the case and a line that tells its end. A command with a
fault has to end with one line that names a file; run again, the command has to leave the files of
a run without a fault, and no other files.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .damage import DAMAGES, damage
from .faulty_calls import CALLS, KILL, MAPPING, OPENING, READING, SYNCING, WRITING, run_faulty
from .graphs import random_edges
from .processes import command

SECONDS = 120
ERRORS = {
    errno.EIO: (READING, WRITING, SYNCING, OPENING),
    errno.ENOSPC: (WRITING, SYNCING),
    errno.ESTALE: (READING, OPENING),
    errno.EMFILE: (OPENING,),
    errno.ENOMEM: (MAPPING,),
}


_counted: dict[tuple[str, tuple[str, ...]], int] = {}
"""Numbers of calls of some kinds in a command without a fault."""


class Case(NamedTuple):
    """A command. words: of the command line. output: name of the output."""

    words: tuple[str, ...]
    output: str = "out"


def cases(folder: Path) -> dict[str, Case]:
    src, _ = random_edges(5, 300, 2000)
    many = ",".join(map(str, np.unique(src)[:250].tolist()))
    edges, store = str(folder / "edges.parquet"), str(folder / "graph.dg")
    result = str(folder / "result")
    shape = "--partitions", "2", "--scratch", str(folder / "scratch")
    return {
        "build": Case(("build", edges)),
        "build through files": Case(("build", edges, *shape)),
        "build with self-loops": Case(("build", edges, "--loops", "keep", *shape)),
        "bfs of a store": Case(("bfs", store, "--source", "1", "--checkpoint", "0")),
        "bfs of edges": Case(("bfs", edges, "--source", "1")),
        "bfs through a store": Case(("bfs", edges, "--source", "1", "--partitions", "2")),
        "bfs from many": Case(("bfs", store, "--sources", many, "--checkpoint", "0")),
        "bfs from many, of edges": Case(("bfs", edges, "--sources", many, "--checkpoint", "0")),
        "pagerank": Case(("pagerank", store, "--checkpoint", "0")),
        "betweenness": Case(("betweenness", store, "--sources", "9", "--checkpoint", "0")),
        "components": Case(("components", edges)),
        "generate": Case(("generate", "kronecker", "--scale", "8")),
        "convert from text": Case(("convert", str(folder / "edges.txt"))),
        "convert to a matrix": Case(("convert", store), "out.npz"),
        "convert to text": Case(("convert", result), "out.txt"),
        "report": Case(("report", store), "out.html"),
        "report of a result": Case(("report", result), "out.html"),
    }


def prepare(folder: Path) -> None:
    """Make the inputs of the commands."""
    src, dst = random_edges(5, 300, 2000)
    pq.write_table(pa.table({"src": src, "dst": dst}), folder / "edges.parquet")
    lines = "".join(f"{u} {v}\n" for u, v in zip(src.tolist(), dst.tolist(), strict=True))
    (folder / "edges.txt").write_text(lines)
    (folder / "scratch").mkdir()
    _run("build", folder / "edges.parquet", "-o", folder / "graph.dg")
    _run("bfs", folder / "graph.dg", "--source", 1, "-o", folder / "result")


_expected: dict[str, str] = {}


def expected_of(folder: Path, name: str) -> str:
    """Return the looks of a command's output after a run without a fault."""
    if name not in _expected:
        case = cases(folder)[name]
        _run(*case.words, "-o", folder / case.output)
        _expected[name] = looks(folder / case.output)
        clear(folder / case.output)
    return _expected[name]


def _run(*args: Any) -> subprocess.CompletedProcess[str]:
    run = subprocess.run(command(*args), capture_output=True, text=True, timeout=SECONDS)
    if run.returncode:
        raise RuntimeError(f"{args}: {run.stderr}")
    return run


def looks(output: Path) -> str:
    """Return the parts of an output that decide whether it is right.

    Parents are left out, as a vertex may have several right ones, and so is a page's text, which
    has the time of day.
    """
    if output.suffix == ".html":
        data = output.read_bytes()
        return str(data.startswith(b"<!") and data.rstrip().endswith(b"</html>"))
    if output.suffix or (output / "manifest.json").exists():
        files = [output] if output.is_file() else sorted(output.rglob("*"))
        return str([(file.name, file.read_bytes()) for file in files if file.is_file()])
    table = pq.read_table(output)
    return str([(n, table[n].to_pylist()) for n in table.column_names if n != "parent"])


def clear(output: Path) -> None:
    if output.is_dir():
        shutil.rmtree(output)
    else:
        output.unlink(missing_ok=True)
    output.with_name(f"{output.name}.run.json").unlink(missing_ok=True)


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} | {
        f"scratch/{path.name}" for path in (folder / "scratch").iterdir()
    }


def run_case(folder: Path, seed: int, number: int) -> None:
    rng = np.random.default_rng([seed, number])
    name = str(rng.choice(list(cases(folder))))
    case, expected = cases(folder)[name], expected_of(folder, name)
    args, output = (*case.words, "-o", str(folder / case.output)), folder / case.output
    before = names_in(folder)
    error = int(rng.choice([KILL, KILL, *ERRORS]))
    kinds = CALLS if error == KILL else (str(rng.choice(ERRORS[error])),)
    if (name, kinds) not in _counted:
        _counted[name, kinds] = run_faulty(args, folder, calls=kinds).calls
        clear(output)
    calls = _counted[name, kinds]
    at = int(rng.integers(1, calls + 1)) if calls else 0
    said = "killed" if error == KILL else errno.errorcode[error]
    print(f"{number}: {name}: {said} at {at} of {calls} ({' '.join(kinds)})", flush=True)
    try:
        ended = run_faulty(args, folder, at, error, kinds)
    except subprocess.TimeoutExpired:
        print("WRONG: it hangs", flush=True)
        sys.exit(1)
    faults = []
    if error == KILL:
        if ended.code not in (0, -signal.SIGKILL):
            faults.append(f"exit code {ended.code}: {ended.err}")
        work = output.with_name(f".{output.name}.work")
        names = sorted(path for path in work.rglob("*") if path.is_file() and path.name != "lock")
        if names and rng.random() < 0.6:
            chosen, how = names[int(rng.integers(len(names)))], str(rng.choice(DAMAGES))
            print(f"{how}: {chosen.relative_to(folder)}", flush=True)
            damage(chosen, how)
    else:
        faults += faults_of(ended.code, ended.err, error, folder)
    if ended.code == 0 and output.exists() and looks(output) != expected:
        faults.append("another output than undisturbed")
    rerun = subprocess.run(command(*args), capture_output=True, text=True, timeout=SECONDS)
    there = rerun.returncode == 2 and "exists" in rerun.stderr and output.exists()
    if rerun.returncode and not there:
        faults.append(f"run again: exit code {rerun.returncode}: {rerun.stderr}")
    elif looks(output) != expected:
        faults.append("another output, run again")
    clear(output)
    if there:  # a page does not say that it is done, and one of no record is none of ours
        subprocess.run(command(*args, "--overwrite"), capture_output=True, timeout=SECONDS)
        clear(output)
    if strange := names_in(folder) - before:
        faults.append(f"left: {strange}")
        for one in strange:
            shutil.rmtree(folder / one, ignore_errors=True)
    print("WRONG: " + "; ".join(faults) if faults else "right", flush=True)


def faults_of(code: int, stderr: str, error: int, folder: Path) -> list[str]:
    """Return the faults in the end of a command in which a call failed."""
    if code == 0:
        return []
    faults = []
    lines = [line for line in stderr.splitlines() if line.startswith("delegraph: ")]
    if code != 1:
        faults.append(f"exit code {code}")
    if len(lines) != 1 or "--debug" in stderr or "Traceback" in stderr:
        faults.append("not one line")
    if error in (errno.EIO, errno.ESTALE) and not (
        str(folder) in stderr and os.strerror(error) in stderr
    ):
        faults.append("no file and reason")
    if "damaged" in stderr or "build the store again" in stderr or "invalid contents" in stderr:
        faults.append("told as damage")
    return [f"{fault}: {stderr.strip()}" for fault in faults]


def main() -> None:
    seed, first, last = map(int, sys.argv[2:])
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as place:
        folder = Path(os.path.realpath(place))
        prepare(folder)
        for number in range(first, last):
            run_case(folder, seed, number)


if __name__ == "__main__":
    main()
