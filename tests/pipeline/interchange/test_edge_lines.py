"""Formats with an edge a line: CSV, TSV, SNAP's text, GAP's."""

from __future__ import annotations

import csv
import io
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.partition.errors import InputError
from delegraph.pipeline.interchange import text
from delegraph.pipeline.interchange.edge_lines import Layout
from delegraph.pipeline.interchange.text import Block, TextFile
from support.interchange import converted, write_compressed

TAKEN = {
    "crlf.el": ("0 1\r\n1 2\r\n", {"src": [0, 1], "dst": [1, 2]}),
    "no-end.el": ("0 1\n1 2", {"src": [0, 1], "dst": [1, 2]}),
    "blanks.el": ("  0 \t 1 \n\n1    2\n", {"src": [0, 1], "dst": [1, 2]}),
    "weights.wel": ("0 1 7\n1 2 8\n", {"src": [0, 1], "dst": [1, 2], "weight": [7, 8]}),
    "real.wel": ("0 1 7\n1 2 .5\n", {"src": [0, 1], "dst": [1, 2], "weight": [7.0, 0.5]}),
    "soc.txt": ("# Nodes: 3\n#\n0\t1\n # too\n-4\t2\n", {"src": [0, -4], "dst": [1, 2]}),
    "names.snap": ("a b\nb 7\n", {"src": ["a", "b"], "dst": ["b", "7"]}),
    "large.snap": ("0 18446744073709551615\n", {"src": [0], "dst": [2**64 - 1]}),
    "hex.snap": ("0x1f 0x2\n", {"src": ["0x1f"], "dst": ["0x2"]}),
    "hex.csv": ("src,dst,text\n1,2,0x3\n", {"src": [1], "dst": [2]}),
    "signed.snap": ("0 1 -1\n1 2 1\n", {"src": [0, 1], "dst": [1, 2]}),
    "header.csv": ("dst,weight,src\n1,0.5,0\n", {"src": [0], "dst": [1], "weight": [0.5]}),
    "bom.csv": ("\ufeffsrc,dst\n0,1\n", {"src": [0], "dst": [1]}),
    "quoted.csv": (
        'src,dst,text\n"a ""b""","c,d","two\nlines"\ne,f,\n',
        {"src": ['a "b"', "e"], "dst": ["c,d", "f"]},
    ),
    "tabs.tsv": ("src\tdst\na b\tc\n", {"src": ["a b"], "dst": ["c"]}),
}


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_taken(tmp_path, name, ending):
    written, columns = TAKEN[name]
    found, record = converted(write_compressed(tmp_path / f"{name}{ending}", written))
    assert found == columns
    assert record["rows"] == len(columns["src"])
    assert record["weighted"] == ("weight" in columns)
    assert record["directed"] is None


def test_columns_by_name_and_by_number(tmp_path):
    path = write_compressed(tmp_path / "links.csv", "from,to,metres\n1,2,3\n4,5,6\n")
    wanted = {"src": [2, 5], "dst": [1, 4], "weight": [3, 6]}
    assert converted(path, src="to", dst="from", weight="metres")[0] == wanted
    assert converted(path, src="2", dst="1", weight="3")[0] == wanted
    path.write_text("1,2,3\n4,5,6\n")
    assert converted(path, header=False)[0] == {"src": [1, 4], "dst": [2, 5]}
    assert converted(path, src="2", dst="1", weight="3", header=False)[0] == wanted
    path = write_compressed(tmp_path / "temporal.snap", "1 2 3\n4 5 6\n")
    assert converted(path, src="2", dst="1", weight="3")[0] == wanted


def test_types_that_are_asked_for(tmp_path):
    path = write_compressed(tmp_path / "links.csv", "src,dst,weight\n1,2,3\n")
    found, _ = converted(path, id_type="string", weight_type="float64")
    assert found == {"src": ["1"], "dst": ["2"], "weight": [3.0]}
    assert isinstance(found["weight"][0], float)


REFUSED = {
    "word.el": ("0 1\n\n1 a\n", "line 3: 'a' is no vertex number"),
    "negative.el": ("0 1\n-1 2\n", "line 2: there is no vertex -1: they are numbered from 0"),
    "large.el": ("0 9223372036854775808\n", "line 1: '9223372036854775808' is no vertex number"),
    "short.el": ("0 1\n1\n", "line 2: 1 column, not 2"),
    "long.el": ("0 1\n1 2 3\n", "line 2: 3 columns, not 2"),
    "hex.el": ("0 1\n0 0x10\n", "line 2: '0x10' is no vertex number"),
    "nan.wel": ("0 1 1.5\n1 2 nan\n", "line 2: 'nan' is no weight"),
    "infinite.wel": ("0 1 1e999\n", "line 1: '1e999' is no weight"),
    "none.wel": ("0 1\n", "line 1: 2 columns, not 3"),
    "empty.el": ("", "holds no edges"),
    "comments.txt": ("# 1\n# 2\n", "holds no edges"),
    "nameless.csv": ("src,dst\na,b\n,c\n", "line 3: a vertex without a name"),
    "weightless.csv": ("src,dst,weight\n1,2,3\n1,2,\n", "line 3: '' is no weight"),
    "other.csv": ("a,b\n1,2\n", "no column 'src'; its first line names a, b"),
    "twice.csv": ("src,src,dst\n1,2,3\n", "2 columns are named 'src'"),
    "lines.csv": ('src,dst\n"a\nb",c\nd\n', "line 4: 1 column, not 2"),
    "open.csv": ('src,dst\na,b\n"c,d\ne,f\n', "line 3: 1 column, not 2"),
    "latin.csv": (b"src,dst\na,b\nc,\xe9\n", "line 3: a vertex whose name is not UTF-8"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_refused_by_line(tmp_path, name, ending):
    written, told = REFUSED[name]
    path = write_compressed(tmp_path / f"{name}{ending}", written)
    with pytest.raises(InputError) as refused:
        converted(path)
    assert str(refused.value).startswith(str(path))
    assert told in str(refused.value)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_what_comes_later_is_of_the_type_that_came_first(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK_BYTES", 64)
    numbers = "".join(f"{i} {i + 1}\n" for i in range(1000))
    path = write_compressed(tmp_path / "edges.txt", f"{numbers}x y\n")
    with pytest.raises(InputError, match=r"line 1,001: 'x' is no vertex number.*--id-type string"):
        converted(path)
    assert converted(path, id_type="string")[0]["src"][-1] == "x"
    path = write_compressed(tmp_path / "edges.wel", "0 1 2\n" * 1000 + "0 1 .5\n")
    with pytest.raises(InputError, match=r"line 1,001: '\.5' is no integer.*--weight-type float64"):
        converted(path)
    assert converted(path, weight_type="float64")[0]["weight"][-1] == 0.5


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_cut_off_where_it_is_compressed(tmp_path, ending, share):
    numbers = "".join(f"{i} {i * i}\n" for i in range(100_000))
    path = write_compressed(tmp_path / f"edges.el{ending}", numbers)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(InputError, match=r"edges\.el"):
        converted(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_line_without_an_end(tmp_path):
    path = tmp_path / "zeros.el"
    path.write_bytes(bytes(3 << 20))
    with pytest.raises(InputError, match="line 1: it is longer than 1,048,576 bytes"):
        converted(path)


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5)


@given(st.lists(st.tuples(words, words, st.integers(-9, 9)), min_size=1), st.integers(20, 300))
def test_any_names_in_blocks_of_any_size(tmp_path_factory, rows, size):
    """What Python's csv writes; names of the header are quoted, too."""
    folder = tmp_path_factory.mktemp("csv")
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(
        [("src", "dst", "weight"), *rows]
    )
    path = folder / "edges.csv"
    path.write_text(stream.getvalue(), newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", size)
        found, _ = converted(path, id_type="string")
    assert list(zip(found["src"], found["dst"], found["weight"], strict=True)) == rows


blanks = st.text(" \t", min_size=1, max_size=3)
numbers = st.integers(0, 2**63 - 1)


@given(st.lists(st.tuples(numbers, blanks, numbers, blanks), min_size=1), st.integers(20, 200))
def test_any_blanks_in_blocks_of_any_size(tmp_path_factory, lines, size):
    folder = tmp_path_factory.mktemp("el")
    path = folder / "edges.el"
    path.write_text("\n".join(f"{after}{u}{blank}{v}{after}" for u, blank, v, after in lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", size)
        found, _ = converted(path)
    assert found == {"src": [u for u, _, _, _ in lines], "dst": [v for _, _, v, _ in lines]}


@given(st.lists(st.sampled_from(["0 1", "7 x", "1", "3 4 5", "", "# c", "-1 2", "2 -0"])))
def test_arrow_and_python_agree(tmp_path_factory, lines):
    """What Arrow refuses, Python finds the line of; and nothing else."""
    path = tmp_path_factory.mktemp("lines") / "edges.el"
    data = "\n".join(lines).encode()
    path.write_bytes(data)
    layout = Layout(comment="#", known=lambda ids: ids >= 0, told="positive")
    wrong = [n for n, line in enumerate(lines, 1) if line in ("7 x", "1", "3 4 5", "-1 2")]
    block = Block(data, 1, len(data))
    with closing(TextFile(str(path))) as file:
        if wrong:
            with pytest.raises(InputError, match=f"line {wrong[0]}:"):
                layout.parse(file, block)
        else:
            rows = sum(line in ("0 1", "2 -0") for line in lines)
            assert layout.parse(file, block).num_rows == rows
