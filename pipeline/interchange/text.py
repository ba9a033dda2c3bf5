"""Text files of any size, plain or compressed, in blocks of whole lines.

A few bytes can unpack to any number of lines, and a line can have any length. This module limits
both before they fill memory or take hours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from ...partition.disk.memory import format_bytes
from ...partition.disk.system_errors import raise_failure
from ...partition.errors import InputError, one_line

BLOCK_BYTES = 2 << 20
LINE_BYTES = 1 << 20
"""Most bytes of a line with an edge. A file with a longer line is no text, or not of its format."""

HEADER_BYTES = 8 << 20
"""Most bytes before the end of a header, comments and blank lines included."""

UNPACKED_BYTES = 256 << 20
UNPACKED_RATIO = 200
"""Limits of unpacking: a compressed file may unpack to UNPACKED_BYTES, or to UNPACKED_RATIO times
its size if that is more, unless ``max_unpacked`` sets another limit. Edge lists as text compress 3
to 55 times, even those of grids and complete graphs.
"""

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_BOM = b"\xef\xbb\xbf"


_LIFT = "if the file is right, give --max-unpacked SIZE, or --max-unpacked none"


class Block(NamedTuple):
    """A block of lines. first_line: the number of its first line, from 1. bytes: the number of
    bytes of the file, which may be compressed, that were read for the block.
    """

    text: bytes
    first_line: int
    bytes: int


class TextFile:
    """A text file that is read once, from its beginning. bytes: size of the file, compressed or
    not.

    max_unpacked: bytes that the file may unpack to; ``math.inf`` for any number; None for a limit
    by its size.
    """

    def __init__(self, path: str, max_unpacked: float | None = None) -> None:
        self.path = path
        try:
            self.bytes = os.path.getsize(path)
            self._file = pa.OSFile(path)
            self._stream = self._file
            compression = COMPRESSIONS.get(Path(path).suffix)
            if compression:
                self._stream = pa.CompressedInputStream(self._file, compression)
        except OSError as error:
            raise_failure(path, error)
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
        self._compressed = compression is not None
        usual = max(UNPACKED_BYTES, UNPACKED_RATIO * self.bytes)
        self._most = usual if max_unpacked is None else max_unpacked
        self._unpacked = 0  # bytes that were read
        self._before = 0  # bytes of lines that were taken one by one
        self._text = b""
        self._at = 0  # text before this position was taken
        self._lines = 0  # number of lines that were taken
        self._told = 0  # bytes of the file that blocks have reported
        if self._fill() and self._text.startswith(_BOM):
            self._at = len(_BOM)

    def close(self) -> None:
        self._stream.close()
        self._file.close()

    def _fill(self) -> bool:
        """Read the next bytes; return False at the end."""
        try:
            block = self._stream.read(BLOCK_BYTES)
        except OSError as error:
            raise_failure(self.path, error)
            told = f"{self.path}, after line {self._lines:,}: cannot be read: {one_line(error)}"
            raise InputError(told) from error
        self._text = self._text[self._at :] + block
        self._at = 0
        self._unpacked += len(block)
        if self._compressed and self._unpacked > self._most:
            raise InputError(
                f"{self.path}: its {self.bytes:,} bytes unpack to more than "
                f"{format_bytes(self._most)}, which is unusual for a graph file: {_LIFT}"
            )
        return bool(block)

    def check_vertices(self, line: int, count: int, vertex_bytes: int = 0) -> None:
        """Raise InputError for a header that promises more vertices than the file can have.

        vertex_bytes: bytes to count for a vertex without edges, if the file does not list such
        vertices; 0 if each vertex has a line.
        """
        told = f"the header promises {count:,} vertices"
        if vertex_bytes and vertex_bytes * count > self._most:
            told += f", but the file has {self.bytes:,} bytes: {_LIFT}"
            raise self.error(line, told)
        if not vertex_bytes and count > (self._most if self._compressed else self.bytes):
            told += f", one per line, but the file has {self.bytes:,} bytes"
            raise self.error(line, f"{told}: {_LIFT}" if self._compressed else told)

    def error(self, line: int, what: str) -> InputError:
        return InputError(f"{self.path}, line {line:,}: {what}")

    def line(self) -> tuple[int, str] | None:
        """Return the number of the next line, and the line without its end; None after the last
        line.

        This function is for headers. Raises InputError if they are longer than HEADER_BYTES.
        """
        if self._before > HEADER_BYTES:
            told = f"the first {HEADER_BYTES:,} bytes hold no header"
            raise self.error(self._lines + 1, told)
        while (end := self._text.find(b"\n", self._at)) < 0:
            self._check_length()
            if not self._fill():
                end = len(self._text)
                break
        if end == self._at == len(self._text):
            return None
        line = self._text[self._at : end].decode(errors="replace").rstrip("\r")
        self._before += end + 1 - self._at
        self._at = min(end + 1, len(self._text))
        self._lines += 1
        return self._lines, line

    def _check_length(self, quoted: bool = False, subject: str = "the line") -> None:
        if len(self._text) - self._at > max(LINE_BYTES, BLOCK_BYTES * (subject != "the line")):
            told = f"{subject} is longer than {LINE_BYTES:,} bytes"
            told += ", or has a quotation mark that is not closed" if quoted else ""
            raise self.error(self._lines + 1, told)

    def blocks(self, quoted: bool = False, long_lines: bool = False) -> Iterator[Block]:
        """Yield the remaining lines in blocks.

        quoted: whether a line continues after a line end between quotation marks. long_lines:
        whether lines may have any length; lines longer than BLOCK_BYTES are then cut between words,
        and no word may be as long.
        """
        while True:
            end = self._end_of_lines(quoted)
            if end <= self._at and long_lines and len(self._text) - self._at > BLOCK_BYTES:
                end = max(self._text.rfind(blank) for blank in (b" ", b"\t")) + 1
            if end <= self._at:
                self._check_length(quoted, "a word of the line" if long_lines else "the line")
                if self._fill():
                    continue
                end = len(self._text)
                if end == self._at:
                    return
            text = self._text[self._at : end]
            self._at = end
            read = self._file.tell()
            yield Block(text, self._lines + 1, read - self._told)
            self._told = read
            self._lines += text.count(b"\n")

    def _end_of_lines(self, quoted: bool) -> int:
        """Return the position after the last line end outside quotation marks; 0 if there is
        none.
        """
        end = self._text.rfind(b"\n", self._at) + 1
        if quoted and end and self._text.count(b'"', self._at, end) % 2:
            mark = self._text.rfind(b'"', self._at, end)  # opens the field that is cut off
            end = self._text.rfind(b"\n", self._at, mark) + 1
        return end
