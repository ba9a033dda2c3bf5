"""Engines that keep what they have loaded while it serves: in an open graph from one question to
the next, and in a process of a batch from one job to the next, with the workers that it holds.

A process that runs one command keeps nothing.
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


def hand_over(engine: Engine | None, engines: Sequence[Engine], limit: int) -> None:
    """Give what an engine has loaded to the first of some engines that can use it, and close it.

    A GPU that would be chosen before is chosen still.
    """
    if engine is None:
        return
    for other in engines:
        if isinstance(other, TakesOver) and other.take_over(engine):
            if not _fits(other, limit):
                other.close()
            break
        if other.device is not None and engine.device is None and _fits(other, limit):
            break
    engine.close()


def take_over(engines: Sequence[Engine], limit: int) -> None:
    """Give what is kept to the first of some engines that can use it, or back."""
    global _kept
    kept, _kept = _kept, None
    hand_over(kept, engines, limit)
    give_back()


def _fits(engine: Engine, limit: int) -> bool:
    """Return whether ``choose`` would take an engine that is not the last one."""
    writing = 0 if engine.subject is None else engine.subject.writing_bytes(1)
    try:
        need = engine.need()
    except DeviceMemoryError:
        return False
    return fits(max(need.host, writing) + CODE_BYTES, limit)


def give_back() -> None:
    """Close the engine that is kept, and return memory that earlier jobs have freed."""
    global _kept
    if _kept is not None:
        _kept.close()
    _kept = None
    if KEEP in os.environ:
        return_freed_memory()
