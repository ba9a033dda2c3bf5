"""A copy between arrays, for kernels. For an assignment of slices, Numba would compile the text of
an error about unequal lengths, which takes a second of a first run.
"""

from .compiled import compiled


@compiled
def copy_values(values, count, into, at):
    """Copy the first ``count`` values to ``into``, from place ``at`` on."""
    for i in range(count):
        into[at + i] = values[i]
