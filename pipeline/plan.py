"""Bytes that each step of preparation holds, from counts known before it runs."""

from __future__ import annotations

from dataclasses import dataclass

_PAIR = 8  # a row as two dense ids
_KEY = 8
_TARGET = 4
_VERTEX_STATE = 24  # degree, ranks and their inverses, and what sorting them needs
_DECODE = 64 << 20  # a task's batch while it is read, and what Arrow keeps for the next


@dataclass(frozen=True)
class BuildBytes:
    """Bytes held by each step of an in-memory build, without the process's own baseline.

    rows: of the input. domain: dense ids lie below it. directions: keys a row becomes: 2 (an
    undirected edge, or a directed one and its reverse).
    """

    rows: int
    domain: int
    threads: int
    directions: int = 2

    @property
    def read(self) -> int:
        return _PAIR * self.rows + self.domain + self.threads * _DECODE

    @property
    def degrees(self) -> int:
        return _PAIR * self.rows + (4 * self.threads + _VERTEX_STATE) * self.domain

    @property
    def scatter(self) -> int:
        return (_PAIR + _KEY * self.directions) * self.rows + _VERTEX_STATE * self.domain

    @property
    def build(self) -> int:
        return (_KEY + _TARGET) * self.directions * self.rows + _VERTEX_STATE * self.domain
