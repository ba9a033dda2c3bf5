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


def tell_recomputed(verdict: Any) -> str:
    """A verdict on values of which some were computed again."""
    rows = f"{verdict['rows']:,} of {verdict['vertices']:,} vertices"
    return f"{rows}, {verdict['found_anew']:,} of them computed again{tell_rest(verdict, 'range')}"


def tell_rest(verdict: Any, quantity: str) -> str:
    """The values that were not computed again, and the quantity that they were judged by."""
    rest = verdict["unjudged"]
    return f"; {rest:,} values are judged by their {quantity} only" if rest else ""
