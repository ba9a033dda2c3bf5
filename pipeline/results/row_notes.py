"""Lines for the user about self-loops, duplicates and weights of the input. They tell which rows do
not count, which rows other programs count differently, and which weights were rounded because 32
bits do not hold them exactly.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..questions import FORMS
from ..run.records import GraphRecord, WeightsRecord
from .result import ResultInfo

_COMBINED = {"min": "the least", "max": "the greatest", "sum": "the sum"}

SUM_ROUNDING = 2.0**-24
"""Relative error of a sum of weights that is rounded to a 32-bit float."""


def row_notes(graph: GraphRecord, info: ResultInfo | None = None) -> list[str]:
    """Return lines that tell what was done with self-loops, duplicates and weights, if there are
    any. info: of a new result, whose algorithm may ignore weights; None for a store. The record may
    come from an older version whose records lack these facts.
    """
    form = None if info is None else FORMS[info.algorithm]
    elsewhere = {} if form is None else form.elsewhere
    counts_loops = form is None or form.counts_loops
    weights = graph.get("weights") if info is None or _goes_by_weights(info) else None
    lines = [*_loops(graph, elsewhere, counts_loops), *_duplicates(graph, weights, elsewhere)]
    return lines if weights is None else [*lines, *_rounded(graph, weights)]


def _goes_by_weights(info: ResultInfo) -> bool:
    return FORMS[info.algorithm].weights and not info.options.get("unweighted")


def _loops(graph: GraphRecord, elsewhere: Mapping[str, str], can_count: bool) -> list[str]:
    """Return the line about self-loops. can_count: whether they count if the graph keeps them."""
    loops = graph.get("self_loops")
    if not loops:
        return []
    is_single = loops == 1
    line = f"{_of_rows(loops, graph)} {'is a self-loop' if is_single else 'are self-loops'}"
    if can_count and graph.get("loops") is not None:
        return [f"{line}: kept"]
    counted = elsewhere.get("loops")
    if counted is None:
        return [f"{line}: left out"]
    does = "does so with --loops keep" if can_count else "does not"
    return [
        f"{line}: left out; {counted.format(them='it' if is_single else 'them')}, delegraph {does}"
    ]


def _duplicates(
    graph: GraphRecord, weights: WeightsRecord | None, elsewhere: Mapping[str, str]
) -> list[str]:
    duplicates = graph.get("duplicates")
    if not duplicates:
        return []
    repeats = "repeats" if duplicates == 1 else "repeat"
    ways = "" if graph["directed"] else " (u-v and v-u are one)"
    line = f"{_of_rows(duplicates, graph)} {repeats} an edge{ways}: each edge counts once"
    counted = elsewhere.get("duplicates")
    if weights is not None:
        line += f", with {_COMBINED[weights['combined_by']]} of its rows' weights"
        added = weights["combined_by"] == "sum"
        counted = None if added else elsewhere.get("weights")
    return [line if counted is None else f"{line}; {counted}, delegraph does not"]


def _rounded(graph: GraphRecord, weights: WeightsRecord) -> list[str]:
    lines, count = [], weights["rounded"]
    if count:
        was = "was" if count == 1 else "were"
        change = f"the greatest change is {weights['greatest_change']:.2g} of the weight"
        lines.append(f"{count:,} of {graph['rows']:,} weights {was} rounded to 32 bits; {change}")
    sums = weights["kind"] == "float32" and weights["combined_by"] == "sum"
    if sums and graph["duplicates"]:
        lines.append(
            "the sums of weights of rows that repeat an edge are rounded to 32 bits, by "
            f"{SUM_ROUNDING:.2g} of the sum at most"
        )
    return lines


def _of_rows(count: int, graph: GraphRecord) -> str:
    return f"{count:,} of {graph['rows']:,} row{'s'[: graph['rows'] > 1]}"
