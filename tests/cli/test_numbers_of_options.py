"""Every option that takes a number refuses words that are no number, are too long, or are too
large.
"""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph as package
from delegraph.cli.main import cli
from delegraph.cli.numbers import Number, WholeNumber
from delegraph.pipeline.run.ending import LIFELINE
from support.processes import command

LONG = "9" * 5000


def commands(group: click.Group, *above: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield all commands, by the words that call them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        subcommand = group.get_command(context, name)
        assert subcommand is not None
        if isinstance(subcommand, click.Group):
            yield from commands(subcommand, *above, name)
        else:
            yield (*above, name), subcommand


def of_kind(*kinds: type) -> list:
    return [
        pytest.param(words, option.opts[-1], id=" ".join((*words, option.opts[-1])))
        for words, subcommand in commands(cli)
        for option in subcommand.params
        if isinstance(option, click.Option) and isinstance(option.type, kinds)
    ]


WHOLE = of_kind(click.types.IntParamType)
NUMBERS = of_kind(click.types.FloatParamType)


def test_click_parses_no_number():
    """No option has a number type of click's own: click's types fail at long integers and accept
    nan.
    """
    assert len(WHOLE) > 50
    assert len(NUMBERS) > 10
    for _, subcommand in commands(cli):
        for option in subcommand.params:
            if isinstance(option.type, click.types.IntParamType):
                assert isinstance(option.type, WholeNumber), option.opts
            if isinstance(option.type, click.types.FloatParamType):
                assert isinstance(option.type, Number), option.opts


def refused(run, option: str) -> None:
    assert run.code == 2, run.err
    last = run.err.splitlines()[-1]
    assert last.startswith(f"Error: Invalid value for '{option}"), last
    assert len(last) < 250
    assert "Traceback" not in run.err


@pytest.mark.parametrize(("words", "option"), WHOLE)
def test_whole_numbers(delegraph, words, option):
    for value in (LONG, f"-{LONG}", str(2**65), "1.5", "nan", "٣", "1e3", ""):
        refused(delegraph(*words, f"{option}={value}"), option)


@pytest.mark.parametrize(("words", "option"), NUMBERS)
def test_numbers(delegraph, words, option):
    for value in ("nan", "-nan", "inf", "-Infinity", "1e400", "1e-320", LONG, "0x1", "٣", ""):
        refused(delegraph(*words, f"{option}={value}"), option)


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--memory-limit", (LONG, "9" * 400, "0", "0.4", "nan", "٣GB")),
        ("--device-memory-limit", (LONG, "0")),
        ("--threshold", (LONG, "nan", "0", "1.5", "²")),
        ("--grid", (f"{LONG}x1", f"1x{LONG}", "٣x1", "1x", "-1x2")),
        ("--device", (f"cuda:{LONG}", "cuda:٣")),
    ],
)
def test_numbers_with_a_form_of_their_own(delegraph, option, values):
    for value in values:
        refused(delegraph("build", "edges", "-o", "out", f"{option}={value}"), option)


@pytest.mark.parametrize(
    "words",
    [
        ("bfs", "--source", LONG),
        ("bfs", "--sources", f"{LONG},1"),
        ("closeness", "--sources", LONG),
        ("closeness", "--sources", str(2**63)),
        ("betweenness", "--sources", f"{LONG},"),
        ("pagerank", "--tolerance", "0"),
        ("pagerank", "--tolerance", "-1e-6"),
        ("pagerank", "--damping", "1e300"),
        ("sssp", "--source", LONG, "--weight", "w"),
    ],
    ids=lambda words: " ".join(words)[:30],
)
def test_values_that_the_graph_tells(delegraph, edge_list, tmp_path, words):
    edges = edge_list([0, 1], [1, 2], w=[1, 2])
    run = delegraph(words[0], edges, *words[1:], "-o", tmp_path / "out")
    assert run.code == 2, run.err
    (line,) = run.err.splitlines()
    assert len(line) < 250


@pytest.mark.parametrize("name", ["kronecker:" + LONG, f"grid:{LONG}x2", "grid:٣x2"])
def test_recipes(delegraph, name):
    run = delegraph("bench", name)
    assert run.code == 2
    assert len(run.err.splitlines()) == 1


def test_the_largest_that_are_taken(ok, edge_list, tmp_path):
    edges, most = edge_list([0, 1], [1, 2]), 2**63 - 1
    for words in (
        ("bfs", edges, "--source", 0, "--max-depth", most, "--checkpoint", 10**9),
        ("bfs", edges, "--sources", "0,1", "--max-depth", most),
        ("bfs", edges, "--sources", "0,1", "--together", "--max-depth", most),
        ("pagerank", edges, "--max-iterations", most, "--threshold", most),
        ("closeness", edges, "--sources", 2, "--seed", 2**64 - 1),
    ):
        ok(*words, "-o", tmp_path / "out", "--overwrite")


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e-320, 10**5000, True, "1"], ids=type)
def test_numbers_from_python(edge_list, tmp_path, value):
    edges, out = edge_list([0, 1], [1, 2], weight=[1, 2]), tmp_path / "out"
    for ask in (
        lambda: package.pagerank(edges, output=out, tolerance=value),
        lambda: package.pagerank(edges, output=out, damping=value),
        lambda: package.components(edges, output=out, checkpoint=value),
        lambda: package.components(edges, output=out, timeout=value),
        lambda: package.sssp(edges, 0, output=out, weight="weight", max_distance=value),
        lambda: package.generate("grid", out, height=3, width=3, drop=value),
        lambda: package.generate("blocks", out, vertices=9, blocks=2, mixing=value),
    ):
        with pytest.raises(package.InputError) as raised:
            ask()
        assert len(str(raised.value)) < 200
    assert not out.exists()


@pytest.mark.parametrize("value", [10**5000, -(10**5000), 1.5, math.nan, True], ids=type)
def test_whole_numbers_from_python(edge_list, tmp_path, value):
    edges, out = edge_list([0, 1], [1, 2]), tmp_path / "out"
    grid: Any = (value, 2)
    for ask in (
        lambda: package.components(edges, output=out, threads=value),
        lambda: package.components(edges, output=out, memory_limit=value),
        lambda: package.components(edges, output=out, workers=value),
        lambda: package.build(edges, out, partitions=value),
        lambda: package.build(edges, out, threshold=value),
        lambda: package.build(edges, out, layout="2d", grid=grid),
        lambda: package.bfs(edges, 0, output=out, max_depth=value),
        lambda: package.closeness(edges, output=out, sources=2, seed=value),
        lambda: package.pagerank(edges, output=out, iterations=value),
        lambda: package.generate("kronecker", out, scale=value),
        lambda: package.generate("kronecker", out, scale=4, seed=value),
    ):
        with pytest.raises(package.InputError) as raised:
            ask()
        assert len(str(raised.value)) < 200
    assert not out.exists()


def test_sources_of_any_length_from_python(edge_list, tmp_path):
    edges, out = edge_list([0, 1], [1, 2]), tmp_path / "out"
    for ask in (
        lambda: package.closeness(edges, output=out, sources=10**5000),
        lambda: package.bfs(edges, 10**5000, output=out),
        lambda: package.bfs(edges, output=out, sources=[1, 10**5000]),
        lambda: package.pagerank(edges, output=out, personalize={1: math.nan}),
        lambda: package.pagerank(edges, output=out, personalize={1: 10**5000}),
        lambda: package.pagerank(edges, output=out, personalize={10**5000: 1.0}),
    ):
        with pytest.raises(package.InputError) as raised:
            ask()
        assert len(str(raised.value)) < 200


def test_expected_iterations_of_a_tolerance_next_to_nothing(edge_list, tmp_path):
    """The expected number of iterations comes from the quotient of change and tolerance, which must
    be finite.
    """
    edges = edge_list(*np.random.default_rng(1).integers(0, 50, (2, 200)))
    result = package.pagerank(edges, output=tmp_path / "out", tolerance=2.3e-308, max_iterations=9)
    assert result.record["pagerank"]["iterations"] == 9


@pytest.mark.parametrize(
    "words",
    [
        ("bfs", "--sources"),
        ("closeness", "--sources"),
        ("betweenness", "--sources"),
        ("eccentricity", "--sources"),
        ("pagerank", "--personalize"),
    ],
    ids=" ".join,
)
def test_files_of_vertices_that_are_none(delegraph, edge_list, tmp_path, words):
    edges, file = edge_list([0, 1], [1, 2]), tmp_path / "some.parquet"

    def message() -> str:
        run = delegraph(words[0], edges, words[1], file, "-o", tmp_path / "out")
        assert run.code == 2, run.err
        (line,) = run.err.splitlines()
        return line

    pq.write_table(pa.Table.from_arrays([pa.array([1])] * 2, ["vertex"] * 2), file)
    assert "some.parquet: column 'vertex' occurs twice" in message()
    file.unlink()
    os.mkfifo(file)
    assert "some.parquet is not a regular file" in message()
    file.unlink()
    file.mkdir()
    assert "some.parquet is a folder: name a file" in message()
    file.rmdir()
    file.symlink_to("/dev/zero")
    assert "some.parquet is not a regular file" in message()
    file.unlink()
    file.symlink_to(tmp_path / "vertices")
    pq.write_table(pa.table({"vertex": [1]}), tmp_path / "vertices")
    assert delegraph(words[0], edges, words[1], file, "-o", tmp_path / "out").code == 0


def test_more_vertices_than_memory_takes(delegraph, edge_list, tmp_path, monkeypatch):
    edges, file = edge_list([0, 1], [1, 2]), tmp_path / "some.parquet"
    pq.write_table(pa.table({"vertex": range(2000)}), file)
    monkeypatch.setattr("delegraph.pipeline.results.weights.machine_bytes", lambda: 100_000)
    run = delegraph("pagerank", edges, "--personalize", file, "-o", tmp_path / "out")
    assert run.code == 2
    assert "its 2,000 rows take 128 kB of memory, but this machine has 100 kB" in run.err


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "huge", "deep"])
@pytest.mark.parametrize("option", ["--scheduler-file", "--heartbeat"])
def test_small_files_that_are_none(delegraph, edge_list, tmp_path, kind, option):
    edges, file = edge_list([0, 1], [1, 2]), tmp_path / "some.json"
    make = {
        "pipe": lambda: os.mkfifo(file),
        "folder": file.mkdir,
        "device": lambda: file.symlink_to("/dev/zero"),
        "huge": lambda: file.write_bytes(b"{" + b" " * (2 << 20) + b"}"),
        "deep": lambda: file.write_text("[" * 5000),
    }
    make[kind]()
    run = delegraph("build", edges, "-o", tmp_path / "out", option, file)
    assert run.code == 2, run.err
    assert "some.json" in run.err.splitlines()[-1]
    assert "Traceback" not in run.err


@pytest.mark.parametrize(
    "value", [LONG, "x", "-1", "1", "999999", "2147483648"], ids=lambda v: v[:9]
)
def test_the_environment_of_jobs(value):
    """An environment variable that a user sets does not make a command a job of a batch."""
    env = {**os.environ, LIFELINE: value}
    run = subprocess.run(command("info", "x"), env=env, capture_output=True, text=True, timeout=60)
    assert run.returncode == 2
    (line,) = run.stderr.splitlines()
    assert f"{LIFELINE} is set, which only 'batch run' may do: unset it" in line
    assert len(line) < 250


def test_warnings_of_libraries_are_a_line(edge_list, tmp_path):
    """A warning of Numba's is told in one line: Numba's own text has the whole value and a
    traceback.
    """
    words = command("components", edge_list([0, 1], [1, 2]), "-o", tmp_path / "out")
    env = {**os.environ, "NUMBA_NUM_THREADS": LONG}
    run = subprocess.run(words, env=env, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    note, _ = run.stderr.splitlines()
    assert note.startswith("note: Environment variable 'NUMBA_NUM_THREADS' is defined but")
    assert len(note) < 250


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("pagernk",), "'pagerank'"),
        (("batch", "statsu"), "'status'"),
        (("generate", "kroneker"), "'kronecker'"),
        (("pagerank", "x", "--dampin=0.5"), "'--damping'"),
        (("batch", "run", "x", "--memory-limt=4GB"), "'--memory-limit'"),
    ],
    ids=str,
)
def test_what_was_meant(delegraph, words, meant):
    run = delegraph(*words)
    assert run.code == 2
    last = run.err.splitlines()[-1]
    assert "did you mean" in last.lower()
    assert meant in last


def test_what_nobody_meant(delegraph):
    run = delegraph("x" * 100_000)
    assert run.code == 2
    assert "did you mean" not in run.err
