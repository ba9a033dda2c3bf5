"""Facts in run records that several questions have, and words about them."""

from __future__ import annotations

from typing import Any, TypedDict


class SourcesRecord(TypedDict):
    """sources: the number of vertices that were searched from."""

    sources: int
    method: str
    edges_examined: int
    bytes_read: int
    bytes_sent: int


class ScoresRecord(TypedDict):
    """change: the sum of what the last iteration changed. converged: whether the run has ended for
    that reason.
    """

    iterations: int
    change: float
    converged: bool
    method: str


class IterationRecord(TypedDict):
    """An iteration. change: the sum of what it changed. seconds: how long the iteration took."""

    iteration: int
    change: float
    edges_examined: int
    bytes_read: int
    bytes_sent: int
    seconds: float


def several(count: int, singular: str, plural: str) -> str:
    """Return a number with its noun.

    >>> several(1, "vertex", "vertices"), several(2000, "vertex", "vertices")
    ('1 vertex', '2,000 vertices')
    """
    return f"{count:,} {singular if count == 1 else plural}"


def plural(noun: str) -> str:
    """Return the plural of a noun.

    >>> plural("community"), plural("label")
    ('communities', 'labels')
    """
    return noun.removesuffix("y") + "ies" if noun.endswith("y") else f"{noun}s"


def tell_number(value: float) -> str:
    """Return a number as text.

    >>> tell_number(45612.0), tell_number(0.5), tell_number(12884901885.0)
    ('45,612', '0.5', '12,884,901,885')
    """
    return f"{value:,.0f}" if value == value // 1 and value < 2**53 else f"{value:g}"


def tell_iterations(facts: Any) -> str:
    """Return the words for a run that repeats a step, of its main facts.

    >>> tell_iterations({"iterations": 2, "change": 0.25, "converged": False})
    '2 iterations, the last one changed 2.5e-01: not converged'
    """
    done = several(facts["iterations"], "iteration", "iterations")
    told = f"{done}, the last one changed {facts['change']:.1e}"
    return f"{told}: not converged" if facts["converged"] is False else told


def tell_recomputed(verdict: Any) -> str:
    """Return the words for a verdict on values of which some were computed again."""
    rows = f"{verdict['rows']:,} of {verdict['vertices']:,} vertices"
    return f"{rows}, {verdict['found_anew']:,} of them computed again{tell_rest(verdict, 'range')}"


def tell_scores_verdict(verdict: Any) -> str:
    """Return the words for a verdict on scores that were computed again."""
    done = several(verdict["iterations"], "iteration", "iterations")
    return f"{verdict['vertices']:,} vertices, computed again in {done}"


def elsewhere(title: str, loops: str = "NetworkX and igraph") -> dict[str, str]:
    """Return what other programs do in a question that adds up over edges (``Form.elsewhere``).

    title: of the question. loops: the programs that count self-loops.
    """
    multigraphs = "igraph, and NetworkX in multigraphs,"
    return {
        "loops": f"{loops} count {{them}} in {title}",
        "duplicates": f"{multigraphs} count each row in {title}",
        "weights": f"{multigraphs} add them up in {title} (--duplicates sum)",
    }


def tell_rest(verdict: Any, quantity: str) -> str:
    """Return the words for the values that were not computed again, with the quantity that they
    were judged by.
    """
    unjudged = verdict["unjudged"]
    return f"; {unjudged:,} values are judged by their {quantity} only" if unjudged else ""
