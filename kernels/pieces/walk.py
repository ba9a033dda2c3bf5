"""A step of a random walk at each vertex: what PageRank does between two gathers, in one pass."""

import numpy as np

from ..base.compiled import boolean, booleans, f64, f64s, kernel, u32s


@kernel(booleans, f64s, u32s, f64s, f64s, f64, f64, boolean)
@kernel(booleans, f64s, f64s, f64s, f64s, f64, f64, boolean)
def advance(counted, share, degree, came, teleport, damping, anywhere, keeps):
    """Take what came, all of the same length; (change of all ranks, what is lost at ends).

    A vertex has its share times its degree; without edges out of it, its share. counted: of which
    vertices the numbers are added up; (0,) for all. came: sums of shares, 0 afterwards. teleport:
    how likely the walk goes on at each when it teleports, or (0,) and ``anywhere`` is by vertex.
    anywhere: how much teleports. keeps: whether it goes on from vertices without edges.
    """
    change = 0.0
    lost = 0.0
    for i in range(share.shape[0]):
        ends = degree[i] == 0
        shares = 1.0 if ends else np.float64(degree[i])
        rank = damping * came[i] + (anywhere * teleport[i] if teleport.shape[0] else anywhere)
        before = share[i] * shares
        share[i] = rank / shares
        came[i] = 0.0
        if counted.shape[0] == 0 or counted[i]:
            change += abs(rank - before)
            if keeps and ends:
                lost += rank
    return change, lost


@kernel(booleans, f64s, u32s)
@kernel(booleans, f64s, f64s)
def at_ends(counted, share, degree):
    """What vertices without edges out of them have, added up as ``advance`` does it."""
    held = 0.0
    for i in range(share.shape[0]):
        if degree[i] == 0 and (counted.shape[0] == 0 or counted[i]):
            held += share[i]
    return held
