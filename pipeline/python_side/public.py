"""The decorator of public functions: its messages have keywords, and ``progress=True`` is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar, cast

from ...partition.errors import DelegraphError
from .keywords import worded
from .progress import progress_display

P = ParamSpec("P")
R = TypeVar("R")


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function one that people call from Python.

    Errors and notes that leave it have keywords (keywords.py). ``progress=True`` shows a bar, which
    is gone when the function ends.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        display = None
        progress = kwargs.get("progress")
        if isinstance(progress, bool):
            display = progress_display() if progress else None
            cast(dict[str, Any], kwargs)["progress"] = display
        try:
            return _with_worded_notes(function(*args, **kwargs))
        except DelegraphError as error:
            _word(error)
            raise
        finally:
            if display is not None:
                display.finish()

    return call


def _word(error: BaseException | None) -> None:
    """Give an error and its causes keywords."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, DelegraphError):
            error.args = tuple(worded(part) if type(part) is str else part for part in error.args)
        error = error.__cause__


def _with_worded_notes(result: Any) -> Any:
    """Return the outcome of a run, or a list of them, with keywords in its notes; any other result
    unchanged.
    """
    if isinstance(result, list):
        return [_with_worded_notes(item) for item in result]
    if isinstance(result, tuple) and hasattr(result, "notes"):
        named: Any = result
        return named._replace(notes=tuple(map(worded, named.notes)))
    if _has_notes(type(result)):
        outcome: Any = result
        return replace(outcome, notes=tuple(map(worded, outcome.notes)))
    return result


@cache
def _has_notes(kind: type) -> bool:
    return is_dataclass(kind) and any(field.name == "notes" for field in fields(kind))
