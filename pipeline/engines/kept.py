"""What a process of a batch keeps of one job for the next: the last engine, with the graph that it
has loaded, or with the workers that it holds.

A process that runs one command keeps nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ...partition.disk.memory import return_freed_memory
from ..run.ending import KEEP
from ..run.plan import fits
from .engine import Engine


@runtime_checkable
class TakesOver(Protocol):
    """An engine that can do with what another one has loaded."""

    def take_over(self, other: Engine) -> bool:
        """Whether it did, and has less to load, or nothing."""
        ...


_kept: Engine | None = None


def put_away(engine: Engine, limit: int) -> None:
    """Close an engine that has run, or keep it, where a result can still be written within the
    limit.
    """
    global _kept
    assert engine.subject is not None
    can_be_kept = KEEP in os.environ and isinstance(engine, TakesOver)
    if can_be_kept and fits(engine.subject.writing_bytes(1), limit):
        _kept = engine
    else:
        engine.close()


def take_over(engines: Sequence[Engine], limit: int) -> None:
    """Give what is kept to the first of some engines that can use it, or back."""
    global _kept
    kept, _kept = _kept, None
    if kept is None:
        return
    for engine in engines:
        if isinstance(engine, TakesOver) and engine.take_over(kept):
            if not fits(engine.need().host, limit):  # with another program
                engine.close()
            break
    kept.close()
    return_freed_memory()
