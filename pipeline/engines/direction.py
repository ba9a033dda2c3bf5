"""The rule that chooses the direction of a superstep. The work of each direction is in push.py and
pull.py of kernels/bfs.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Direction = Literal["push", "pull"]


class Pullable(NamedTuple):
    """Rows that a pull can still find. rows: the number of unvisited rows that have edges. edges:
    the number of their edges.
    """

    rows: int
    edges: int


PUSH_FACTOR = 0.5
"""Pull when the forward work exceeds this multiple of the expected backward work.

Search times on Kronecker, uniform and grid graphs hardly change between 0.05 and 5
(benchmarks/direction.py): the rule is not sensitive to it.
"""


def choose(forward: int, unvisited: int, unvisited_edges: int) -> Direction:
    """Return "push" or "pull", by comparing the work of both directions.

    forward: edges that leave the frontier (FV of Pan, Pearce, Owens, section IV-B). unvisited:
    unvisited vertices that have incoming edges. unvisited_edges: those incoming edges.

    The paper expects a pull to check |U| / a edges, where a is the chance that a neighbour is in
    the frontier, and derives a from vertex counts. This rule derives a from edge counts:
    ``forward`` of the ``forward + unvisited_edges`` edge ends belong to the frontier. A store that
    places hubs first makes a pull check fewer edges; a pull never checks more than all unvisited
    edges.

    >>> choose(forward=10, unvisited=1000, unvisited_edges=4000)
    'push'
    >>> choose(forward=4000, unvisited=1000, unvisited_edges=4000)
    'pull'
    """
    backward = min(unvisited_edges, unvisited * (forward + unvisited_edges) // max(1, forward))
    return "pull" if forward > PUSH_FACTOR * backward else "push"
