"""``delegraph demo``: its country, its commands, its page, and what it tells at the end."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import webbrowser
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delegraph.cli import country
from support import processes

demo = import_module("delegraph.cli.commands.demo")
ISLAND = {"Kelpness", "Larkholm"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> SimpleNamespace:
    """Run the demo once, in a pipe, where a browser would leave a file."""
    folder = tmp_path_factory.mktemp("demo")
    browser = folder / "browser"
    browser.write_text(f"#!/bin/sh\ntouch {folder}/opened\n")
    browser.chmod(0o755)
    env = {**os.environ, "BROWSER": str(browser), "DISPLAY": ":0"}
    run = subprocess.run(
        processes.command("demo"), cwd=folder, env=env, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return SimpleNamespace(out=run.stdout, folder=folder)


@pytest.fixture
def quick(delegraph, monkeypatch, tmp_path):
    """Return a function that runs the demo in this process, without its commands."""
    monkeypatch.setattr(demo, "_run", lambda line, folder: None)
    monkeypatch.chdir(tmp_path)
    return lambda *options: delegraph("demo", *options)


def test_country_is_the_same_each_time():
    code = "from delegraph.cli.country import segments; print(*segments(), sep='\\n')"
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert printed == {"".join(f"{segment}\n" for segment in country.segments())}


def test_edge_list_of_the_country(tmp_path):
    country.write_edge_list(tmp_path / "roads.parquet")
    table = pq.read_table(tmp_path / "roads.parquet")
    types = {"src": pa.string(), "dst": pa.string(), "minutes": pa.int64()}
    assert dict(zip(table.schema.names, table.schema.types, strict=True)) == types
    rows = table.to_pylist()
    assert len({frozenset((row["src"], row["dst"])) for row in rows}) == len(rows)
    assert all(row["src"] != row["dst"] and row["minutes"] > 0 for row in rows)


def test_no_road_leads_to_the_island():
    graph = nx.Graph((src, dst) for src, dst, _ in country.segments())
    parts = [
        {re.split("[/-]", junction)[0] for junction in part}
        for part in nx.connected_components(graph)
    ]
    assert sorted(parts, key=len) == [ISLAND, set(country.TOWNS) - ISLAND]


def test_map_shows_the_towns_and_the_roads():
    assert sorted(re.findall(r"\w+", country.MAP)) == sorted(country.TOWNS)
    eastward = {(start, end) for start, gate, end, *_ in country.ROADS if gate == "East"}
    on_map = set(re.findall(r"(\w+) -+ (?=(\w+))", country.MAP))
    assert on_map == eastward


def test_demo_runs_what_it_prints(finished, ok, tmp_path, monkeypatch):
    """Each command prints the same again where only the edge list is there."""
    parts = re.split(r"\n\n(?=.*\n\$ delegraph |The page is )", finished.out)
    steps = [part.split("\n", 2) for part in parts[1:-1]]
    names = [line.split()[2] for _, line, *_ in steps]
    assert names == ["components", "sssp", "betweenness", "report"]
    (folder,) = re.findall(r"\$ cd (.*)", finished.out)
    shutil.copy(finished.folder / folder / "roads.parquet", tmp_path)
    monkeypatch.chdir(tmp_path)
    for sentence, line, *printed in steps:
        assert sentence.endswith(("?", "."))
        again = ok(*shlex.split(line.removeprefix("$ delegraph ")))
        assert again.out.rstrip("\n") == "".join(printed)


def test_demo_leaves_a_page(finished):
    (page,) = re.findall(r"The page is (.*)\.\n", finished.out)
    assert "Elderby-Greystone/1" in Path(page).read_text()
    assert Path(page).parent == finished.folder / "delegraph-demo"


def test_no_browser_in_a_pipe(finished):
    assert not (finished.folder / "opened").exists()


WINDOW, IN_TERMINAL = webbrowser.BackgroundBrowser, webbrowser.GenericBrowser


@pytest.mark.parametrize(
    ("terminal", "variable", "kind", "options", "opened"),
    [
        (True, "DISPLAY", WINDOW, (), True),
        (True, "WAYLAND_DISPLAY", WINDOW, (), True),
        (True, "BROWSER", IN_TERMINAL, (), True),
        (False, "DISPLAY", WINDOW, (), False),
        (True, "DISPLAY", WINDOW, ("--no-open",), False),
        (True, "DISPLAY", IN_TERMINAL, (), False),
        (True, "DISPLAY", None, (), False),
        (True, None, WINDOW, (), False),
    ],
)
def test_browser(quick, monkeypatch, tmp_path, terminal, variable, kind, options, opened):
    """kind: the class of the browser that there is."""
    pages: list[str] = []

    def get():
        if kind is None:
            raise webbrowser.Error("could not locate runnable browser")
        return kind("browser")

    for name in demo._BROWSER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    if variable is not None:
        monkeypatch.setenv(variable, "here")
    monkeypatch.setattr(webbrowser, "get", get)
    monkeypatch.setattr(IN_TERMINAL, "open", lambda browser, url: pages.append(url))
    monkeypatch.setattr(WINDOW, "open", lambda browser, url: pages.append(url))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    assert quick(*options).code == 0
    page = tmp_path / "delegraph-demo" / "traffic.html"
    assert pages == ([page.as_uri()] if opened else [])


def test_each_demo_has_a_folder_of_its_own(quick, tmp_path):
    for _ in range(3):
        assert quick().code == 0
    names = ["delegraph-demo", "delegraph-demo-2", "delegraph-demo-3"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert quick("-o", "a/b").code == 0
    again = quick("-o", "a/b")
    assert again.code == 2
    assert "a/b cannot be made: File exists: name a new folder with -o" in again.err


def test_a_failing_command_ends_the_demo(delegraph, monkeypatch, tmp_path):
    steps = [demo._Step("Is it there?", "info missing"), demo._Step("It is not.", "info roads")]
    monkeypatch.setattr(demo, "_STEPS", steps)
    monkeypatch.chdir(tmp_path)
    run = delegraph("demo")
    assert run.code == 2
    assert "missing" in run.err
    assert run.out.endswith("Is it there?\n$ delegraph info missing\n")


def test_a_command_that_a_signal_ends(monkeypatch, tmp_path):
    killed = SimpleNamespace(returncode=-15)
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: killed)
    with pytest.raises(SystemExit) as ended:
        demo._run("info roads", tmp_path)
    assert ended.value.code == 143


@pytest.mark.parametrize(
    ("shell", "file"),
    [("/bin/bash", "~/.bashrc"), ("/usr/bin/zsh", "~/.zshrc"), ("fish", "config.fish")],
)
def test_end_tells_of_completion(quick, monkeypatch, shell, file):
    monkeypatch.setenv("SHELL", shell)
    end = quick().out.partition("Next: ")[2]
    assert file in end
    assert f"_DELEGRAPH_COMPLETE={Path(shell).name}_source delegraph" in end


@pytest.mark.parametrize("shell", ["/bin/sh", ""])
def test_end_tells_nothing_of_completion_in_other_shells(quick, monkeypatch, shell):
    monkeypatch.setenv("SHELL", shell)
    assert "_DELEGRAPH_COMPLETE" not in quick().out


def test_commands_at_the_end(quick, monkeypatch, ok, tmp_path):
    """The commands work on a file, in the order in which they are printed."""
    monkeypatch.setattr(shutil, "which", lambda name, path: name)
    lines = re.findall(r"^  delegraph (.*)", quick().out, re.MULTILINE)
    assert [line.split()[0] for line in lines] == ["convert", "components", "--help"]
    Path("FILE.csv").write_text("COLUMN,to\na,b\n")
    for line in lines:
        ok(*shlex.split(line.replace("--dst COLUMN", "--dst to")))
    assert len(pq.read_table("parts")) == 2


@pytest.mark.parametrize(
    ("on_path", "by_uv", "told"), [(True, False, False), (False, False, True), (True, True, True)]
)
def test_end_tells_how_to_activate(quick, monkeypatch, tmp_path, on_path, by_uv, told):
    """uvx puts the program on the path of this command, but not on that of the user's shell."""
    programs = tmp_path / "made" / "bin"
    programs.mkdir(parents=True)
    for name in ("activate", "delegraph"):
        (programs / name).touch(0o755)
    monkeypatch.setattr(sys, "prefix", str(programs.parent))
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setenv("PATH", f"{programs}:/nowhere" if on_path else "/nowhere")
    monkeypatch.delenv("UV", raising=False)
    if by_uv:
        monkeypatch.setenv("UV", "/usr/bin/uv")
    assert ("\n  . made/bin/activate\n" in quick().out) == told
