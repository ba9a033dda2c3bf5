"""Packages that are left alone even if they are installed: to load them takes longer than a small
question.
"""

from __future__ import annotations

import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.graphs import random_edges
from support.marks import mostly_slow
from support.processes import command, printed_alone

HEAVY = ("pandas", "scipy")
LINES = {
    "bfs": ("--source", "{0}"),
    "path": ("--from", "{0}", "--to", "{1}"),
    "closeness": ("--sources", "{0},{1}"),
    **dict.fromkeys(("components", "pagerank", "degree", "leiden"), ()),
}
ASKED = """
import sys
import delegraph

path, first, second = sys.argv[1:4]
first, second = (int(first), int(second)) if first.isdecimal() else (first, second)
with delegraph.open(path) as graph:
    graph.bfs(first).table
    graph.bfs(sources=[first, second]).table
    graph.path(source=first, target=second).table
    graph.closeness(sources=[first]).table
    for name in ("components", "pagerank", "leiden"):
        getattr(graph, name)().table
print([name for name in ("pandas", "scipy.linalg") if name in sys.modules])
"""


@pytest.fixture(params=["numbers", "strings"])
def edges(request, tmp_path):
    ends = [end.tolist() for end in random_edges(3, 60, 200)]
    if request.param == "strings":
        ends = [[f"v{vertex}" for vertex in end] for end in ends]
    pq.write_table(pa.table(dict(zip(("src", "dst"), ends, strict=True))), tmp_path / "e.parquet")
    return tmp_path / "e.parquet", ends[0][0], ends[1][0]


@pytest.fixture
def heavy(tmp_path, monkeypatch):
    """Packages that say so when they are loaded, before all others of their names."""
    for name in HEAVY:
        package = tmp_path / "packages" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(
            f"import sys\nprint('loaded {name}', file=sys.stderr)\nraise ImportError\n"
        )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))


@pytest.mark.parametrize("name", mostly_slow(LINES, "bfs"))
def test_a_command_loads_none(edges, heavy, tmp_path, name):
    path, *vertices = edges
    options = [option.format(*vertices) for option in LINES[name]]
    line = command(name, path, "-o", tmp_path / "out", *options)
    run = subprocess.run(line, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "loaded" not in run.stderr


@pytest.mark.slow
def test_python_loads_none(edges):
    pytest.importorskip("pandas")
    assert printed_alone(ASKED, *edges) == "[]\n"
