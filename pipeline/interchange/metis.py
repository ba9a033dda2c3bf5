"""METIS's graphs (its manual, 4.1.1). Each line is a vertex and lists its neighbours, numbered from
1.

The header gives the numbers of vertices and of edges, whether a line begins with a size and weights
of its vertex, which are ignored, and whether an edge's weight follows each neighbour. An edge is in
the lines of both its ends; this module takes it from the line of the lesser end. Lines may have any
length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from threading import Lock
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from ...partition.errors import InputError
from ...partition.input.arrow import as_arrow, as_numpy
from ...partition.input.id_types import in_range
from ...partition.numbers import parse_integer, shown
from .consistency import EdgeBalance, Vertices
from .edge_lines import integer_of
from .graph_file import Piece, schema_of
from .text import LINE_BYTES, TextFile

_COMMENT = re.compile(rb"(?m)^%.*\n?")
_BLANKS = bytes(range(ord(" ") + 1))
_LINES = bytes.maketrans(_BLANKS, b"\n" * len(_BLANKS))
"""Translation that puts each word on a line of its own."""

_MOST = 2**62  # greatest number in a header: sums of such numbers fit 64 bits
_EXPECTED = "the header must give the numbers of vertices and edges"


class Header(NamedTuple):
    """The contents of a header. first: number of words of a line before its neighbours. step:
    number of words for each neighbour.
    """

    vertices: int
    edges: int
    first: int
    step: int


class Words(NamedTuple):
    """The words of a part of the file. text: the lines, with comments blanked out. line_at: returns
    the line number at a position of the text. ends: number of line ends. starts: the position of
    each word. vertex: the vertex of each word's line, from 1. place: the position of each word
    among the words of its line, from 0.
    """

    text: bytes
    line_at: Callable[[int], int]
    ends: int
    starts: NDArray[np.int64]
    vertex: NDArray[np.int64]
    place: NDArray[np.int64]


class Metis:
    """A METIS file. Implements GraphFile (graph_file.py)."""

    directed: bool | None = False
    notes = ()

    def __init__(self, file: TextFile, limit: int) -> None:
        self._file = file
        self._header = _header(file)
        self._vertices = Vertices(range(1, self._header.vertices + 1), limit)
        self.bytes, self.held_bytes = file.bytes, self._vertices.bytes
        self.schema = schema_of(pa.int64(), pa.int64() if self._header.step == 2 else None)
        self._lines = 0  # lines of vertices that were read
        self._lock = Lock()
        self._balance = EdgeBalance()
        self._above = self._below = self._loops = 0  # counts of entries; any thread adds to them

    def pieces(self) -> Iterator[Piece]:
        """Yield the edges of each block. The vertex and place of a block's words depend on the
        blocks before; their values do not.
        """
        place = 0  # place of the next word in its line
        kept = b""  # a neighbour whose weight is in the next block
        first_line = 1
        begins = True  # whether the next block begins a line
        for block in self._file.blocks(long_lines=True):
            first_line = block.first_line
            words = _words(kept + block.text, first_line, 1 + self._lines, place)
            kept = b""
            whole = block.text.endswith(b"\n")
            if begins and block.text.startswith(b"%") and len(block.text) > LINE_BYTES:
                told = f"a comment is longer than {LINE_BYTES:,} bytes"
                raise self._file.error(first_line, told)
            begins = whole
            self._check_weights(words, place)
            if not whole and self._header.step == 2 and self._is_neighbour(words.place[-1:]).any():
                kept = words.text[words.starts[-1] :]
                words = Words(*words[:3], *(column[:-1] for column in words[3:]))
            self._lines += words.ends
            place *= words.ends == 0
            place += int(np.count_nonzero(words.vertex == 1 + self._lines))
            yield Piece(block.bytes, partial(self._edges, words))
        if kept:
            word = kept.decode(errors="replace")
            raise self._file.error(first_line, f"no weight follows {shown(word)}")
        self._lines += place > 0  # the last line may lack a line end

    def _check_weights(self, words: Words, place: int) -> None:
        """Raise InputError for a line with fewer words than its vertex has weights. An empty line
        is a vertex without edges. place: of the first word.
        """
        if not self._header.first or not words.ends:
            return
        ended = words.vertex - (1 + self._lines)
        counts = np.bincount(ended, minlength=words.ends)[: words.ends]
        counts[0] += place
        short = np.flatnonzero((counts > 0) & (counts < self._header.first))
        if len(short):
            vertex = 1 + self._lines + int(short[0])
            told = f"the line of vertex {vertex:,} has {counts[short[0]]:,} words"
            promised = f"its header promises {self._header.first:,} before the neighbours"
            raise InputError(f"{self._file.path}: {told}, but {promised}")

    def _is_neighbour(self, place: NDArray[np.int64]) -> NDArray[np.bool_]:
        _, _, first, step = self._header
        return (place >= first) & ((place - first) % step == 0)

    def _edges(self, words: Words) -> pa.RecordBatch:
        values = self._values(words)
        at = np.flatnonzero(self._is_neighbour(words.place))
        source, target = words.vertex[at], values[at]
        if len(words.vertex) and words.vertex[-1] > self._header.vertices:
            wrong = int(np.argmax(words.vertex > self._header.vertices))
            told = f"more lines than the {self._header.vertices:,} vertices of the header"
            raise self._error(words, wrong, told)
        known = self._vertices.see(target)
        if not known.all():
            wrong = int(at[np.argmin(known)])
            told = f"they are numbered from 1 to {self._header.vertices:,}"
            raise self._error(words, wrong, f"there is no vertex {values[wrong]}: {told}")
        columns = [source, target]
        if self._header.step == 2:
            paired = np.append(words.vertex, 0)[at + 1] == source
            if not paired.all():
                wrong = int(at[np.argmin(paired)])
                raise self._error(words, wrong, f"no weight follows '{values[wrong]}'")
            columns.append(values[at + 1])
        above, below = target > source, target < source
        with self._lock:
            self._above += int(np.count_nonzero(above))
            self._below += int(np.count_nonzero(below))
            self._loops += int(np.count_nonzero(~(above | below)))
        for mask, sign in ((above, 1), (below, -1)):
            sources, targets, *weights = (column[mask] for column in columns)
            ends = (sources, targets) if sign > 0 else (targets, sources)
            self._balance.add(*ends, weights[0] if weights else None, sign)
        return pa.record_batch([as_arrow(column[~below]) for column in columns], schema=self.schema)

    def _values(self, words: Words) -> NDArray[np.int64]:
        if not len(words.starts):
            return np.empty(0, np.int64)
        lines, last = words.text.translate(_LINES), words.starts[-1]
        lines = lines[:last] + lines[last:].partition(b"\n")[0]
        try:
            if b"x" in lines or b"X" in lines:
                raise pa.ArrowInvalid("a hexadecimal number, which Arrow would take")
            table = arrow_csv.read_csv(
                pa.BufferReader(lines),
                arrow_csv.ReadOptions(
                    use_threads=False, block_size=len(lines) + 1, column_names=["word"]
                ),
                arrow_csv.ParseOptions(quote_char=False),
                arrow_csv.ConvertOptions(column_types={"word": pa.int64()}, null_values=[]),
            )
            return as_numpy(table["word"])
        except pa.ArrowInvalid as error:
            tokens = filter(None, lines.decode(errors="replace").split("\n"))
            for number, word in enumerate(tokens):
                value = integer_of(word)
                if value is None or not in_range(value, pa.int64()):
                    raise self._error(words, number, f"{shown(word)} is not a number") from error
            raise

    def _error(self, words: Words, number: int, what: str) -> InputError:
        return self._file.error(words.line_at(int(words.starts[number])), what)

    def isolated(self, edges: int) -> Iterator[pa.RecordBatch]:
        vertices, promised, _, _ = self._header
        if self._lines < vertices:
            told = f"{self._lines:,} lines of vertices, but its header promises {vertices:,}"
            raise InputError(f"{self._file.path}: {told}")
        if self._above != self._below:
            raise InputError(
                f"{self._file.path}: {self._above:,} edges are in the line of their smaller "
                f"vertex, and {self._below:,} in the line of the larger one: each edge must be in "
                "both lines"
            )
        if not self._balance.even:
            told = "the lines of the two ends of an edge do not hold the same edges and weights"
            raise InputError(f"{self._file.path}: {told}")
        entries = self._above + self._below + self._loops  # a self-loop may be listed once or twice
        if 2 * promised not in (entries, entries + self._loops):
            told = f"{entries:,} neighbours, but its header promises {promised:,} edges, two each"
            raise InputError(f"{self._file.path}: {told}")
        return self._vertices.self_loops(self.schema)

    def close(self) -> None:
        self._file.close()


def _words(text: bytes, first_line: int, vertex: int, place: int) -> Words:
    """Find the words of a text. vertex, place: of the first word."""

    def line_at(start: int) -> int:
        return first_line + text.count(b"\n", 0, start)

    plain = text
    if b"%" in text:
        plain = _COMMENT.sub(lambda comment: b" " * len(comment[0]), text)
    codes = np.frombuffer(plain, np.uint8)
    blank = codes < len(_BLANKS)
    starts = np.flatnonzero(~blank & np.append(True, blank[:-1]))
    ends = np.flatnonzero(codes == ord("\n"))
    line = np.searchsorted(ends, starts)
    places = np.arange(len(starts)) - np.searchsorted(line, line)
    places[: np.searchsorted(line, 1)] += place
    return Words(plain, line_at, len(ends), starts, vertex + line, places)


def _header(file: TextFile) -> Header:
    while found := file.line():
        number, line = found
        if line.startswith("%"):
            continue
        words = line.split()
        try:
            counts = [parse_integer(word, 0, _MOST) for word in words]
        except InputError as error:
            raise file.error(number, f"{_EXPECTED}: {error}") from error
        if not 2 <= len(counts) <= 4:
            raise file.error(number, f"{_EXPECTED}, not {shown(line)}")
        form = words[2].zfill(3) if len(words) > 2 else "000"
        if len(form) > 3 or not set(form) <= set("01"):
            raise file.error(
                number, f"{shown(words[2])} is not a format: a format has three digits, 0 or 1"
            )
        file.check_vertices(number, counts[0])
        sizes, weighted, edge_weights = (digit == "1" for digit in form)
        weights = counts[3] if len(counts) == 4 else 1
        return Header(counts[0], counts[1], sizes + weights * weighted, 1 + edge_weights)
    raise InputError(f"{file.path}: the file ends before its header")
