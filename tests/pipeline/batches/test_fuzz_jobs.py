"""Odd files of jobs and ledgers: each command ends in time, with 0, or with 2 and a line for each
fault.
"""

from __future__ import annotations

import os
import random
import signal
import string

import pytest

SEEDS = range(20)
CASES = 40
"""Files of jobs for each seed."""
_SECONDS = 60

TEXTS = (
    *("", ".", "/", "..", "edges", "jobs.toml", "jobs.toml.batch/x", "edges.parquet/x", "pipe"),
    *(
        "out",
        "out/a",
        "link",
        "link/out",
        "*.parquet",
        "**",
        "[",
        "{name}",
        "{x}",
        "{",
        "{date:>9}",
    ),
    *(
        "out.run.json",
        ".out.work",
        "a" * 300,
        "/dev/null",
        "/dev/zero",
        "\\u0000",
        "\\n",
        "\\u001b[0m",
    ),
    *(
        "s3://",
        "s3://b/k?x=1",
        "file:///tmp/x",
        "http://a/b",
        "~",
        " ",
        "ä/ß",
        "-o",
        "--json",
        "1,2",
        "1,",
    ),
    *(
        "nan",
        "1e400",
        "4GB",
        "0",
        "-1",
        "9" * 400,
        "9" * 5000,
        "0x10",
        "1_0",
        "auto",
        "2x2",
        "cuda:1",
    ),
    *("a", "b", "store", "bfs", "pagernk", "build", "true", "1h", "0s", "9" * 400 + "d", "1e-320"),
)
"""Texts as TOML has them between quotes."""

VALUES = (
    *(
        "nan",
        "-nan",
        "inf",
        "1e400",
        "1e-320",
        "-0.0",
        "0",
        "-1",
        "1",
        "17",
        "1.5",
        "true",
        "false",
    ),
    *("9" * 19, "9" * 400, "9" * 5000, "0x" + "f" * 250, "0x" + "f" * 9000, "0b1", "1_0"),
    *("[]", "{}", "[1]", "[1, 1]", '["a"]', '["a,b"]', "[[1]]", "[true]", "{a.b = 1}", "[nan]"),
    *(
        "2026-11-26",
        "07:32:00",
        "1979-05-27T00:32:00.999999-07:00",
        "'''\nx'''",
        '"""\n[[job]]\n"""',
    ),
    *("[" * 200 + "]" * 200, "{x=" * 150 + "1" + "}" * 150, "", "=", '"', "'''", "\\"),
)

COMMANDS = (
    *("bfs", "build", "components", "pagerank", "sssp", "closeness", "betweenness", "eccentricity"),
    *("validate", "convert", "report", "bench", "batch", "", "pagernk", "BFS"),
)

KEYS = (
    *(
        "name",
        "command",
        "needs",
        "retries",
        "timeout",
        "graph",
        "edges",
        "input",
        "path",
        "result",
    ),
    *("output", "source", "sources", "personalize", "threads", "memory_limit", "seed", "tolerance"),
    *("damping", "iterations", "checkpoint", "workers", "scheduler", "scheduler_file", "scratch"),
    *(
        "restart",
        "directed",
        "src",
        "weight",
        "partitions",
        "grid",
        "threshold",
        "device",
        "layout",
    ),
    *("device_memory_limit", "max_depth", "max_distance", "normalized", "profile", "strict"),
    *("overwrite", "json", "debug", "help", "grpah", '"a b"', '""', "'x\ty'", "a.b", "x" * 400),
    *(".".join("a" * 200), '"\\n"', "ä", "=", "[", "[[job", "#"),
)


class Cases:
    """Random files of jobs, determined by a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.changes = True

    def text(self) -> str:
        """Return a whole file of jobs; some files have broken syntax besides changed values."""
        rng = self.random
        lines = []
        self.changes = rng.random() < 0.7
        if self.changes and rng.random() < 0.3:
            lines += ["[defaults]", *(self._pair() for _ in range(rng.randint(0, 4)))]
        for number in range(rng.choice([0, 1, 1, 2, 3, 8]) if self.changes else 3):
            lines += self._job(number)
        text = "\n".join(lines)
        if self.changes and rng.random() < 0.2:
            return self._broken(text)
        return text

    def _job(self, number: int) -> list[str]:
        """Return the lines of a right job, with random changes when ``changes`` is set."""
        rng = self.random
        command = rng.choice(COMMANDS[:8])
        reads = {"build": "edges"}.get(command, "graph")
        job = {
            "name": f'"{rng.choice("abcdefgh")}{number}"',
            "command": f'"{command}"',
            reads: '"edges.parquet"',
            "output": f'"{rng.choice(["out", "o/{name}-", "{date}/x", "o"])}{number}"',
        }
        if command in ("bfs", "sssp"):
            job["source"] = "1"
        if not self.changes:
            return ["[[job]]", *(f"{key} = {value}" for key, value in job.items())]
        for _ in range(rng.choice([0, 0, 1, 1, 2, 4])):
            key = rng.choice([*job, rng.choice(KEYS)])
            job[key] = self._value()
        if rng.random() < 0.1:
            job["command"] = f'"{rng.choice(COMMANDS)}"'
        if rng.random() < 0.1:
            job.pop(rng.choice(list(job)))
        lines = [f"{key} = {value}" for key, value in job.items()]
        return [rng.choice(["[[job]]"] * 9 + ["[job]", "[[jobs]]", "[[job.x]]"]), *lines]

    def _pair(self) -> str:
        return f"{self.random.choice(KEYS)} = {self._value()}"

    def _value(self) -> str:
        rng = self.random
        return rng.choice(VALUES) if rng.random() < 0.5 else f'"{rng.choice(TEXTS)}"'

    def _broken(self, text: str) -> str:
        rng = self.random
        at = rng.randint(0, len(text))
        put = rng.choice(["\x00", "\ufeff", "\r", "\r\n", "\u2028", '"""', "'", "[" * 3000, "{"])
        put = rng.choice([put, ".".join("b" * 3000), "".join(rng.choices(string.printable, k=9))])
        return rng.choice(
            [text[:at], text[:at] + put + text[at:], text * 20, text[at:] + text[:at]]
        )


@pytest.fixture
def folder(edge_list, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    edge_list([0, 1], [1, 2])
    (tmp_path / "edges").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


@pytest.fixture
def in_time(monkeypatch):
    """Make a case that hangs fail after a time limit."""

    def over(number: int, frame: object) -> None:
        raise TimeoutError(f"no end within {_SECONDS} s")

    before = signal.signal(signal.SIGALRM, over)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_files_of_jobs(delegraph, folder, in_time, seed):
    cases, codes = Cases(seed), set()
    for case in range(CASES):
        text = cases.text()
        (folder / "jobs.toml").write_text(text)
        before = sorted(path for path in folder.rglob("*"))
        signal.setitimer(signal.ITIMER_REAL, _SECONDS)
        run = delegraph("batch", "plan", "jobs.toml")
        signal.setitimer(signal.ITIMER_REAL, 0)
        case_line = f"seed {seed}, case {case}: {run.code}, {run.err}\n{text[:3000]}"
        assert run.code in (0, 2), case_line
        assert "Traceback" not in run.err, case_line
        lines = run.err.removeprefix("delegraph: ").splitlines()
        assert (run.code == 0) == (not lines), case_line
        assert all(line.startswith(("jobs.toml", "[", "Usage")) for line in lines), case_line
        assert max(map(len, lines), default=0) < 1000, case_line
        assert sorted(path for path in folder.rglob("*")) == before, case_line
        codes.add(run.code)
    assert codes == {0, 2}
