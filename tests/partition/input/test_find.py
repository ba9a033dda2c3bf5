"""Which files an edge list is: folders, links, globs, names that are left out."""

from __future__ import annotations

import json
import os
import shutil
import socket

import pytest

from delegraph.partition.errors import InputError
from delegraph.partition.input import find
from delegraph.partition.input.edges import open_edges
from delegraph.partition.input.find import find_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Makes empty files below the working directory: ``folder("a/x.parquet")``."""
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
    with pytest.raises(InputError, match="in/b: a link that leads nowhere"):
        find_files("in")
    with pytest.raises(InputError, match="in/b: a link that leads nowhere"):
        find_files("in/b")


def test_names_left_out_are_listed(folder):
    folder("in/a.parquet", "in/_b.parquet", "in/_tmp/c.parquet", "in/.d/e.parquet", "in/x/.f.pq")
    folder("in/_SUCCESS", "in/.a.parquet.crc", "in/notes.txt")
    left_out = ["in/.d", "in/_b.parquet", "in/_tmp", "in/x/.f.pq"]
    assert find_files("in") == (["in/a.parquet"], left_out)
    assert find_files("in/*") == (
        ["in/a.parquet", "in/notes.txt"],
        ["in/_b.parquet", "in/_tmp", "in/x/.f.pq"],
    )
    assert find_files("in/**/*.parquet") == (
        ["in/a.parquet"],
        ["in/_b.parquet", "in/_tmp/c.parquet"],
    )
    assert find_files("in/_*.parquet") == (["in/_b.parquet"], [])
    assert find_files("in/_tmp") == (["in/_tmp/c.parquet"], [])


def test_what_is_left_out_is_told_and_recorded(ok, edge_list, tmp_path):
    path = edge_list([0, 1], [1, 2], "in/a.parquet")
    for number in range(30):
        shutil.copy(path, path.with_name(f"_{number:02}.parquet"))
    edges = open_edges(tmp_path / "in")
    assert len(edges.left_out) == 30
    assert edges.rows == 2
    assert open_edges(path).notes == ()
    for words in (("bfs", "--source", 0), ("build",)):
        output = tmp_path / words[0]
        ran = ok(words[0], tmp_path / "in", *words[1:], "-o", output)
        (line,) = [line for line in ran.err.splitlines() if "left out" in line]
        assert line.startswith("30 left out")
        assert line.endswith("_19.parquet and 10 more")
        record = json.loads(output.with_name(f"{words[0]}.run.json").read_text())
        assert record["notes"] == [line]
        assert list(record["inputs"]) == [str(path)]


def test_the_record_of_many_files_stays_small(ok, edge_list, tmp_path):
    path = edge_list([0, 1], [1, 2], "in/00.parquet")
    for number in range(1, 25):
        shutil.copy(path, path.with_name(f"{number:02}.parquet"))
    ran = ok("bfs", tmp_path / "in", "--source", 0, "-o", tmp_path / "out", "--json")
    *first, more = ran.json["inputs"].items()
    assert [name for name, _ in first] == [str(tmp_path / f"in/{n:02}.parquet") for n in range(20)]
    assert more == ("and 5 more", f"{5 * path.stat().st_size:,} bytes")
    assert ran.json["notes"] == []


@pytest.mark.parametrize(
    "pattern", ["in", "in/*", "in/**", "./in/**", "in/*.parquet", "in/day?.parquet"]
)
def test_folders_that_are_named_like_files(folder, pattern):
    """As Spark writes them."""
    names = ["in/day1.parquet/part-0.parquet", "in/day2.parquet/p.parquet"]
    folder(*names, "in/day1.parquet/_SUCCESS")
    assert find_files(pattern) == (names, [])


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
        with pytest.raises(InputError, match=r"in/b.parquet is no regular file"):
            open_edges(path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("in/c.parquet")
        with pytest.raises(InputError, match=r"in/c.parquet is no regular file"):
            open_edges("in/c.parquet")
    with pytest.raises(InputError, match="/dev/zero is no regular file"):
        open_edges("/dev/zero")
    os.mkfifo(root / "in" / "d")
    os.unlink("in/b.parquet")
    os.unlink("in/c.parquet")
    assert find_files("in").files == ["in/a.parquet"]
