"""Numbers as types of options: whole numbers, and finite numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from ..partition.errors import InputError
from ..partition.numbers import GREATEST, parse_integer, parse_number


class WholeNumber(click.IntRange):
    """A whole number in a range; where the range has no end, a number of 64 bits. (Click's own type
    fails at more than 4,300 digits.)

    limit: the greatest number that is taken, if the help is not to name it. words: words that may
    stand in place of a number.
    """

    def __init__(
        self,
        min: int | None = None,
        max: int | None = None,
        limit: int = GREATEST,
        words: Sequence[str] = (),
    ):
        super().__init__(min, max)
        self._limit = limit
        self._words = words
        name = "integer" if min is None and max is None else "integer range"
        self.name = "|".join([name, *words])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in self._words:
            return value
        if isinstance(value, str):
            limits = -self._limit - 1, self._limit
            value = _number_of(parse_integer, value, *limits, param=param, ctx=ctx)
        return super().convert(value, param, ctx)

    def _describe_range(self) -> str:
        """Return the range for the help; nothing for a range without ends."""
        return "" if self.min is None and self.max is None else super()._describe_range()


class Number(click.FloatRange):
    """A finite number in a range. (Click's own type takes nan and inf.)

    limit: as in WholeNumber. words: words that may stand in place of a number.
    """

    def __init__(
        self,
        min: float | None = None,
        min_open: bool = False,
        limit: float = sys.float_info.max,
        words: Sequence[str] = (),
    ):
        super().__init__(min, min_open=min_open)
        self._limit = limit
        self._words = words
        self.name = "|".join(["float" if min is None else "float range", *words])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in self._words:
            return value
        if isinstance(value, str):
            value = _number_of(parse_number, value, param=param, ctx=ctx)
            if value > self._limit:
                self.fail(f"{value:g} is more than {self._limit:,}", param, ctx)
        return super().convert(value, param, ctx)

    def _describe_range(self) -> str:
        """Return the range for the help, as WholeNumber does."""
        return "" if self.min is None else super()._describe_range()


def _number_of(
    parse: Callable[..., Any],
    text: str,
    *limits: int,
    param: click.Parameter | None,
    ctx: click.Context | None,
) -> Any:
    """Return the number that ``parse`` makes of an option's text. Raises BadParameter where the
    text is no number.
    """
    try:
        return parse(text.strip(), *limits)
    except InputError as error:
        raise click.BadParameter(str(error), ctx, param) from None
