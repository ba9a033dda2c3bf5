"""Which direction a superstep takes: choice only; the work is in push.py and pull.py of
kernels/bfs.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Direction = Literal["push", "pull"]


class Pullable(NamedTuple):
    """Rows that have edges, and those edges: what a pull can still find."""

    rows: int
    edges: int


PUSH_FACTOR = 0.5
"""Pull when the forward work exceeds this multiple of the expected backward work.

Search times on Kronecker, uniform and grid graphs hardly change between 0.05 and 5
(benchmarks/direction.py): the rule is not sensitive to it.
"""


def choose(forward: int, unvisited: int, unvisited_edges: int) -> Direction:
    """Push or pull, from the work that each would have.

    forward: edges that leave the frontier (FV of Pan, Pearce, Owens, section IV-B).
    unvisited: vertices not visited that have incoming edges; unvisited_edges: those edges.

    The paper expects |U| / a checks of a pull, a being the chance that a neighbour is in the
    frontier, which it takes from vertex counts. Here a counts edges: of the ends of
    unvisited vertices' edges and the frontier's own, the frontier holds ``forward``. With hubs
    stored first a pull checks fewer, and never more than all unvisited edges.

    >>> choose(forward=10, unvisited=1000, unvisited_edges=4000)
    'push'
    >>> choose(forward=4000, unvisited=1000, unvisited_edges=4000)
    'pull'
    """
    backward = min(unvisited_edges, unvisited * (forward + unvisited_edges) // max(1, forward))
    return "pull" if forward > PUSH_FACTOR * backward else "push"
