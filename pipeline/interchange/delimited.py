"""Text with an edge on each line, in columns: CSV and TSV; SNAP's text (snap.stanford.edu/data),
with blanks or tabs between columns and comments after ``#``; and the GAP benchmark suite's ``.el``,
with two columns, and ``.wel``, with a third one for the weight (github.com/sbeamer/gapbs).

The first line of CSV and TSV names the columns. Columns without names, such as SNAP's, have numbers
from 1.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from ...partition.errors import InputError, check_choice
from ...partition.input.weights import LoopsChoice
from .edge_lines import EdgeLines, LineColumns, first_look, with_types
from .text import TextFile

IdType = Literal["auto", "int64", "uint64", "string"]
WeightType = Literal["auto", "int64", "float64"]
_WEIGHT = "weight"
NAME_HINT = "; if it is a name, give --from snap --id-type string"
"""Advice in errors of formats whose ids are integers."""


@dataclass(frozen=True)
class Choices:
    """Columns to read, and their types. The first block decides a type that is "auto".

    src, dst: None for the columns of these names or, without a header, the first two. weight: None
    for the column of that name, if there is one. header: whether the first line names columns.
    loops: "keep" for an edge list whose self-loops will be kept (edge_list.py).
    """

    src: str | None = None
    dst: str | None = None
    weight: str | None = None
    header: bool = True
    id_type: IdType = "auto"
    weight_type: WeightType = "auto"
    loops: LoopsChoice = "drop"

    def __post_init__(self) -> None:
        for given, kind in ((self.id_type, IdType), (self.weight_type, WeightType)):
            if given not in get_args(kind):
                raise InputError(
                    f"{given!r} is not a type: choose one of {', '.join(get_args(kind))}"
                )
        check_choice("loops", self.loops, get_args(LoopsChoice))


def open_delimited(file: TextFile, layout: LineColumns, choices: Choices) -> EdgeLines:
    """Open a text file with columns. layout: its delimiter and its mark of comments."""
    names = _header(file, layout) if choices.header else []
    block, columns, blocks = first_look(file, layout)
    defaults = ("src", "dst") if choices.header else ("1", "2")
    wanted = [choices.src or defaults[0], choices.dst or defaults[1]]
    if choices.weight or _WEIGHT in names:
        wanted.append(choices.weight or _WEIGHT)
    columns = len(names) or columns
    places = tuple(_place(file, name, names, columns) for name in wanted)
    if len(set(places)) < len(places):
        raise InputError(f"{file.path}: the same column is given twice: {', '.join(wanted)}")
    layout = replace(layout, columns=columns, places=places)
    return EdgeLines(
        file, with_types(file, layout, block, choices.id_type, choices.weight_type), blocks
    )


def open_gap(file: TextFile, weighted: bool, weight_type: str = "auto") -> EdgeLines:
    """Open a GAP edge list, whose vertices are numbers from 0. weight_type: "auto" for the
    narrowest type that fits the first block.
    """
    layout = LineColumns(
        columns=3 if weighted else 2,
        places=(0, 1, 2) if weighted else (0, 1),
        known=lambda ids: ids >= 0,
        told="they are numbered from 0",
        id_hint=NAME_HINT,
    )
    block, _, blocks = first_look(file, layout)
    return EdgeLines(file, with_types(file, layout, block, weight_type=weight_type), blocks)


def _header(file: TextFile, layout: LineColumns) -> list[str]:
    number, line = file.line() or (1, "")
    try:
        return next(csv.reader([line], delimiter=layout.delimiter), [])
    except csv.Error as error:
        raise file.error(number, str(error)) from error


def _place(file: TextFile, name: str, names: Sequence[str], columns: int) -> int:
    if names.count(name) > 1:
        raise InputError(f"{file.path}: {names.count(name)} columns are named {name!r}")
    if name in names:
        return names.index(name)
    if re.fullmatch("[0-9]{1,9}", name) and 1 <= int(name) <= columns:
        return int(name) - 1
    if not names:
        raise InputError(
            f"{file.path}: no column {name!r}: give the number of a column, from 1 to {columns}"
        )
    raise InputError(
        f"{file.path}: no column {name!r}; its first line names {', '.join(names)}: choose with "
        "--src, --dst and --weight, or give --no-header if the first line is an edge"
    )
