"""Examples of every command's help run in order, in a folder that has the files they name."""

from __future__ import annotations

import gzip
import inspect
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delegraph.cli.main import cli
from delegraph.kernels.gpu.device import DeviceError, open_device
from support import processes
from support.batches import every_state, write_batch
from support.graphs import random_edges
from support.marks import nightly

VERTICES = 1200


def commands(context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the path and the help of a command and of all commands below it."""
    yield context.command_path, inspect.cleandoc(context.command.help or "")
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            inner = context.command.get_command(context, name)
            assert inner is not None
            yield from commands(click.Context(inner, parent=context, info_name=name))


HELP = dict(commands(click.Context(cli, info_name="delegraph", **cli.context_settings)))
TOGETHER = {
    command: [path for path in HELP if path == command or path.startswith(f"{command} ")]
    for command in HELP
    if command.count(" ") == 1
} | {"delegraph": ["delegraph"]}
"""Commands whose examples share a folder: a group, and the commands in the group."""

LONG = {"delegraph batch", "delegraph bench", "delegraph demo"}
"""Commands whose examples start processes or run many times."""


def examples(page: str) -> list[str]:
    return [line.strip() for line in page.splitlines() if line.startswith("delegraph ")]


def needs_gpu(words: list[str]) -> bool:
    """Return whether an example asks for a GPU; where there is none, ``run`` checks that the
    example fails.
    """
    made_there = any(re.fullmatch(r"kronecker:\d+", word) for word in words)
    return "cuda" in words or (made_there and "--algorithm" not in words)


def starts_workers(words: list[str]) -> bool:
    return "--workers" in words


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    """Write the files that the examples name into a folder for all tests."""
    folder = tmp_path_factory.mktemp("examples")
    src, dst = random_edges(1, VERTICES, 8 * VERTICES)
    src, dst = np.r_[src, np.arange(VERTICES - 1)], np.r_[dst, np.arange(1, VERTICES)]
    weight = np.ones(len(src), np.float32)

    def write(path: str, **columns: object) -> None:
        (folder / path).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), folder / path)

    write("edges/0.parquet", src=src, dst=dst, w=weight, amount=weight)
    write("roads/0.parquet", src=src, dst=dst, metres=weight)
    write("friends/0.parquet", src=["alice", "bob"], dst=["bob", "carol"])
    for part in ("part-0.parquet", "part-1.parquet"):
        write(part, **{"from": src, "to": dst})
    for name in ("seeds.parquet", "some.parquet"):
        write(name, vertex=[3, 17, 25])
    write("pairs.parquet", source=[3, 17], target=[25, 3])
    pairs = list(zip(src.tolist(), dst.tolist(), strict=True))[:50]
    with gzip.open(folder / "web.mtx.gz", "wt") as file:
        file.write("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n")
    with pa.output_stream(folder / "soc.txt.zst", compression="zstd") as file:
        file.write("".join(f"{u} {v} 2\n" for u, v in pairs).encode())
    lines = [f"{u},{v},2.5\n" for u, v in pairs]
    (folder / "links.csv").write_text("".join(["from,to,metres\n", *lines]))
    (folder / "graph500-22.e").write_text("1 2\n2 3\n")
    (folder / "graph500-22.v").write_text("1\n2\n3\n")
    jobs = re.findall(
        r"^(?!delegraph)[\[\w].*(?:\]| = .*?)(?:  .*)?$", HELP["delegraph batch"], re.M
    )
    (folder / "jobs.toml").write_text("\n".join(jobs) + "\n")
    write_batch(folder / "nightly.toml", *every_state())
    return folder


@pytest.fixture
def files(shared, ok, bucket, tmp_path, monkeypatch) -> Path:
    """Copy the shared files, a store of them and results into a folder of the test, and the edges
    into an object store whose bucket stands for s3://bucket.
    """
    if not (shared / "graph.dg").exists():
        monkeypatch.chdir(shared)
        ok("build", "edges/", "-o", "graph.dg", "--partitions", 4)
        ok("build", "roads/", "-o", "roads.dg", "--weight", "metres")
        ok("bfs", "graph.dg", "--source", 17, "-o", "distances/")
        ok("components", "edges/", "-o", "components/")
    shutil.copytree(shared, tmp_path, dirs_exist_ok=True)
    bucket.copy(tmp_path / "edges", "edges")
    monkeypatch.setenv("TEST_BUCKET", bucket.url)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_all(files: Path, delegraph, command: str, workers: bool) -> None:
    """Run the examples of a command's folder that start workers, or all other examples."""
    if command == "delegraph batch":
        clear(files / "graph.dg")  # a job makes it
    for path in TOGETHER[command]:
        for example in examples(HELP[path]):
            words = shlex.split(example.replace("s3://bucket", os.environ["TEST_BUCKET"]))
            if starts_workers(words) == workers:
                run(files, delegraph, words)


def run(files: Path, delegraph, words: list[str]) -> None:
    """Run one example; an earlier example's output at the same path is removed first."""
    words, target = (words[:-2], words[-1]) if ">" in words else (words, None)
    if "-o" in words:
        clear(files / words[words.index("-o") + 1])
    if "--memory-limit" in words:  # which this process, after other tests, may not meet
        alone = subprocess.run(processes.command(*words[1:]), capture_output=True, text=True)
        code, out, err = alone.returncode, alone.stdout, alone.stderr
    else:
        answer = delegraph(*words[1:])
        code, out, err = answer.code, answer.out, answer.err
    if needs_gpu(words) and not has_gpu():
        assert code == 2
        assert re.search("GPU|device|CUDA|CuPy", err), err
        return
    assert code == 0, f"{shlex.join(words)}: {err}"
    if target is not None:
        (files / target).write_text(out)


def clear(output: Path) -> None:
    for path in (output, output.with_name(f"{output.name}.run.json")):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def has_gpu() -> bool:
    try:
        open_device()
    except DeviceError:
        return False
    return True


@pytest.mark.parametrize("command", HELP)
def test_every_command_has_one(command):
    assert examples(HELP[command])


@pytest.mark.parametrize("command", [nightly(c) if c in LONG else c for c in TOGETHER])
def test_they_run(command, files, delegraph):
    run_all(files, delegraph, command, workers=False)


@pytest.mark.slow
@pytest.mark.parametrize("command", [nightly(c) if c in LONG else c for c in TOGETHER])
def test_they_run_by_workers(command, files, delegraph):
    run_all(files, delegraph, command, workers=True)
