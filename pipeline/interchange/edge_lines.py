"""Text with an edge on each line. Arrow parses blocks of lines; if Arrow fails, Python finds the
wrong line.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from ...partition.errors import InputError
from ...partition.input.arrow import as_numpy
from ...partition.input.id_types import in_range, is_string, stored
from ...partition.numbers import parse_integer, shown
from .graph_file import Piece, schema_of
from .text import Block, TextFile

ID_TYPES = {"int64": pa.int64(), "uint64": pa.uint64(), "string": pa.string()}
WEIGHT_TYPES = {"int64": pa.int64(), "float64": pa.float64()}
"""Types of ids and of weights, by the names that users give."""

_INTEGER = re.compile(r"-?[0-9]+")
_AS_PRINTED = r"^[ \t]*(0|-?[1-9][0-9]{0,19})[ \t]*$"
_BEFORE_FIELD = np.isin(np.arange(256), list(b'\n\r\t ",'))  # bytes that a field may follow
_BEFORE_ZERO = _BEFORE_FIELD | (np.arange(256) == ord("-"))
_NOT_ZERO = r"^[^eE]*[1-9]"
_BLANKS = re.compile(r"[ \t]+")
_NUMBER = re.compile(r"-?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class LineColumns:
    """Columns of a line that holds an edge.

    delimiter: of quoted fields, a comma or a tab; or a blank, which stands for any number of blanks
    and tabs. comment: the mark at the beginning of a line without an edge. columns: the number of
    columns of every line. places: column numbers of source, target and, if there is one, weight.
    known: function that returns a mask of the ids that are vertices; None if any id is. told: the
    allowed ids in words. positions: whether integers count vertices, so that 007 is the seventh
    vertex; if not, integers are names, which must stay distinct, and 007 is no integer. id_hint,
    weight_hint: advice added to the error about an id or a weight. notes: lines for the user about
    the chosen types.
    """

    delimiter: str = " "
    comment: str = ""
    columns: int = 2
    places: tuple[int, ...] = (0, 1)
    id_type: pa.DataType = ID_TYPES["int64"]
    weight_type: pa.DataType | None = None
    known: Callable[[NDArray], NDArray[np.bool_]] | None = None
    told: str = ""
    positions: bool = False
    id_hint: str = "; if it is a name, give --id-type string"
    weight_hint: str = ""
    notes: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        return schema_of(self.id_type, self.weight_type)

    @property
    def quoted(self) -> bool:
        return self.delimiter != " "

    def parse(self, file: TextFile, block: Block) -> pa.RecordBatch:
        """Return the edges of a block. Raises InputError, which names the first wrong line."""
        try:
            types = dict(zip(self.places, self.schema.types, strict=True))
            found = self.columns_of(block, types)
        except pa.ArrowInvalid as error:
            raise self._fault(file, block) from error
        columns = [found[place] for place in self.places]
        right = all(map(self._are_ids, columns[:2])) and all(map(_are_finite, columns[2:]))
        if not right or self._holds_lost_weights(block, *columns[2:]):
            raise self._fault(file, block)
        return pa.record_batch(columns, schema=self.schema)

    def columns_of(self, block: Block, types: Mapping[int, pa.DataType]) -> dict[int, pa.Array]:
        """Return columns of a block, by column number. Raises ArrowInvalid if a column is not of
        its type.
        """
        text = self.text_of(block)
        if not text:
            return {place: pa.array([], kind) for place, kind in types.items()}
        found = self._read(text, types)
        whole = [place for place, kind in types.items() if pa.types.is_integer(kind)]
        if whole and _may_hold_odd_integers(text):
            for place, words in self._read(text, dict.fromkeys(whole, pa.string())).items():
                names = place in self.places[:2] and not self.positions
                if not (_print_as(found[place], words) if names else _are_decimal(words)):
                    raise pa.ArrowInvalid("a number that does not print as it was read")
        return found

    def text_of(self, block: Block) -> bytes:
        """Return the text of a block for Arrow; empty if no line has an edge."""
        text = block.text
        if not self.quoted:
            text = single_blanks(text, self.comment) if text.strip(b" \t\r\n") else b""
        return text if text.strip(b"\r\n") else b""

    def _read(self, text: bytes, types: Mapping[int, pa.DataType]) -> dict[int, pa.Array]:
        table = arrow_csv.read_csv(
            pa.BufferReader(text),
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                block_size=len(text) + 1,
                column_names=[str(place) for place in range(self.columns)],
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.delimiter,
                quote_char='"' if self.quoted else False,
                newlines_in_values=self.quoted,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types={str(place): kind for place, kind in types.items()},
                include_columns=[str(place) for place in types],
                null_values=[],
            ),
        )
        return {place: stored(table[str(place)]) for place in types}  # (no copy, of one block)

    def _are_ids(self, ids: pa.Array) -> bool:
        if is_string(self.id_type):
            return not pc.call_function("any", [pc.call_function("equal", [ids, ""])]).as_py()
        return self.known is None or bool(self.known(as_numpy(ids)).all())

    def _holds_lost_weights(self, block: Block, weights: pa.Array | None = None) -> bool:
        """Return whether a weight that is not zero has become zero: the least positive float of 64
        bits is 5e-324.
        """
        if weights is None or pa.types.is_integer(weights.type) or as_numpy(weights).all():
            return False
        place = self.places[2]
        words = self._read(self.text_of(block), {place: pa.string()})[place]
        zeros = words.filter(pc.call_function("equal", [weights, 0.0]))
        return _count(zeros, _NOT_ZERO) > 0

    def _fault(self, file: TextFile, block: Block) -> InputError:
        faults = (self._id_fault, self._id_fault, self._weight_fault)
        for number, fields in self.lines(file, block):
            if len(fields) != self.columns:
                return file.error(number, f"{_columns(len(fields))}, not {self.columns}")
            for place, fault in zip(self.places, faults, strict=False):
                if told := fault(fields[place]):
                    return file.error(number, told)
        return file.error(block.first_line, "this line, or one after it, is not an edge")

    def lines(self, file: TextFile, block: Block) -> Iterator[tuple[int, list[str]]]:
        """Yield the number and the fields of each line that holds an edge, as Python reads it."""
        text = block.text.decode(errors="surrogateescape")
        if not self.quoted:
            for number, line in enumerate(text.split("\n"), block.first_line):
                line = line.strip(" \t\r")
                if line and not (self.comment and line.startswith(self.comment)):
                    yield number, _BLANKS.split(line)
            return
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter)
        before = 0
        try:
            for fields in rows:
                if fields:
                    yield block.first_line + before, fields
                before = rows.line_num
        except csv.Error as error:
            raise file.error(block.first_line + before, str(error)) from error

    def _id_fault(self, field: str) -> str:
        if is_string(self.id_type):
            if not field:
                return "a vertex has no name"
            return "" if _is_utf8(field) else "the name of a vertex is not UTF-8"
        word = field.strip(" \t")
        number = integer_of(word)
        if number is None or not in_range(number, self.id_type):
            return f"{shown(field)} is not a vertex number{self.id_hint}"
        if not self.positions and str(number) != word:
            return f"{shown(field)} is not a plain vertex number, such as {number}{self.id_hint}"
        if self.known is not None and not self.known(np.array([number])).all():
            return f"there is no vertex {number}: {self.told}"
        return ""

    def _weight_fault(self, field: str) -> str:
        word = field.strip(" \t")
        if not _NUMBER.fullmatch(word) or not math.isfinite(float(word)):
            return f"{shown(field)} is not a weight: a weight must be a finite number"
        if float(word) == 0 and re.match(_NOT_ZERO, word):
            return f"{shown(field)} is too small for a 64-bit weight, which would become 0"
        number = integer_of(word)
        if self.weight_type == pa.int64() and (number is None or not in_range(number, pa.int64())):
            return (
                f"{shown(field)} is not a 64-bit integer, as the weights here are{self.weight_hint}"
            )
        return ""


def integer_of(word: str) -> int | None:
    """Return the integer that a word of digits stands for; None for other words, and for hundreds
    of digits.

    >>> integer_of("-007"), integer_of("+7"), integer_of("9" * 5000)
    (-7, None, None)
    """
    try:
        return parse_integer(word) if _INTEGER.fullmatch(word) else None
    except InputError:
        return None


def single_blanks(text: bytes, comment: str = "") -> bytes:
    """Return lines with a single blank between words and none around them. Comments are left out.

    >>> single_blanks(b"# a\\n 1\\t 2 \\r\\n3 4\\n", "#")
    b'1 2\\n3 4\\n'
    """
    mark = comment.encode()
    if comment and mark in text:
        text = re.sub(rb"(?m)(?:^[ \t]*" + re.escape(mark) + rb".*\n?)+", b"", text)
    text = text.replace(b"\r\n", b"\n").replace(b"\t", b" ")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")


def first_look(file: TextFile, layout: LineColumns) -> tuple[Block, int, Iterator[Block]]:
    """Return the first block with an edge, the number of columns of that edge, and all blocks from
    there on.

    Raises InputError if there are no edges.
    """
    blocks = file.blocks(layout.quoted)
    for block in blocks:
        if not layout.text_of(block):
            continue
        for _, fields in layout.lines(file, block):
            return block, len(fields), chain([block], blocks)
    raise InputError(f"{file.path}: the file has no edges")


def with_types(
    file: TextFile,
    layout: LineColumns,
    block: Block,
    id_type: str = "int64",
    weight_type: str = "auto",
) -> LineColumns:
    """Return the layout with the types that the user chose. "auto" stands for the narrowest type
    that fits the whole first block.

    A file is read in one pass, so later blocks do not change the type: a word among a billion
    numbers is more likely a mistake than a name.
    """
    if id_type == "auto":
        chosen = _narrowest(layout, block, layout.places[:2], ID_TYPES)
        layout = replace(layout, id_type=chosen, id_hint=_ID_HINT)
        if is_string(chosen):
            layout = replace(layout, notes=tuple(_notes_on_names(file, layout, block)))
    else:
        layout = replace(layout, id_type=ID_TYPES[id_type])
    if len(layout.places) == 2:
        return layout
    if weight_type == "auto":
        chosen = _narrowest(layout, block, layout.places[2:], WEIGHT_TYPES)
        return replace(layout, weight_type=chosen, weight_hint=_WEIGHT_HINT)
    return replace(layout, weight_type=WEIGHT_TYPES[weight_type])


_ID_HINT = "; earlier ids are integers: give --id-type string (or uint64, if it is a large number)"
_WEIGHT_HINT = "; give --weight-type float64"


def _narrowest(
    layout: LineColumns, block: Block, places: Sequence[int], types: Mapping[str, pa.DataType]
) -> pa.DataType:
    """Return the narrowest type that fits the columns. types: from narrow to wide; the last one is
    returned if no other fits.
    """
    *narrow, widest = types.values()
    for kind in narrow:
        with contextlib.suppress(pa.ArrowInvalid):
            layout.columns_of(block, dict.fromkeys(places, kind))
            return kind
    return widest


def _notes_on_names(file: TextFile, layout: LineColumns, block: Block) -> Iterator[str]:
    """Yield a note with the reason why the ids of a first block are strings, and the line that is
    the reason.
    """
    try:
        found = layout.columns_of(block, dict.fromkeys(layout.places[:2], pa.string()))
    except pa.ArrowInvalid:  # a line is no edge; parsing will name it
        return
    ids = pa.concat_arrays(list(found.values()))
    integers = _count(ids, _AS_PRINTED)
    if not integers:
        yield f"{file.path}: ids are strings"
    else:
        number, why = _first_name(layout.lines(file, block), layout.places[:2])
        names = len(ids) - integers
        share = f" ({names:,} of the first {len(ids):,} are not integers)" if names else ""
        yield (
            f"{file.path}, line {number:,}: {why}, so ids are strings{share}; to refuse such "
            "lines, give --id-type int64"
        )
    if blank := _count(ids, r"^[ \t]|[ \t]$"):
        yield f"{file.path}: blanks around ids are kept, as in {blank:,} of the first ids"


def _first_name(lines: Iterator[tuple[int, list[str]]], places: Sequence[int]) -> tuple[int, str]:
    """Return the line of the first id that is no 64-bit integer, and the reason."""
    line, told = 0, "no 64-bit integer type holds both large and negative ids"
    for line, fields in lines:
        for field in (fields[place] for place in places):
            word = field.strip(" \t")
            number = integer_of(word)
            if number is None or not -(2**63) <= number < 2**64:
                return line, f"{shown(field)} is not a 64-bit integer"
            if str(number) != word:
                return line, f"{shown(field)} is not a plain integer, such as {number}"
    return line, told


def _count(words: pa.Array, pattern: str) -> int:
    """Count the words that match a pattern."""
    options = pc.MatchSubstringOptions(pattern)
    found = pc.call_function("match_substring_regex", [words], options)
    return pc.call_function("sum", [found]).as_py() or 0


def _may_hold_odd_integers(text: bytes) -> bool:
    """Return False only if every integer that Arrow reads in a text prints exactly as it is in the
    text. Arrow reads 007 and -0, and hexadecimal numbers such as 0x1f: all of these begin with a
    zero, after a sign if they have one.

    >>> [_may_hold_odd_integers(text) for text in (b"007,8", b"7 -0", b"10,2024-01-05,0,0.05")]
    [True, True, False]
    """
    codes = np.frombuffer(b"\n\n" + text + b"\n", np.uint8)
    begins_number = (codes[1:-1] == ord("0")) & (codes[:-2] - ord("0") > 9)  # (bytes wrap)
    zeros = np.flatnonzero(begins_number) + 1
    zeros = zeros[_BEFORE_ZERO[codes[zeros - 1]]]
    before, behind = codes[zeros - 1], codes[zeros + 1]
    negative = before == ord("-")
    begins = ~negative | _BEFORE_FIELD[codes[zeros - 2]]
    tails = (behind - ord("0") <= 9) | ((behind | 0x20) == ord("x"))  # unsigned bytes wrap
    return bool((begins & (negative | tails)).any())


def _print_as(numbers: pa.Array, words: pa.Array) -> bool:
    """Return whether integers print as the words they were read from, without blanks around the
    words.
    """
    plain = pc.call_function("utf8_trim", [words], pc.TrimOptions(" \t"))
    same = pc.call_function("equal", [numbers.cast(pa.string()), plain])
    return pc.call_function("all", [same]).as_py() is not False


def _are_decimal(words: pa.Array) -> bool:
    """Return whether no integer is hexadecimal, a form that Arrow reads and no graph format
    allows.
    """
    options = pc.MatchSubstringOptions("x", ignore_case=True)
    found = pc.call_function("match_substring", [words], options)
    return not pc.call_function("any", [found]).as_py()


def _are_finite(weights: pa.Array) -> bool:
    return pa.types.is_integer(weights.type) or bool(np.isfinite(as_numpy(weights)).all())


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def _is_utf8(field: str) -> bool:
    try:
        field.encode()
        return True
    except UnicodeEncodeError:
        return False


class EdgeLines:
    """A text file of edges with its header read. Implements GraphFile (graph_file.py)."""

    held_bytes = 0

    def __init__(
        self,
        file: TextFile,
        layout: LineColumns,
        blocks: Iterator[Block],
        directed: bool | None = None,
    ) -> None:
        self._file, self._layout, self._blocks = file, layout, blocks
        self.schema, self.directed, self.bytes = layout.schema, directed, file.bytes
        self.notes = layout.notes

    def pieces(self) -> Iterator[Piece]:
        for block in self._blocks:
            yield Piece(block.bytes, partial(self._layout.parse, self._file, block))

    def isolated(self, edges: int) -> Iterator[pa.RecordBatch]:
        yield from ()

    def close(self) -> None:
        self._file.close()
