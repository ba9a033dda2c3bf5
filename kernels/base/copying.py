"""A copy between arrays, for kernels: an assignment of slices has Numba compile the text of an
error for other lengths, which takes a second of a first run.
"""

from .compiled import compiled


@compiled
def copy_values(values, count, into, at):
    """Copy the first ``count`` values to ``into``, from place ``at`` on."""
    for i in range(count):
        into[at + i] = values[i]
