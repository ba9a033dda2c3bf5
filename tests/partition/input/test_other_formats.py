"""Files that are no Parquet: their formats are named, with lines that make an edge list of them."""

from __future__ import annotations

import gzip
import re
import shlex
import subprocess
import sys
from collections.abc import Callable

import networkx as nx
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sparse
from pyarrow import orc

from delegraph.partition.errors import InputError
from delegraph.partition.input.edges import open_edges
from delegraph.partition.input.other_formats import CONVERTIBLE, advice_on_folder
from delegraph.pipeline.interchange.formats import SUFFIXES
from support.marks import mostly_slow

ROWS = {"src": [0, 1], "dst": [1, 2]}
TABLE = pa.table(ROWS)


def _stream(path: str) -> None:
    with pa.ipc.new_stream(path, TABLE.schema) as writer:
        writer.write_table(TABLE)


def _matrix(path: str) -> None:
    matrix = sparse.csr_matrix(([1, 1], (ROWS["src"], ROWS["dst"])), (3, 3))
    sparse.save_npz(path, matrix)


WRITERS: dict[str, Callable[[str], object]] = {
    "a.feather": lambda path: feather.write_feather(TABLE, path),
    "it's.arrow": lambda path: feather.write_feather(TABLE, path),
    "a.arrows": _stream,
    "no ending": lambda path: feather.write_feather(TABLE, path),
    "a.orc": lambda path: orc.write_table(TABLE, path),
    "a.pkl": lambda path: pd.DataFrame(ROWS).to_pickle(path),
    "pickled": lambda path: pd.DataFrame(ROWS).to_pickle(path),
    "a.json": lambda path: pd.DataFrame(ROWS).to_json(path),
    "a.npz": _matrix,
    "a.graphml": lambda path: nx.write_graphml(nx.path_graph(3), path),
    "a.gml": lambda path: nx.write_gml(nx.path_graph(3), path),
    "a.gexf": lambda path: nx.write_gexf(nx.path_graph(3), path),
}


def refused(path) -> str:
    with pytest.raises(InputError) as error:
        open_edges(str(path))
    message = str(error.value)
    assert message.startswith(f"{path}: not a Parquet file, but ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", mostly_slow(WRITERS, "it's.arrow", "a.pkl"))
def test_a_line_that_writes_parquet(tmp_path, monkeypatch, name):
    """The line that a refusal names runs in a shell and writes an edge list."""
    WRITERS[name](str(tmp_path / name))
    message = refused(tmp_path / name)
    program, option, code = shlex.split(message.partition("for example with: ")[2])
    assert (program, option) == ("python", "-c")
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=tmp_path, check=True)
    (written,) = tmp_path.glob("*.parquet")
    assert open_edges(str(written)).rows == 2
    assert pq.read_table(written, columns=["src"]).num_rows == 2
    assert ("may run code" in message) == (name in ("a.pkl", "pickled"))


@pytest.mark.parametrize("ending", CONVERTIBLE)
@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
def test_what_convert_reads(tmp_path, ending, packed):
    path = tmp_path / f"my graph{ending.upper()}{packed}"
    path.write_bytes(gzip.compress(b"1 2\n") if packed else b"1 2\n")
    message = refused(path)
    if packed and ending in (".sg", ".wsg"):  # convert reads only text as it is packed
        assert "unpack it" in message
    else:
        line = shlex.split(message.partition("make it an edge list with: ")[2])
        assert line == ["delegraph", "convert", str(path), "-o", "my graph-edges"]


def test_endings_are_those_of_convert():
    assert set(CONVERTIBLE) == set(SUFFIXES)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (
            "edges",
            b"1 2\n",
            r"but text: .*delegraph convert .*edges --from csv -o edges-edges \(or",
        ),
        ("a.parquet", "søren,zoë\n".encode(), "but text: .* --from csv"),
        ("a.parquet", b"x" * 511 + "ø".encode(), "but text: "),
        ("a.parquet", bytes(600), "or a truncated one"),
        ("a.parquet", b"\xe9" * 600, "or a truncated one"),
        ("a.parquet", b"PAR1" + bytes(100), "or a truncated one"),
        ("a.csv", b"PAR1" + bytes(100), "or a truncated one"),
        ("a.parquet", b"", "or a truncated one"),
        ("a.parquet.gz", gzip.compress(b"PAR1", mtime=0), "but a compressed file: unpack it"),
    ],
)
def test_by_its_first_bytes(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{re.escape(name)}: not a Parquet file, {reason}"):
        open_edges(str(tmp_path / name))


def test_a_folder_of_them(tmp_path):
    for name in ("b.csv", "a.mtx", "README.txt", "x.log"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"convert a\.mtx and 1 more with 'delegraph convert'"):
        open_edges(str(tmp_path))
    with pytest.raises(InputError, match=r"b\.csv: not a Parquet file, but"):
        open_edges(str(tmp_path / "*.csv"))
    assert advice_on_folder(["x.log", "README.txt"]) == ""
    assert advice_on_folder(["soc.txt.gz"]) == "; convert soc.txt.gz with 'delegraph convert'"
