"""What a process of a batch keeps of one job for the next: the last engine, with the graph that it
has loaded, or with the workers that it holds.

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


def take_over(engines: Sequence[Engine], limit: int) -> None:
    """Give what is kept to the first of some engines that can use it, or back."""
    for engine in engines:
        if _kept and isinstance(engine, TakesOver) and engine.take_over(_kept):
            if not _fits(engine, limit):
                engine.close()
            break
    give_back()


def _fits(engine: Engine, limit: int) -> bool:
    """As ``choose`` asks of an engine that is not the last one."""
    assert engine.subject is not None
    try:
        need = engine.need()
    except DeviceMemoryError:
        return False
    return fits(max(need.host, engine.subject.writing_bytes(1)) + CODE_BYTES, limit)


def give_back() -> None:
    """What is kept, and what jobs of before have freed."""
    global _kept
    if _kept is not None:
        _kept.close()
    _kept = None
    if KEEP in os.environ:
        return_freed_memory()
