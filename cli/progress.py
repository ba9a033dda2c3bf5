"""Progress of a command, for a person or for a program."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

from ..pipeline.run.progress_line import ProgressLine
from . import events


@contextlib.contextmanager
def shown(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Yield the function that a command calls with its progress: for people or, as events, for
    programs.
    """
    if quiet and not events.are_wanted():
        # Of what is told when it happens, as that a search begins again.
        logging.getLogger("delegraph").setLevel(logging.CRITICAL)
    with ProgressLine(quiet or events.are_wanted()) as line, events.of_progress() as told:

        def tell(step: str, done: int, total: int) -> None:
            line(step, done, total)
            told(step, done, total)

        yield tell
