"""Text with an edge a line: Arrow parses blocks of it, and where it cannot, Python finds the line
that is wrong.
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
from ...partition.input.edges import is_string
from ...partition.input.ids import in_range
from .graph_file import Piece, schema_of
from .text import Block, TextFile

ID_TYPES = {"int64": pa.int64(), "uint64": pa.uint64(), "string": pa.string()}
WEIGHT_TYPES = {"int64": pa.int64(), "float64": pa.float64()}
"""What ids and weights may be, by the names that users give."""

INTEGER = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Layout:
    """How a line holds an edge.

    delimiter: of quoted fields, a comma or a tab; or a blank, for any number of blanks and tabs.
    comment: what a line without an edge begins with. columns: of every line. places: of source,
    target and, where there is one, weight. known: whether vertices may have some ids, and told:
    which ones may. id_hint, weight_hint: added to what is wrong with one.
    """

    delimiter: str = " "
    comment: str = ""
    columns: int = 2
    places: tuple[int, ...] = (0, 1)
    id_type: pa.DataType = ID_TYPES["int64"]
    weight_type: pa.DataType | None = None
    known: Callable[[NDArray], NDArray[np.bool_]] | None = None
    told: str = ""
    id_hint: str = ""
    weight_hint: str = ""

    @property
    def schema(self) -> pa.Schema:
        return schema_of(self.id_type, self.weight_type)

    @property
    def quoted(self) -> bool:
        return self.delimiter != " "

    def parse(self, file: TextFile, block: Block) -> pa.RecordBatch:
        """The edges of a block. Raises InputError naming the first line that is wrong."""
        try:
            types = dict(zip(self.places, self.schema.types, strict=True))
            found = self.columns_of(block, types)
        except pa.ArrowInvalid as error:
            raise self._fault(file, block) from error
        columns = [found[place] for place in self.places]
        if not all(map(self._are_ids, columns[:2])) or not all(map(_are_finite, columns[2:])):
            raise self._fault(file, block)
        return pa.record_batch(columns, schema=self.schema)

    def columns_of(self, block: Block, types: Mapping[int, pa.DataType]) -> dict[int, pa.Array]:
        """Some columns, by their places. Raises ArrowInvalid where they are not of these types."""
        text = block.text if self.quoted else single_blanks(block.text, self.comment)
        if not text.strip():
            return {place: pa.array([], kind) for place, kind in types.items()}
        found = self._read(text, types)
        if b"0x" in text or b"0X" in text:  # numbers to Arrow, but names or mistakes here
            whole = [place for place, kind in types.items() if pa.types.is_integer(kind)]
            for words in self._read(text, dict.fromkeys(whole, pa.string())).values():
                if pc.call_function("any", [_holds_x(words)]).as_py():
                    raise pa.ArrowInvalid("a hexadecimal number")
        return found

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
        return {place: table[str(place)].combine_chunks() for place in types}

    def _are_ids(self, ids: pa.Array) -> bool:
        if is_string(self.id_type):
            return not pc.call_function("any", [pc.call_function("equal", [ids, ""])]).as_py()
        return self.known is None or bool(self.known(as_numpy(ids)).all())

    def _fault(self, file: TextFile, block: Block) -> InputError:
        faults = (self._id_fault, self._id_fault, self._weight_fault)
        for number, fields in self.lines(file, block):
            if len(fields) != self.columns:
                return file.error(number, f"{_columns(len(fields))}, not {self.columns}")
            for place, fault in zip(self.places, faults, strict=False):
                if told := fault(fields[place]):
                    return file.error(number, told)
        return file.error(block.first_line, "there, or in a line after it, stands no edge")

    def lines(self, file: TextFile, block: Block) -> Iterator[tuple[int, list[str]]]:
        """The numbers and fields of lines that hold an edge, as Python reads them."""
        text = block.text.decode(errors="surrogateescape")
        if not self.quoted:
            for number, line in enumerate(text.split("\n"), block.first_line):
                fields = line.split()
                if fields and not (self.comment and fields[0].startswith(self.comment)):
                    yield number, fields
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
                return "a vertex without a name"
            return "" if _is_utf8(field) else "a vertex whose name is not UTF-8"
        if not INTEGER.fullmatch(field) or not in_range(int(field), self.id_type):
            return f"{field!r} is no vertex number{self.id_hint}"
        if self.known is not None and not self.known(np.array([int(field)])).all():
            return f"there is no vertex {field}: {self.told}"
        return ""

    def _weight_fault(self, field: str) -> str:
        if not _NUMBER.fullmatch(field) or not math.isfinite(float(field)):
            return f"{field!r} is no weight: it has to be a finite number"
        whole = INTEGER.fullmatch(field) and in_range(int(field), pa.int64())
        if self.weight_type == pa.int64() and not whole:
            return f"{field!r} is no integer of 64 bits, as weights are here{self.weight_hint}"
        return ""


def single_blanks(text: bytes, comment: str = "") -> bytes:
    """Lines with a single blank between words, and none around them; comments are left out.

    >>> single_blanks(b"# a\\n 1\\t 2 \\r\\n3 4\\n", "#")
    b'1 2\\n3 4\\n'
    """
    mark = comment.encode()
    if comment and mark in text:
        text = re.sub(rb"(?m)^[ \t]*" + re.escape(mark) + rb".*\n?", b"", text)
    text = text.replace(b"\r\n", b"\n").replace(b"\t", b" ")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")


def first_look(file: TextFile, layout: Layout) -> tuple[Block, int, Iterator[Block]]:
    """The first block, the columns of its first edge, and all blocks.

    Raises InputError where there are no edges.
    """
    blocks = file.blocks(layout.quoted)
    for block in blocks:
        for _, fields in layout.lines(file, block):
            return block, len(fields), chain([block], blocks)
    raise InputError(f"{file.path}: it holds no edges")


def with_types(
    layout: Layout, block: Block, id_type: str = "int64", weight_type: str = "auto"
) -> Layout:
    """The layout with the types that are asked for; where that is "auto", with the narrowest that
    all of the first block fits: one pass reads a file, and a word among a billion numbers is rather
    a mistake than a name.
    """
    if id_type == "auto":
        chosen = _narrowest(layout, block, layout.places[:2], ID_TYPES)
        layout = replace(layout, id_type=chosen, id_hint=_ID_HINT)
    else:
        layout = replace(layout, id_type=ID_TYPES[id_type])
    if len(layout.places) == 2:
        return layout
    if weight_type == "auto":
        chosen = _narrowest(layout, block, layout.places[2:], WEIGHT_TYPES)
        return replace(layout, weight_type=chosen, weight_hint=_WEIGHT_HINT)
    return replace(layout, weight_type=WEIGHT_TYPES[weight_type])


_ID_HINT = ", as those before it are: say --id-type string (or uint64, if it is a large number)"
_WEIGHT_HINT = "; say --weight-type float64"


def _narrowest(
    layout: Layout, block: Block, places: Sequence[int], types: Mapping[str, pa.DataType]
) -> pa.DataType:
    """types: from narrow to wide, the last for what fits none."""
    *narrow, widest = types.values()
    for kind in narrow:
        with contextlib.suppress(pa.ArrowInvalid):
            layout.columns_of(block, dict.fromkeys(places, kind))
            return kind
    return widest


def _holds_x(words: pa.Array) -> pa.Array:
    return pc.call_function(
        "match_substring", [words], pc.MatchSubstringOptions("x", ignore_case=True)
    )


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
    """A text file of edges, whose header was taken (graph_file.py)."""

    held_bytes = 0

    def __init__(
        self,
        file: TextFile,
        layout: Layout,
        blocks: Iterator[Block],
        directed: bool | None = None,
    ) -> None:
        self._file, self._layout, self._blocks = file, layout, blocks
        self.schema, self.directed, self.bytes = layout.schema, directed, file.bytes

    def pieces(self) -> Iterator[Piece]:
        for block in self._blocks:
            yield Piece(block.bytes, partial(self._layout.parse, self._file, block))

    def isolated(self, edges: int) -> Iterator[pa.RecordBatch]:
        yield from ()

    def close(self) -> None:
        self._file.close()
