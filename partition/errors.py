"""The errors that a user sees as one line, each with its exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .secrets import without_secrets

_LONGEST_NAME = 100
"""Most characters of a name that is compared with known names: comparing takes time quadratic in
its length.
"""


def one_line(error: BaseException) -> str:
    """Return the message of a library's error without line breaks."""
    return " ".join(str(error).split())


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: ": did you mean 'x'?", or an empty text if
    no known name is similar.

    >>> did_you_mean("pagernk", ["bfs", "pagerank"]), did_you_mean("x", ["bfs"])
    (": did you mean 'pagerank'?", '')
    """
    from difflib import get_close_matches

    near = get_close_matches(name[:_LONGEST_NAME], list(known), n=1)
    return f": did you mean {near[0]!r}?" if near else ""


class DelegraphError(Exception):
    """The base error: something failed while running. The command exits with 1.

    retry: whether the same command may succeed later. The message shows no secrets of URLs.
    """

    exit_code = 1
    retry = False

    def __init__(self, *told: object) -> None:
        super().__init__(*(without_secrets(part) if type(part) is str else part for part in told))


class InputError(DelegraphError):
    """The error that the input or the request is wrong, and nothing was written. The command exits
    with 2.
    """

    exit_code = 2


class BusyError(DelegraphError):
    """The error that something which the command needs is not available now: another run uses it,
    or it has not started. The same command may succeed later. The command exits with 75
    (EX_TEMPFAIL).
    """

    exit_code = 75
    retry = True


class LostError(DelegraphError):
    """The error that a scheduler or a worker is gone, or silent."""

    retry = True


class LostScratchError(DelegraphError):
    """The error that scratch files of a finished step are gone or damaged: the work that needs them
    starts over.

    damage: the damaged file, and what is wrong with it.
    """

    REMEDY = "; run the command again, which starts over"

    @property
    def damage(self) -> str:
        return str(self).removesuffix(self.REMEDY)


class LimitError(InputError):
    """The error that a limit is too small. The finished steps of the attempt can be reused with a
    larger limit.

    least: the bytes of memory that would do; 0 for a limit of something else.
    """

    def __init__(self, told: str, least: int = 0) -> None:
        super().__init__(told)
        self.least = least


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise InputError unless the value of an option is one of its choices."""
    if value not in choices:
        raise InputError(f"{name} is one of {', '.join(choices)}, not {value!r}")
