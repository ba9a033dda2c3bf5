"""Turns of a loop that several threads share.

Each thread takes those of its own share first, the same ones whenever the loop is run, so that what
it wrote is still in its core's cache; and then what is left of others'.
"""

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .intrinsics import fetch_add


def no_turns(threads: int) -> NDArray[np.int64]:
    """That none are taken yet: the ``taken`` of a loop.

    int64: threads that have come, and of each share the turns that are taken.
    """
    return np.zeros(1 + threads, np.int64)


@compiled
def come(taken):
    """The calling thread's number, of the loop that ``taken`` is of: it is given once."""
    return fetch_add(taken, 0, 1)


@compiled
def take(taken, thread, turns):
    """The next turn, of so many, that this thread takes; -1 if there is none."""
    shares = taken.shape[0] - 1
    for i in range(shares):
        share = (thread + i) % shares
        first = turns * share // shares
        count = turns * (share + 1) // shares - first
        if taken[1 + share] < count:
            turn = fetch_add(taken, 1 + share, 1)
            if turn < count:
                return first + turn
    return -1
