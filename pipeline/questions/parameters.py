"""Parameters of questions: their names, kinds and defaults, and the words about them.

The command's options, the arguments of functions in Python, their checks and their documentation
follow from these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...partition.numbers import GREATEST, GREATEST_SEED


class Whole(NamedTuple):
    """A whole number from ``least`` to ``most``, or one of some words."""

    least: int = 0
    most: int = GREATEST
    words: tuple[str, ...] = ()


class Real(NamedTuple):
    """A finite number, or one of some words."""

    words: tuple[str, ...] = ()


class Flag(NamedTuple):
    """True or false."""


class Choice(NamedTuple):
    """A choice of one of several words."""

    words: tuple[str, ...]


class OneVertex(NamedTuple):
    """The id of a vertex."""


class Vertices(NamedTuple):
    """Ids of vertices, or a Parquet file with the column ``vertex``."""


class SomeVertices(NamedTuple):
    """A number of random vertices, or ids, or a Parquet file with the column ``vertex``."""


class VertexPairs(NamedTuple):
    """Pairs of vertices, or a Parquet file with the columns ``source`` and ``target``."""


class VertexWeights(NamedTuple):
    """A weight for each of some vertices: a Parquet file, or in Python a mapping."""


class SuperstepsFile(NamedTuple):
    """A Parquet file to write, with a row for each superstep."""


Kind = (
    Whole
    | Real
    | Flag
    | Choice
    | OneVertex
    | Vertices
    | SomeVertices
    | VertexPairs
    | VertexWeights
    | SuperstepsFile
)

REQUIRED = ...
"""The default of a parameter that must be given."""


class Parameter(NamedTuple):
    """A parameter of a question.

    help: of the command's option. python: of the argument in Python, where other words are needed.
    alias: another name of the command's option. leads: whether the argument may be given by its
    position.
    written: whether only a call that writes its result takes it.
    """

    name: str
    kind: Kind
    default: Any
    help: str
    python: str = ""
    alias: str = ""
    leads: bool = False
    written: bool = False

    @property
    def option(self) -> str:
        """Return the command's option, such as ``--max-depth``."""
        return "--" + self.name.replace("_", "-")


def max_iterations(most: int) -> Parameter:
    """Return the parameter that ends a run after many iterations, by default after ``most``."""
    told = "Stop after this many iterations, even if the tolerance is not met."
    return Parameter("max_iterations", Whole(1), most, told)


UNWEIGHTED = Parameter("unweighted", Flag(), False, "Ignore the weights of the graph.")


def sources_and_seed(purpose: str, python: str) -> tuple[Parameter, Parameter]:
    """Return the parameters of a question about many vertices that may be asked about some of them.

    purpose: what the vertices are for, in the help of the command; python: in Python.
    """
    ways = "K random ones, ids (one id is written 17,), or a .parquet file with a column vertex."
    return (
        Parameter(
            "sources",
            SomeVertices(),
            None,
            f"{purpose}: {ways}  [default: all]",
            f"{python}: a number of random vertices, some ids, or a Parquet file with a column "
            "``vertex``; None for all vertices.",
        ),
        Parameter(
            "seed",
            Whole(0, GREATEST_SEED),
            1,
            "Seed that chooses the K random vertices.",
            "chooses the random vertices.",
        ),
    )
