"""Text files of any size, plain or compressed, in blocks of whole lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from ...partition.errors import InputError, one_line

BLOCK_BYTES = 2 << 20
LINE_BYTES = 1 << 20
"""No line of an edge is longer: what is longer is no text, or something else."""

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_BOM = b"\xef\xbb\xbf"


class Block(NamedTuple):
    """Some lines. first_line: the number of the first one, from 1. bytes: of the file, compressed
    as it is, that were read for them.
    """

    text: bytes
    first_line: int
    bytes: int


class TextFile:
    """A text file that is read once, from its beginning. bytes: of the file as it is."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self.bytes = os.path.getsize(path)
            self._file = pa.OSFile(path)
            self._stream = self._file
            if compression := COMPRESSIONS.get(Path(path).suffix):
                self._stream = pa.CompressedInputStream(self._file, compression)
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
        self._text = b""
        self._at = 0  # what lies before was taken
        self._lines = 0  # that were taken
        self._told = 0  # bytes of the file, by blocks
        if self._fill() and self._text.startswith(_BOM):
            self._at = len(_BOM)

    def close(self) -> None:
        self._stream.close()
        self._file.close()

    def _fill(self) -> bool:
        """Read some more; False at the end."""
        try:
            more = self._stream.read(BLOCK_BYTES)
        except OSError as error:
            told = f"{self.path}, after line {self._lines:,}: cannot be read: {one_line(error)}"
            raise InputError(told) from error
        self._text = self._text[self._at :] + more
        self._at = 0
        return bool(more)

    def error(self, line: int, what: str) -> InputError:
        return InputError(f"{self.path}, line {line:,}: {what}")

    def line(self) -> tuple[int, str] | None:
        """The next line's number, and the line without its end; None after the last."""
        while (end := self._text.find(b"\n", self._at)) < 0:
            self._check_length()
            if not self._fill():
                end = len(self._text)
                break
        if end == self._at == len(self._text):
            return None
        line = self._text[self._at : end].decode(errors="replace").rstrip("\r")
        self._at = min(end + 1, len(self._text))
        self._lines += 1
        return self._lines, line

    def _check_length(self, quoted: bool = False) -> None:
        if len(self._text) - self._at > LINE_BYTES:
            told = f"it is longer than {LINE_BYTES:,} bytes"
            told += ", or has a quotation mark that none closes" if quoted else ""
            raise self.error(self._lines + 1, told)

    def blocks(self, quoted: bool = False, long_lines: bool = False) -> Iterator[Block]:
        """The lines that are left.

        quoted: a line goes on behind an end of line between quotation marks. long_lines: lines may
        be of any length, and longer ones than BLOCK_BYTES are cut between words.
        """
        while True:
            end = self._end_of_lines(quoted)
            if end <= self._at and long_lines and len(self._text) - self._at > BLOCK_BYTES:
                end = max(self._text.rfind(blank) for blank in (b" ", b"\t")) + 1
            if end <= self._at:
                if not long_lines:
                    self._check_length(quoted)
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
        """Behind the last end of line that is none inside of quotation marks; 0 without one."""
        end = self._text.rfind(b"\n", self._at) + 1
        if quoted and end and self._text.count(b'"', self._at, end) % 2:
            mark = self._text.rfind(b'"', self._at, end)  # which opens what is cut off
            end = self._text.rfind(b"\n", self._at, mark) + 1
        return end
