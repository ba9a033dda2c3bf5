"""Searches that share a pass over the edges, a bit each of a word of every vertex: when that pays
(pipeline/algorithms/searches.py, kernels/gpu_programs/searches.py).
"""

WIDTH = 64
"""Searches at once: bits of a word."""

DIGITS = 8
"""Bits in which a distance is held at first."""

LEVELS_TO_JUDGE = 16
"""After so many it is known how often searches meet."""

LEVELS_TO_SEE_GROWTH = 8
"""After so many it is known, on CPUs, where the frontier has not become four times as large since
half of them: so it grows on a map, and searches that have not met will not soon. (On GPUs levels
take too little for that to matter.)"""

BITS_TO_PAY = 4
"""Least mean number of bits in a word of the frontier: with fewer, searches together take longer
than each by itself.
"""

RARE = 4096
"""A search that has found less than one in so many vertices tells their neighbours of them itself,
so that rows that look for what the others have found can stop early."""
