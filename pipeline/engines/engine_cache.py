"""A cache of one engine, which keeps its loaded graph for the next run.

An open graph keeps an engine from one question to the next. A process that runs jobs of a batch
keeps one, with its workers, from one job to the next. A process that runs one command keeps
nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ...kernels.gpu.device import DeviceMemoryError
from ...partition.disk.memory import return_freed_memory
from ..run.ending import KEEP
from ..run.plan import fits
from .engine import CODE_BYTES, Engine


@runtime_checkable
class TakesOver(Protocol):
    """An engine that can use the graph that another engine has loaded."""

    def take_over(self, other: Engine) -> bool:
        """Take the graph that ``other`` has loaded, if this engine can use it. Returns whether it
        did; this engine then has less to load, or nothing.
        """
        ...


_kept: Engine | None = None


def put_away(engine: Engine, limit: int) -> None:
    """Put an engine that has run into the cache, or close it. The cache takes it if the process
    keeps engines and the limit leaves room to write a result.
    """
    global _kept
    assert engine.subject is not None
    can_be_kept = KEEP in os.environ and isinstance(engine, TakesOver)
    if can_be_kept and fits(engine.subject.writing_bytes(1), limit):
        _kept = engine
    else:
        engine.close()


def hand_over(engine: Engine | None, engines: Sequence[Engine], limit: int) -> None:
    """Hand the graph of ``engine`` to the first of ``engines`` that can use it, and close
    ``engine``.

    A GPU engine that fits and precedes the first taker stays the first choice: nothing is handed
    over then.
    """
    if engine is None:
        return
    for taker in engines:
        if isinstance(taker, TakesOver) and taker.take_over(engine):
            if not fits_beside(taker, limit):
                taker.close()
            break
        if taker.device is not None and engine.device is None and fits_beside(taker, limit):
            break
    engine.close()


def take_over(engines: Sequence[Engine], limit: int) -> None:
    """Hand the graph of the cached engine to the first of ``engines`` that can use it, and empty
    the cache.
    """
    global _kept
    kept, _kept = _kept, None
    hand_over(kept, engines, limit)
    give_back()


def fits_beside(engine: Engine, limit: int) -> bool:
    """Return whether ``choose`` would take an engine that is not the last one: it fits beside what
    this process holds now.
    """
    writing = 0 if engine.subject is None else engine.subject.writing_bytes(1)
    try:
        need = engine.need()
    except DeviceMemoryError:
        return False
    return fits(max(need.host, writing) + CODE_BYTES, limit)


def give_back() -> None:
    """Close the cached engine, and return memory that earlier jobs have freed to the system."""
    global _kept
    if _kept is not None:
        _kept.close()
    _kept = None
    if KEEP in os.environ:
        return_freed_memory()
