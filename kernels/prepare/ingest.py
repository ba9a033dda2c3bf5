"""Conversion of ids as they come from a file to dense ids: 32 bits a vertex, marked as present."""

import numpy as np

from ..base.compiled import Several, i64, kernel, u8s, u32s


@kernel(Several("ids", read_only=True), i64, u32s, u8s)
def take_dense(ids, domain, dense, present):
    """Copy integer ids that lie in ``[0, domain)`` into ``dense`` (uint32) and mark them.

    present: uint8 (domain,); several threads may mark it at once. (0,): nothing is marked.
    Returns the place of the first id outside the domain, or -1.
    """
    marks = present.shape[0] > 0
    for i in range(ids.shape[0]):
        v = ids[i]
        if v < 0 or v >= domain:
            return i
        dense[i] = np.uint32(v)
        if marks:
            present[v] = 1
    return -1
