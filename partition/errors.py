"""The two kinds of failure that a user sees as one line."""

from __future__ import annotations

from collections.abc import Iterable

from .secrets import without_secrets

_LONGEST_NAME = 100
"""Of a name that is compared with others: comparing takes the square of its length."""


def one_line(error: BaseException) -> str:
    """The message of a library's error, without its line breaks."""
    return " ".join(str(error).split())


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: ": did you mean 'x'?", or nothing.

    >>> did_you_mean("pagernk", ["bfs", "pagerank"]), did_you_mean("x", ["bfs"])
    (": did you mean 'pagerank'?", '')
    """
    from difflib import get_close_matches

    near = get_close_matches(name[:_LONGEST_NAME], list(known), n=1)
    return f": did you mean {near[0]!r}?" if near else ""


class DelegraphError(Exception):
    """Something failed while running. The command exits with 1.

    ``retry`` says whether the same command may succeed later. The message shows no secrets of URLs.
    """

    exit_code = 1
    retry = False

    def __init__(self, *told: object) -> None:
        super().__init__(*(without_secrets(some) if type(some) is str else some for some in told))


class InputError(DelegraphError):
    """The input or the request is wrong, and nothing was written. The command exits with 2."""

    exit_code = 2


class BusyError(DelegraphError):
    """Something that the command needs is not available now: another run uses it, or it has not
    started. The same command may succeed later. The command exits with 75 (EX_TEMPFAIL).
    """

    exit_code = 75
    retry = True


class LostError(DelegraphError):
    """A scheduler or a worker is gone, or silent."""

    retry = True


class LostScratchError(DelegraphError):
    """Scratch that a step has left is gone or damaged: what was made of it starts over.

    damage: says what, and where.
    """

    REMEDY = "; run the command again, which starts over"

    @property
    def damage(self) -> str:
        return str(self).removesuffix(self.REMEDY)


class LimitError(InputError):
    """A limit that is too small. What an attempt has finished is still of use with a larger one.

    least: of memory, the bytes that would do; 0 for limits of something else.
    """

    def __init__(self, told: str, least: int = 0) -> None:
        super().__init__(told)
        self.least = least
