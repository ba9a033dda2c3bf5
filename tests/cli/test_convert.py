"""``delegraph convert``: messages, files that a run leaves, and memory that it holds."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
from typing import get_args

import click
import pytest

import delegraph as package
from delegraph.cli.commands.convert import convert
from delegraph.partition.errors import InputError
from delegraph.pipeline.interchange import text
from delegraph.pipeline.interchange.delimited import Choices
from delegraph.pipeline.interchange.formats import SUFFIXES, FormatName, format_of
from delegraph.pipeline.run.records import ConvertRecord
from support.failing import Failing
from support.marks import nightly, slow
from support.processes import command, peak_of
from support.schema import conforms


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "links.csv"
    path.write_text("src,dst,weight\n1,2,5\n2,3,6\n")
    return path


def test_from_a_file_to_answers(ok, path, tmp_path):
    run = ok("convert", path, "-o", tmp_path / "edges")
    assert run.out == f"{tmp_path}/edges: 2 rows\n"
    assert "use --weight weight" in run.err
    ok("build", tmp_path / "edges", "-o", tmp_path / "g.dg", "--weight", "weight")
    assert ok("convert", tmp_path / "g.dg", "-o", tmp_path / "g.npz").out.endswith(": 4 entries\n")
    ok("sssp", tmp_path / "g.dg", "--source", 1, "-o", tmp_path / "paths")
    assert ok("convert", tmp_path / "paths", "-o", tmp_path / "p.txt").out.endswith(": 3 lines\n")
    assert (tmp_path / "p.txt").read_text() == "1 0\n2 5\n3 11\n"
    assert not list(tmp_path.glob(".*"))


def test_a_typo_among_integers_is_told(ok, tmp_path):
    """A typo is told with its file and line: in messages, in the record, and in JSON."""
    path = tmp_path / "typo.csv"
    path.write_text("src,dst\n1,2\nO3,4\n")
    run = ok("convert", path, "-o", tmp_path / "edges")
    reason = f"{path}, line 3: 'O3' is not a 64-bit integer, so ids are strings"
    assert reason in run.err
    record = json.loads((tmp_path / "edges.run.json").read_text())
    assert [note.partition(" (")[0] for note in record["notes"]] == [reason]
    rerun = ok("convert", path, "-o", tmp_path / "edges", "--json").json
    assert rerun == {**record, "already": True}
    assert reason in ok("convert", path, "-o", tmp_path / "edges").err


def test_what_may_be_unpacked(delegraph, ok, tmp_path, monkeypatch):
    monkeypatch.setattr(text, "UNPACKED_BYTES", 1 << 20)
    path = tmp_path / "newlines.snap.gz"
    path.write_bytes(gzip.compress(b"1 2\n" + b"\n" * (3 << 20)))
    run = delegraph("convert", path, "-o", tmp_path / "edges", "--quiet")
    assert run.code == 2
    assert "unpack to more than 2 MB, which is unusual for a graph file" in run.err
    assert "--max-unpacked SIZE, or --max-unpacked none" in run.err
    assert list(tmp_path.iterdir()) == [path]
    ok("convert", path, "-o", tmp_path / "edges", "--max-unpacked", "4MB")
    ok("convert", path, "-o", tmp_path / "other", "--max-unpacked", "none")
    assert delegraph("convert", path, "-o", tmp_path / "x", "--max-unpacked", "much").code == 2


@pytest.mark.parametrize("kind", ["edge list", "matrix", "text"])
def test_records_and_what_is_there_already(ok, delegraph, path, tmp_path, kind):
    if kind == "edge list":
        line = ("convert", path, "-o", tmp_path / "out", "--src", 1)
    else:
        package.convert(path, tmp_path / "edges")
        package.build(tmp_path / "edges", tmp_path / "graph.dg")
        package.bfs(tmp_path / "graph.dg", 1, output=tmp_path / "result")
        read, ending = ("graph.dg", "npz") if kind == "matrix" else ("result", "txt")
        line = ("convert", tmp_path / read, "-o", tmp_path / f"out.{ending}")
    output = line[3]
    run = ok(*line, "--json").json
    record = json.loads((tmp_path / f"{output.name}.run.json").read_text())
    assert conforms(record, ConvertRecord)
    assert run == {**record, "already": False}
    assert record["written"] == kind

    rerun = ok(*line)
    assert "already converted" in rerun.err
    assert ok(*line, "--json").json == {**record, "already": True}
    assert ok(*line, "--overwrite", "--json").json["already"] is False
    output.rename(tmp_path / "away")  # its record stays
    assert ok(*line, "--json").json["already"] is False
    if kind == "edge list":
        os.utime(path, ns=(0, 0))
    else:
        package.bfs(tmp_path / "graph.dg", 2, output=tmp_path / "result", overwrite=True)
        os.utime(tmp_path / "graph.dg" / "manifest.json", ns=(0, 0))
    other = delegraph(*line)
    assert other.code == 2
    assert "exists; name another output, move it away, or replace it with --overwrite" in other.err
    ok(*line, "--overwrite")


def test_only_its_own_kind_is_replaced(delegraph, ok, path, tmp_path):
    package.convert(path, tmp_path / "edges")
    package.bfs(tmp_path / "edges", 1, output=tmp_path / "result")
    (tmp_path / "mine.txt").write_text("mine")
    for line in (
        ("convert", tmp_path / "result", "-o", tmp_path / "mine.txt"),
        ("convert", path, "-o", tmp_path / "result"),
    ):
        for more in ((), ("--overwrite",)):
            run = delegraph(*line, *more)
            assert run.code == 2
            assert "that delegraph wrote" in run.err
    assert (tmp_path / "mine.txt").read_text() == "mine"
    ok("convert", tmp_path / "result", "-o", tmp_path / "out.txt")
    (tmp_path / "out.txt").write_text("changed by hand")
    assert delegraph("convert", tmp_path / "result", "-o", tmp_path / "out.txt", "--overwrite").code


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("nothing.csv", (), "nothing.csv: no such file"),
        ("links.csv", ("--from", "metis", "--src", "1"), "--src is not an option for metis files"),
        (
            "links.csv",
            ("--from", "snap", "--no-header"),
            "--no-header is not an option for snap files",
        ),
        ("links.csv", ("--weight", "metres"), "no column 'metres'; its first line names src, dst"),
        ("links.csv", ("--weight", "2"), "the same column is given twice: src, dst, 2"),
        ("links.csv", ("--memory-limit", "10MB"), "the memory limit of 10 MB is too small"),
        ("links.unknown", (), "give its format with --from"),
        ("links.csv", ("--src", "9" * 5000), "line names src, dst, weight"),
        ("links.csv", ("--src", "٣"), "no column '٣'"),
    ],
)
def test_refused(delegraph, path, tmp_path, name, options, message):
    (tmp_path / "links.unknown").write_text("1 2\n")
    before = set(tmp_path.iterdir())
    run = delegraph("convert", tmp_path / name, "-o", tmp_path / "out", *options)
    assert run.code == 2
    assert run.err.startswith("delegraph: ")
    assert message in run.err
    assert run.err.count("\n") == 1
    assert set(tmp_path.iterdir()) == before


def test_names_of_outputs(delegraph, path, tmp_path):
    for output in ("edges.npz", "edges.txt"):
        run = delegraph("convert", path, "-o", tmp_path / output)
        assert run.code == 2
        assert "a store becomes a matrix" in run.err


def test_formats_are_those_of_the_help(ok):
    (option,) = (parameter for parameter in convert.params if parameter.name == "format")
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == get_args(FormatName)
    page = ok("convert", "--help").out
    assert all(word in page for word in (*get_args(FormatName), *SUFFIXES))
    with pytest.raises(InputError, match="'gml' is not a format: choose one of csv"):
        format_of("edges.gml", "gml")
    with pytest.raises(InputError, match="'int32' is not a type: choose one of auto, int64"):
        Choices(id_type="int32")  # pyright: ignore[reportArgumentType]


def test_options_are_those_of_python():
    """Options of the command are Python's arguments, messages aside."""
    options = {parameter.name for parameter in convert.params}
    arguments = set(package.convert.__annotations__) - {"return", "progress"}
    talk = {"as_json", "quiet", "debug", "log_format", "heartbeat"}
    assert options - talk - {"no_header"} == arguments - {"header"}


def test_bytes_do_not_depend_on_threads(tmp_path):
    path = tmp_path / "edges.el"
    path.write_text("".join(f"{i} {i * i % 1000}\n" for i in range(400_000)))
    for threads in (1, 3):
        package.convert(path, tmp_path / str(threads), threads=threads)
    one, other = (
        [(file.name, file.read_bytes()) for file in sorted((tmp_path / str(threads)).iterdir())]
        for threads in (1, 3)
    )
    assert one == other


@pytest.mark.slow
@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize(("read", "written"), [("links.csv", "edges"), ("g.dg", "g.npz")])
def test_an_error_at_each_call(delegraph, path, tmp_path, monkeypatch, read, written, existing):
    """Running the command again gives equal output, and a failed run leaves nothing: with
    replacement after errors of every second call, without after errors of the other calls.
    """
    package.convert(path, tmp_path / "links")
    package.build(tmp_path / "links", tmp_path / "g.dg")
    folder = tmp_path / "folder"
    line = ("convert", tmp_path / read, "-o", folder / written, "--quiet")
    number = 1 + existing
    while True:
        folder.mkdir()
        if existing:
            assert delegraph(*line).code == 0
        replacing = ("--overwrite",) if existing else ()
        error = (errno.EIO, errno.ENOSPC)[number // 2 % 2]
        with Failing(monkeypatch, folder, number, error) as failing:
            run = delegraph(*line, *replacing)
        assert run.code in (0, 1, 2), run.err
        assert "--debug" not in run.err
        rerun = delegraph(*line, *replacing)
        assert rerun.code == 0, (number, run.err, rerun.err)
        assert {file.name for file in folder.iterdir()} == {written, f"{written}.run.json"}
        shutil.rmtree(folder)
        if failing.calls < number:
            break
        number += 2
    assert number > 10


@pytest.mark.parametrize(
    "name", [nightly("edges.txt"), slow("edges.csv"), nightly("one-line.graph"), slow("names.tsv")]
)
def test_memory_is_bounded_whatever_the_size(tmp_path, name):
    """Memory stays bounded for 300 MB of text; in METIS's, nearly all is the line of one vertex."""
    path = tmp_path / name
    half = 10_000_000 if name == "one-line.graph" else 20_000_000
    with open(path, "w") as file:
        if name == "one-line.graph":
            file.write(f"{half + 1} {half}\n")
            file.writelines(f"{i} " for i in range(2, half + 2))
            file.write("\n" + "1\n" * half)
        else:
            blank = "," if name == "edges.csv" else "\t"
            file.write({"edges.txt": "", "edges.csv": "src,dst\n"}.get(name, "src\tdst\n"))
            prefix = "vertex-" if name == "names.tsv" else ""
            rows = half // 2 if prefix else half
            file.writelines(f"{prefix}{i}{blank}{prefix}{i * 7 % rows}\n" for i in range(rows))
    limit = 450_000_000
    line = command("convert", path, "-o", tmp_path / "out", "--memory-limit", limit, "--quiet")
    code, peak, stderr = peak_of(line)
    assert code == 0, stderr
    assert peak <= limit
