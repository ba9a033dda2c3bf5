"""Files of formats other than Parquet: recognizing them, and advice on how to make an edge list of
them.

The format of a file is told by its first bytes if it has a mark, otherwise by its name; otherwise
it may be text.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import PurePath

from ..disk.remote import opened, source_of
from ..disk.urls import is_remote
from ..errors import InputError, one_line

CONVERTIBLE = (
    ".csv",
    ".tsv",
    ".txt",
    ".snap",
    ".mtx",
    ".el",
    ".wel",
    ".sg",
    ".wsg",
    ".e",
    ".graph",
    ".metis",
)
"""Endings of file names that ``convert`` reads, the same as in pipeline/interchange/formats.py."""

PACKED = (".gz", ".zst")
"""Endings of compressions that may follow the endings of text."""

_BINARY = (".sg", ".wsg")
_PARQUET = b"PAR1"
_HEAD = 512  # bytes of a file that are examined

_ARROW = (
    "import pyarrow.feather as f, pyarrow.parquet as q; "
    "q.write_table(f.read_table({name}), {output})"
)
_STREAM = (
    "import pyarrow as a, pyarrow.parquet as q; "
    "q.write_table(a.ipc.open_stream({name}).read_all(), {output})"
)
_ORC = (
    "import pyarrow.orc as o, pyarrow.parquet as q; q.write_table(o.read_table({name}), {output})"
)
_PANDAS = "import pandas as p; p.read_{reader}({name}).to_parquet({output})"
_NETWORKX = (
    'import networkx as n; n.to_pandas_edgelist(n.read_{reader}({name}), "src", "dst")'
    ".to_parquet({output})"
)
_SCIPY = (
    "import pandas as p, scipy.sparse as s; m = s.load_npz({name}).tocoo(); "
    'p.DataFrame({{"src": m.row, "dst": m.col, "weight": m.data}}).to_parquet({output})'
)

_MARKS = (
    (b"ARROW1", "an Arrow IPC file (Feather)", _ARROW, ""),
    (b"FEA1", "a Feather file", _ARROW, ""),
    (b"\xff\xff\xff\xff", "an Arrow IPC stream", _STREAM, ""),
    (b"ORC", "an ORC file", _ORC, ""),
)
_NAMES = {
    ".feather": ("a Feather file", _ARROW, ""),
    ".arrow": ("an Arrow IPC file", _ARROW, ""),
    ".npz": ("a NumPy archive; if it is a SciPy matrix", _SCIPY, ""),
    ".json": ("JSON; if it is a pandas table", _PANDAS, "json"),
    ".xlsx": ("a spreadsheet", _PANDAS, "excel"),
    ".graphml": ("GraphML", _NETWORKX, "graphml"),
    ".gexf": ("GEXF", _NETWORKX, "gexf"),
    ".gml": ("GML", _NETWORKX, "gml"),
}
_PICKLES = (".pkl", ".pickle", ".gpickle")
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ", b"PK\x03\x04")


def not_parquet(name: str, error: BaseException, otherwise: str) -> InputError:
    """Return the error for a file that Arrow cannot read as Parquet.

    otherwise: what the file may be, if no other format is recognized.
    """
    if told := advice(name):
        return InputError(f"{name}: not a Parquet file, but {told}")
    return InputError(f"{name}: not a Parquet file, or {otherwise}: {one_line(error)}")


def advice_on_folder(names: Iterable[str]) -> str:
    """Return advice that ends a message about a folder without Parquet, from the names of its
    files.

    >>> advice_on_folder(["a.csv", "b.txt.gz", "README.txt"])
    "; convert a.csv and 1 more with 'delegraph convert', each to its own subfolder of one folder"
    """
    found = [name for name in names if _ending(name) in CONVERTIBLE]
    found = sorted(name for name in found if not name.lower().endswith(".txt"))  # any text
    if not found:
        return ""
    addition = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    what = f"convert {found[0]}{addition} with 'delegraph convert'"
    return f"; {what}" + (", each to its own subfolder of one folder" if addition else "")


def advice(name: str) -> str:
    """Return the format of a file that is not Parquet, and what to do; empty if it is not
    recognized.
    """
    head = _first_bytes(name)
    if head.startswith(_PARQUET):
        return ""
    ending, pickled = _ending(name), head[:1] == b"\x80" and head[1:2] in b"\2\3\4\5"
    for mark, told, code, reader in _MARKS:
        if head.startswith(mark):
            return _by_python(name, told, code, reader)
    if pickled or ending in _PICKLES:
        told = "a pickle, which may run code; if you trust it, and it is a pandas table"
        return _by_python(name, told, _PANDAS, "pickle")
    if ending in CONVERTIBLE:
        return f"a graph file ({ending}){_by_convert(name)}"
    if ending in _NAMES:
        return _by_python(name, *_NAMES[ending])
    if head.startswith(_COMPRESSED):
        return "a compressed file: unpack it"
    if _is_text(head):
        return f"text{_by_convert(name, ' --from csv')} (or --from tsv, snap, mtx, metis)"
    return ""


def _by_convert(name: str, options: str = "") -> str:
    if is_remote(name):
        return f": copy it to this machine, then run: delegraph convert FILE{options} -o EDGES"
    output = shlex.quote(f"{PurePath(name).name.partition('.')[0]}-edges")
    return (
        f": make it an edge list with: delegraph convert {shlex.quote(name)}{options} -o {output}"
    )


def _by_python(name: str, told: str, code: str, reader: str) -> str:
    if is_remote(name):
        return f"{told}: write it as Parquet"
    output = PurePath(name).stem + ".parquet"
    line = code.format(name=_literal(name), reader=reader, output=_literal(output))
    return f"{told}: write it as Parquet, for example with: python -c {shlex.quote(line)}"


def _literal(name: str) -> str:
    """Return a Python string in double quotes, since the shell line that holds it uses single
    quotes.
    """
    return json.dumps(name, ensure_ascii=False)


def _ending(name: str) -> str:
    """Return the ending of a name that tells a format, without that of a compression."""
    path = PurePath(name.lower())
    if path.suffix in PACKED and PurePath(path.stem).suffix not in _BINARY:
        path = PurePath(path.stem)
    return path.suffix


def _first_bytes(name: str) -> bytes:
    try:
        with opened(source_of(name)) as file:
            return file.read(_HEAD)
    except (OSError, InputError):
        return b""


def _is_text(head: bytes) -> bool:
    """Return whether a file begins with UTF-8 text, whose last character may be cut."""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:
            return False
        text = head[: error.start].decode()
    return bool(text.strip()) and all(c.isprintable() or c in "\t\r\n" for c in text)
