"""Files of an edge list: folders, links, globs, names that are left out."""

from __future__ import annotations

import json
import os
import shutil
import socket

import pytest

import delegraph as delegraph_module
from delegraph.partition.errors import InputError
from delegraph.partition.input import find
from delegraph.partition.input.edges import open_edges
from delegraph.partition.input.find import NOTHING_LEFT_OUT, LeftOut, find_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a function that makes empty files below the working directory:
    ``folder("a/x.parquet")``.
    """
    monkeypatch.chdir(tmp_path)

    def make(*names):
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return tmp_path

    return make


def test_links_are_followed(folder):
    root = folder("in/a.parquet", "elsewhere/b.parquet", "elsewhere/deep/c.pq")
    (root / "in" / "far").symlink_to(root / "elsewhere")
    (root / "in" / "d.parquet").symlink_to(root / "elsewhere" / "b.parquet")
    names = ["in/a.parquet", "in/d.parquet", "in/far/b.parquet", "in/far/deep/c.pq"]
    assert find_files("in").files == names
    (root / "link").symlink_to(root / "in")
    assert len(find_files("link").files) == 4


def test_links_in_a_circle(folder):
    root = folder("in/a.parquet", "in/deep/b.parquet")
    (root / "in" / "deep" / "up").symlink_to(root / "in")
    (root / "in" / "deep" / "above").symlink_to(root)
    (root / "in" / "deep" / "self").symlink_to("self")
    with pytest.raises(InputError, match="in/deep/self: cannot be read"):
        find_files("in")
    (root / "in" / "deep" / "self").unlink()
    assert find_files("in").files == ["in/a.parquet", "in/deep/b.parquet"]


def test_a_folder_that_several_links_lead_to_is_read_once(folder):
    root = folder("in/day1/a.parquet", "in/day2/b.parquet")
    (root / "in" / "latest").symlink_to("day2")
    assert find_files("in").files == ["in/day1/a.parquet", "in/day2/b.parquet"]


def test_a_link_that_leads_nowhere(folder):
    root = folder("in/a.parquet")
    (root / "in" / "b").symlink_to(root / "gone")
    with pytest.raises(InputError, match="in/b: a broken symbolic link"):
        find_files("in")
    with pytest.raises(InputError, match="in/b: a broken symbolic link"):
        find_files("in/b")


def test_names_left_out_are_listed(folder):
    """Left-out names are listed, names that may hold edges first."""
    folder("in/a.parquet", "in/_b.parquet", "in/_tmp/c.parquet", "in/.d/e.parquet", "in/x/.f.pq")
    folder("in/_SUCCESS", "in/.a.parquet.crc", "in/notes.txt")
    hidden = ("in/.d", "in/_b.parquet", "in/_tmp", "in/x/.f.pq", "in/.a.parquet.crc", "in/_SUCCESS")
    assert find_files("in") == (["in/a.parquet"], LeftOut(hidden, (), ("in/notes.txt",)))
    assert find_files("in/*") == (
        ["in/a.parquet", "in/notes.txt"],
        LeftOut(("in/_b.parquet", "in/_tmp", "in/x/.f.pq", "in/_SUCCESS")),
    )
    assert find_files("in/**/*.parquet") == (
        ["in/a.parquet"],
        LeftOut(("in/_b.parquet", "in/_tmp/c.parquet")),
    )
    assert find_files("in/_*.parquet") == (["in/_b.parquet"], NOTHING_LEFT_OUT)
    assert find_files("in/_tmp") == (["in/_tmp/c.parquet"], NOTHING_LEFT_OUT)


def test_parquet_under_other_names(ok, delegraph, edge_list, tmp_path):
    """Parquet files under other names are left out, which the first note tells; a pattern selects
    them.
    """
    path = edge_list([0, 1], [1, 2], "in/part-0.parquet")
    for number, name in enumerate(["part-1", "part-2.snappy", "deep/part-3"], 2):
        edge_list([number], [number + 1], f"in/{name}")
    (path.parent / "notes.txt").write_text("PAR")
    misnamed = [str(path.parent / name) for name in ("deep/part-3", "part-1", "part-2.snappy")]
    edges = open_edges(path.parent)
    assert edges.rows == 2
    assert edges.left_out == LeftOut((), tuple(misnamed), (str(path.parent / "notes.txt"),))
    note = (
        f"3 Parquet files left out because their names do not end in .parquet, .parq or .pq: "
        f"{', '.join(misnamed)}; rename them, or select them with a pattern such as "
        f"'{path.parent / 'deep'}/*'"
    )
    other = f"1 left out because they are not Parquet files: {path.parent / 'notes.txt'}"
    assert edges.notes == (note, other)
    for command, *more in (("info",), ("plan",)):
        run = ok(command, path.parent, *more, "--json")
        assert run.json["notes"] == [note, other]
        assert run.err.splitlines()[:2] == [note, other]
    out = tmp_path / "out"
    for words in (("bfs", "--source", 0), ("components",), ("pagerank",), ("build",)):
        run = ok(words[0], path.parent, *words[1:], "-o", out / words[0], "--json")
        assert [line for line in run.err.splitlines() if "left out" in line] == [note, other]
        assert run.json["notes"][:2] == [note, other]
        assert json.loads((out / f"{words[0]}.run.json").read_text())["notes"][:2] == [note, other]
    with delegraph_module.open(path.parent) as graph:
        assert graph.notes[:2] == (note, other)
        assert graph.info["notes"] == [note, other]
    (path.parent / "notes.txt").unlink()
    assert open_edges(f"{path.parent}/part-*").rows == 4
    path.unlink()
    run = delegraph("info", path.parent)
    assert run.code == 2
    assert "the folder holds no Parquet files" in run.err
    assert f"3 Parquet files have names with another ending: {misnamed[0]}" in run.err


def test_a_folder_of_all_kinds_of_things(folder, monkeypatch):
    """The search of a folder with very many other files ends early and says what to do."""
    monkeypatch.setattr(find, "MOST_OTHERS", 22)
    folder(*(f"in/{letter}/{number}.txt" for letter in "abc" for number in range(9)))
    for path in ("in", "in/[a-c]"):
        with pytest.raises(
            InputError, match=r"0 Parquet files found, and more than 22 .*name the fol"
        ):
            find_files(path)
    folder("in/0.parquet")
    assert len(find_files("in").left_out.others) == 27
    assert find_files("in/**/*.parquet").files == ["in/0.parquet"]


def test_a_checksum_beside_each_file_is_no_such_folder(folder, monkeypatch):
    monkeypatch.setattr(find, "MOST_OTHERS", 2)
    folder(*(f"in/{number}.parquet" for number in range(9)))
    folder(*(f"in/.{number}.parquet.crc" for number in range(9)), "in/_SUCCESS")
    assert len(find_files("in").files) == 9


def test_what_is_left_out_is_told_and_recorded(ok, edge_list, tmp_path):
    path = edge_list([0, 1], [1, 2], "in/a.parquet")
    for number in range(30):
        shutil.copy(path, path.with_name(f"_{number:02}.parquet"))
    edges = open_edges(tmp_path / "in")
    assert len(edges.left_out.hidden) == 30
    assert edges.rows == 2
    assert open_edges(path).notes == ()
    for words in (("bfs", "--source", 0), ("build",)):
        output = tmp_path / words[0]
        run = ok(words[0], tmp_path / "in", *words[1:], "-o", output)
        (line,) = [line for line in run.err.splitlines() if "left out" in line]
        assert line.startswith("30 left out")
        assert line.endswith("_19.parquet and 10 more")
        record = json.loads(output.with_name(f"{words[0]}.run.json").read_text())
        assert record["notes"] == [line]
        assert list(record["inputs"]) == [str(path)]


def test_the_record_of_many_files_stays_small(ok, edge_list, tmp_path):
    path = edge_list([0, 1], [1, 2], "in/00.parquet")
    for number in range(1, 25):
        shutil.copy(path, path.with_name(f"{number:02}.parquet"))
    run = ok("bfs", tmp_path / "in", "--source", 0, "-o", tmp_path / "out", "--json")
    *first, more = run.json["inputs"].items()
    assert [name for name, _ in first] == [str(tmp_path / f"in/{n:02}.parquet") for n in range(20)]
    assert more == ("and 5 more", f"{5 * path.stat().st_size:,} bytes")
    assert run.json["notes"] == []


@pytest.mark.parametrize(
    "pattern", ["in", "in/*", "in/**", "./in/**", "in/*.parquet", "in/day?.parquet"]
)
def test_folders_that_are_named_like_files(folder, pattern):
    """Folders that are named like files, as Spark writes them, are searched for files."""
    names = ["in/day1.parquet/part-0.parquet", "in/day2.parquet/p.parquet"]
    folder(*names, "in/day1.parquet/_SUCCESS")
    left_out = LeftOut(("in/day1.parquet/_SUCCESS",))
    assert find_files(pattern) == (names, left_out)


def test_what_cannot_be_listed(folder, monkeypatch):
    folder("in/a.parquet", "in/deep/b.parquet", "in/deep/c/d.parquet")
    listed = os.scandir

    def scandir(path):
        if os.fspath(path) == "in/deep":
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(find.os, "scandir", scandir)
    for path in ("in", "in/*", "in/*/*.parquet", "in/**/d.parquet", "in/deep"):
        with pytest.raises(InputError, match="in/deep: the folder cannot be listed: Permission"):
            find_files(path)
    assert find_files("in/*.parquet").files == ["in/a.parquet"]


def test_nothing_there(folder):
    folder("in/notes.txt", "in/empty/notes.txt")
    with pytest.raises(InputError, match="none: no such file or folder"):
        find_files("none")
    for pattern in ("in/*.parquet", "in/e*"):
        with pytest.raises(InputError, match="no file matches"):
            find_files(pattern)


def test_a_pipe_or_a_socket_is_no_edge_list(folder):
    root = folder("in/a.parquet")
    os.mkfifo(root / "in" / "b.parquet")
    for path in ("in", "in/b.parquet", "in/*"):
        with pytest.raises(InputError, match=r"in/b.parquet is not a regular file"):
            open_edges(path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("in/c.parquet")
        with pytest.raises(InputError, match=r"in/c.parquet is not a regular file"):
            open_edges("in/c.parquet")
    with pytest.raises(InputError, match="/dev/zero is not a regular file"):
        open_edges("/dev/zero")
    os.mkfifo(root / "in" / "d")
    os.unlink("in/b.parquet")
    os.unlink("in/c.parquet")
    assert find_files("in") == (["in/a.parquet"], LeftOut((), (), ("in/d",)))
