"""Turns of a loop that several threads share.

Each thread first takes the turns of its own share. These are the same whenever the loop is run, so
that what the thread wrote is still in its core's cache. Then it takes turns that are left of other
threads' shares.
"""

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .intrinsics import fetch_add


def no_turns(threads: int) -> NDArray[np.int64]:
    """Return the ``taken`` of a loop of which no turns are taken yet.

    int64: the number of threads that have come, and for each share the number of turns that are
    taken.
    """
    return np.zeros(1 + threads, np.int64)


@compiled
def come(taken):
    """Return the number of the calling thread in the loop that ``taken`` belongs to. Each number is
    given once.
    """
    return fetch_add(taken, 0, 1)


@compiled
def take(taken, thread, turns):
    """Return the next turn, of ``turns`` in all, that this thread takes; -1 if there is none."""
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
