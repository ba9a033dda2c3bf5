"""Formats with an edge on each line: CSV, TSV, SNAP's text, GAP's."""

from __future__ import annotations

import csv
import io
import re
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.partition.errors import InputError
from delegraph.pipeline.interchange import text
from delegraph.pipeline.interchange.edge_lines import LineColumns
from delegraph.pipeline.interchange.text import Block, TextFile
from support.interchange import converted, write_compressed
from support.marks import slow

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
    "zeros.csv": ("src,dst\n007,8\n7,9\n", {"src": ["007", "7"], "dst": ["8", "9"]}),
    "zeros.tsv": ("src\tdst\n8\t007\n", {"src": ["8"], "dst": ["007"]}),
    "zeros.snap": ("007 8\n7 9\n", {"src": ["007", "7"], "dst": ["8", "9"]}),
    "minus.snap": ("-0 -07\n0 -7\n", {"src": ["-0", "0"], "dst": ["-07", "-7"]}),
    "plus.snap": ("+7 8\n7 9\n", {"src": ["+7", "7"], "dst": ["8", "9"]}),
    "late.snap": ("7 00", {"src": ["7"], "dst": ["00"]}),
    "dates.csv": ("src,day,dst\n1,2024-01-05,20\n", {"src": [1], "dst": [20]}),
    "zeros.wel": ("0 1 007\n1 2 -0\n", {"src": [0, 1], "dst": [1, 2], "weight": [7, 0]}),
    "blanks.csv": ("src,dst\n 7,8 \n7,9\n", {"src": [7, 7], "dst": [8, 9]}),
    "no-break.snap": ("a\xa0b c\n", {"src": ["a\xa0b"], "dst": ["c"]}),
    "tiny.wel": ("0 1 5e-324\n1 2 0e1\n", {"src": [0, 1], "dst": [1, 2], "weight": [5e-324, 0]}),
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
    edges, record = converted(write_compressed(tmp_path / f"{name}{ending}", written))
    assert edges == columns
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
    edges, _ = converted(path, id_type="string", weight_type="float64")
    assert edges == {"src": ["1"], "dst": ["2"], "weight": [3.0]}
    assert isinstance(edges["weight"][0], float)


REFUSED = {
    "word.el": ("0 1\n\n1 a\n", "line 3: 'a' is not a vertex number"),
    "negative.el": ("0 1\n-1 2\n", "line 2: there is no vertex -1: they are numbered from 0"),
    "large.el": ("0 9223372036854775808\n", "line 1: '9223372036854775808' is not a vertex number"),
    "short.el": ("0 1\n1\n", "line 2: 1 column, not 2"),
    "long.el": ("0 1\n1 2 3\n", "line 2: 3 columns, not 2"),
    "hex.el": ("0 1\n0 0x10\n", "line 2: '0x10' is not a vertex number"),
    "zeros.el": ("0 1\n007 2\n", "line 2: '007' is not a plain vertex number, such as 7"),
    "minus.el": ("0 1\n1 -0\n", "line 2: '-0' is not a plain vertex number, such as 0; if it is a"),
    "zeros.wel": (
        "07 1 1\n",
        "line 1: '07' is not a plain vertex number, such as 7; if it is a name",
    ),
    "digits.el": (
        f"0 1\n{'7' * 5000} 1\n",
        "'77777777777777777777...' (5,000 characters) is not a v",
    ),
    "zeros, then none.el": (f"0 1\n{'0' * 200_000}x 1\n", "line 2: '00000000000000000000...'"),
    "ones, then none.wel": (f"0 1 {'1' * 200_000}x\n", "line 1: '11111111111111111111...'"),
    "digits.wel": (f"0 1 {'7' * 5000}\n", "line 1: '77777777777777777777...' (5,000 characters)"),
    "small.wel": ("0 1 .0\n1 2 1e-400\n", "line 2: '1e-400' is too small for a 64-bit weight"),
    "nan.wel": ("0 1 1.5\n1 2 nan\n", "line 2: 'nan' is not a weight"),
    "infinite.wel": ("0 1 1e999\n", "line 1: '1e999' is not a weight"),
    "none.wel": ("0 1\n", "line 1: 2 columns, not 3"),
    "empty.el": ("", "the file has no edges"),
    "comments.txt": ("# 1\n# 2\n", "the file has no edges"),
    "nameless.csv": ("src,dst\na,b\n,c\n", "line 3: a vertex has no name"),
    "weightless.csv": ("src,dst,weight\n1,2,3\n1,2,\n", "line 3: '' is not a weight"),
    "other.csv": ("a,b\n1,2\n", "no column 'src'; its first line names a, b"),
    "twice.csv": ("src,src,dst\n1,2,3\n", "2 columns are named 'src'"),
    "lines.csv": ('src,dst\n"a\nb",c\nd\n', "line 4: 1 column, not 2"),
    "open.csv": ('src,dst\na,b\n"c,d\ne,f\n', "line 3: 1 column, not 2"),
    "latin.csv": (b"src,dst\na,b\nc,\xe9\n", "line 3: the name of a vertex is not UTF-8"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_refused_by_line(tmp_path, name, ending):
    written, reason = REFUSED[name]
    path = write_compressed(tmp_path / f"{name}{ending}", written)
    with pytest.raises(InputError) as refused:
        converted(path)
    assert str(refused.value).startswith(str(path))
    assert reason in str(refused.value)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("name", "blank"), [("a.csv", ","), slow("a.tsv", "\t"), slow("a.snap", " ")]
)
def test_a_name_that_looks_like_a_number_later_on(tmp_path, monkeypatch, name, blank):
    """A first block of integers keeps later ids from becoming strings: 007 is refused, as it is no
    integer's print.
    """
    monkeypatch.setattr(text, "BLOCK_BYTES", 64)
    header = "" if name == "a.snap" else f"src{blank}dst\n"
    numbers = "".join(f"{i}{blank}{i + 1}\n" for i in range(1000))
    path = tmp_path / name
    for word in ("007", "-0", "+7", "0x7"):
        path.write_text(f"{header}{numbers}5{blank}{word}\n")
        line = f"line 1,00{1 + bool(header)}: '{re.escape(word)}'"
        reason = f'{line} is not a (plain )?vertex number.*id_type="string"'
        for id_type in ("auto", "int64"):
            with pytest.raises(InputError, match=reason):
                converted(path, id_type=id_type)
        assert converted(path, id_type="string")[0]["dst"][-1] == word


@pytest.mark.parametrize(
    ("name", "written", "reason"),
    [
        (
            "a.csv",
            "src,dst\n1,2\n2,3\nO3,4\n",
            ", line 4: 'O3' is not a 64-bit integer, so ids are "
            "strings (1 of the first 6 are not integers); to refuse such lines, give --id-type "
            "int64",
        ),
        (
            "a.snap",
            "# c\n1 2\n2 007\n",
            ", line 3: '007' is not a plain integer, such as 7, so ids",
        ),
        (
            "a.snap",
            f"1 {'9' * 5000}\n",
            ", line 1: '99999999999999999999...' (5,000 characters) is",
        ),
        ("a.tsv", "src\tdst\n-1\t18446744073709551615\n", ", line 2: no 64-bit integer type holds"),
        ("a.csv", "src,dst\na,b\n", ": ids are strings"),
        (
            "a.csv",
            "src,dst\na, b\n",
            ": blanks around ids are kept, as in 1 of the first",
        ),
    ],
)
def test_why_ids_are_strings(tmp_path, name, written, reason):
    """A typo among integers is told with its line as the reason why ids are strings."""
    path = write_compressed(tmp_path / name, written)
    _, record = converted(path)
    assert any(note.startswith(f"{path}{reason}") for note in record["notes"]), record["notes"]
    assert converted(path, id_type="string")[1]["notes"] == []


def test_integers_are_no_news(tmp_path):
    path = write_compressed(tmp_path / "a.csv", "src,dst\n1,2\n")
    assert converted(path)[1]["notes"] == []


odd = st.text("0123456789+-xXeE._O ", min_size=1, max_size=4).map(str.strip).filter(bool)
plain = st.integers(-12, 12).map(str)


@given(
    st.sampled_from(["a.csv", "a.tsv", "a.snap"]),
    st.lists(st.tuples(odd | plain, odd | plain), min_size=1),
    st.integers(8, 300),
)
def test_no_id_becomes_another(tmp_path_factory, name, rows, size):
    """Ids print as they were read, or an id of a later block is refused."""
    blank = {"a.csv": ",", "a.tsv": "\t", "a.snap": " "}[name]
    if name == "a.snap":
        rows = [(u.replace(" ", ""), v.replace(" ", "")) for u, v in rows]
    path = tmp_path_factory.mktemp("ids") / name
    path.write_text(
        "".join(f"{u}{blank}{v}\n" for u, v in [("src", "dst")] * (name[2] != "s") + rows)
    )
    assert _pairs(path) == rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", size)
        try:
            pairs, line = _pairs(path), ""
        except InputError as error:
            pairs, line = rows, str(error)
    assert pairs == rows
    assert not line or 'id_type="string"' in line


def _pairs(path):
    edges, _ = converted(path)
    return [(str(u), str(v)) for u, v in zip(edges["src"], edges["dst"], strict=True)]


def test_what_comes_later_is_of_the_type_that_came_first(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK_BYTES", 64)
    numbers = "".join(f"{i} {i + 1}\n" for i in range(1000))
    path = write_compressed(tmp_path / "edges.txt", f"{numbers}x y\n")
    with pytest.raises(
        InputError, match=r"line 1,001: 'x' is not a vertex number.*id_type=\"string\""
    ):
        converted(path)
    assert converted(path, id_type="string")[0]["src"][-1] == "x"
    path = write_compressed(tmp_path / "edges.wel", "0 1 2\n" * 1000 + "0 1 .5\n")
    with pytest.raises(
        InputError, match=r"line 1,001: '\.5' is not a 64-bit integer.*weight_type=\"float64\""
    ):
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
    with pytest.raises(InputError, match="line 1: the line is longer than 1,048,576 bytes"):
        converted(path)


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5)


@given(st.lists(st.tuples(words, words, st.integers(-9, 9)), min_size=1), st.integers(20, 300))
def test_any_names_in_blocks_of_any_size(tmp_path_factory, rows, size):
    """Names that Python's csv module writes are read back from blocks of any size, quoted names of
    the header too.
    """
    folder = tmp_path_factory.mktemp("csv")
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(
        [("src", "dst", "weight"), *rows]
    )
    path = folder / "edges.csv"
    path.write_text(stream.getvalue(), newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", size)
        edges, _ = converted(path, id_type="string")
    assert list(zip(edges["src"], edges["dst"], edges["weight"], strict=True)) == rows


blanks = st.text(" \t", min_size=1, max_size=3)
numbers = st.integers(0, 2**63 - 1)


@given(st.lists(st.tuples(numbers, blanks, numbers, blanks), min_size=1), st.integers(20, 200))
def test_any_blanks_in_blocks_of_any_size(tmp_path_factory, lines, size):
    folder = tmp_path_factory.mktemp("el")
    path = folder / "edges.el"
    path.write_text("\n".join(f"{after}{u}{blank}{v}{after}" for u, blank, v, after in lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", size)
        edges, _ = converted(path)
    assert edges == {"src": [u for u, _, _, _ in lines], "dst": [v for _, _, v, _ in lines]}


@given(st.lists(st.sampled_from(["0 1", "7 x", "1", "3 4 5", "", "# c", "-1 2", "2 -0"])))
def test_arrow_and_python_agree(tmp_path_factory, lines):
    """Python finds the wrong line of a text that Arrow refuses, and accepts a text that Arrow
    reads.
    """
    path = tmp_path_factory.mktemp("lines") / "edges.el"
    data = "\n".join(lines).encode()
    path.write_bytes(data)
    layout = LineColumns(comment="#", known=lambda ids: ids >= 0, told="positive")
    bad = ("7 x", "1", "3 4 5", "-1 2", "2 -0")
    wrong = [n for n, line in enumerate(lines, 1) if line in bad]
    block = Block(data, 1, len(data))
    with closing(TextFile(str(path))) as file:
        if wrong:
            with pytest.raises(InputError, match=f"line {wrong[0]}:"):
                layout.parse(file, block)
        else:
            rows = lines.count("0 1")
            assert layout.parse(file, block).num_rows == rows
