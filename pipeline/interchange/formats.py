"""The formats that delegraph reads, and the choice among them: the user names a format, or the
file's name tells it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from ...partition.errors import InputError
from .delimited import Choices, open_delimited, open_gap
from .edge_lines import LineColumns
from .graph_file import GraphFile
from .ldbc import Graphalytics, vertex_file
from .matrix_market import MatrixMarket
from .metis import Metis
from .serialized import SerializedGraph
from .text import COMPRESSIONS, TextFile

FormatName = Literal["csv", "tsv", "snap", "mtx", "el", "wel", "sg", "wsg", "graphalytics", "metis"]

SUFFIXES: dict[str, FormatName] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "snap",
    ".snap": "snap",
    ".mtx": "mtx",
    ".el": "el",
    ".wel": "wel",
    ".sg": "sg",
    ".wsg": "wsg",
    ".e": "graphalytics",
    ".graph": "metis",
    ".metis": "metis",
}

_COLUMNS = ("src", "dst", "weight", "id_type", "weight_type")


class _Text(NamedTuple):
    """A text format. open: opens a file, given the choices, the limit of memory in bytes, and the
    limit of bytes that a second file may unpack to. leaves: the choices that the user has in this
    format.
    """

    open: Callable[[TextFile, Choices, int, float | None], GraphFile]
    leaves: tuple[str, ...] = ()


def _delimited(layout: LineColumns) -> Callable[[TextFile, Choices, int, float | None], GraphFile]:
    return lambda file, choices, *_: open_delimited(file, layout, choices)


def _snap(file: TextFile, choices: Choices, *_: object) -> GraphFile:
    return open_delimited(file, LineColumns(comment="#"), replace(choices, header=False))


_TEXT: dict[FormatName, _Text] = {
    "csv": _Text(_delimited(LineColumns(delimiter=",")), (*_COLUMNS, "header")),
    "tsv": _Text(_delimited(LineColumns(delimiter="\t")), (*_COLUMNS, "header")),
    "snap": _Text(_snap, _COLUMNS),
    "mtx": _Text(lambda file, choices, limit, _: MatrixMarket(file, limit)),
    "el": _Text(lambda file, *_: open_gap(file, weighted=False)),
    "wel": _Text(
        lambda file, choices, *_: open_gap(file, True, choices.weight_type), ("weight_type",)
    ),
    "graphalytics": _Text(
        lambda file, choices, limit, most: Graphalytics(file, limit, choices.weight_type, most),
        ("weight_type",),
    ),
    "metis": _Text(lambda file, choices, limit, _: Metis(file, limit)),
}


def format_of(path: str, said: str | None = None) -> FormatName:
    """Return the format of a file. Raises InputError for an unknown format, or if neither ``said``
    nor the file's name tells one.
    """
    names = get_args(FormatName)
    if said is not None and said not in names:
        raise InputError(f"{said!r} is not a format: choose one of {', '.join(names)}")
    name = Path(path)
    suffix = Path(name.stem).suffix if name.suffix in COMPRESSIONS else name.suffix
    found = said or SUFFIXES.get(suffix)
    if found is None:
        raise InputError(
            f"{path}: its name does not end in one of {', '.join(SUFFIXES)}: give its format with "
            "--from"
        )
    return found  # pyright: ignore[reportReturnType] - one of the names


def files_of(path: str, name: FormatName) -> list[str]:
    """Return the files that make up a graph. Raises InputError if a file is missing or is no
    regular file.
    """
    if not os.path.isfile(path):
        raise InputError(f"{path}: no such file, or not a regular file")
    return [path, vertex_file(path)] if name == "graphalytics" else [path]


def check_choices(name: FormatName, choices: Choices) -> None:
    """Raise InputError for a choice that the user does not have in this format."""
    leaves = (*(_TEXT[name].leaves if name in _TEXT else ()), "loops")
    for choice in fields(Choices):
        if getattr(choices, choice.name) != choice.default and choice.name not in leaves:
            option = "no-header" if choice.name == "header" else choice.name.replace("_", "-")
            raise InputError(f"--{option} is not an option for {name} files: leave it out")


def open_graph_file(
    path: str, name: FormatName, choices: Choices, limit: int, max_unpacked: float | None = None
) -> GraphFile:
    """Open a graph file. limit: bytes of memory. max_unpacked: as in TextFile. Raises InputError if
    the beginning of the file shows that it is not of this format.
    """
    if name not in _TEXT:
        if Path(path).suffix in COMPRESSIONS:
            raise InputError(f"{path}: only compressed text can be read: unpack the file")
        return SerializedGraph(path, weighted=name == "wsg")
    file = TextFile(path, max_unpacked)
    try:
        return _TEXT[name].open(file, choices, limit, max_unpacked)
    except BaseException:
        file.close()
        raise
