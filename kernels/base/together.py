"""Constants for searches that share a pass over the edges, each with one bit in a word of every
vertex. They say when sharing pays (pipeline/algorithms/searches.py,
kernels/gpu_programs/searches.py).
"""

WIDTH = 64
"""Number of searches at once: the bits of a word."""

DIGITS = 8
"""Number of bits in which a distance is held at first."""

LEVELS_TO_JUDGE = 16
"""Number of levels after which it is known how often searches meet."""

LEVELS_TO_SEE_GROWTH = 8
"""Number of levels after which it is known, on CPUs, whether the frontier grows slowly: if it has
not become four times as large since half of them, it grows as on a map, and searches that have not
met will not meet soon. (On GPUs levels take too little time for that to matter.)
"""

BITS_TO_PAY = 4
"""Least mean number of bits in a word of the frontier: with fewer, searches together take longer
than each by itself.
"""

RARE = 4096
"""Least number of vertices for one found vertex that makes a search rare. If a search has found
fewer than one in so many vertices, it tells their neighbours of them itself, so that rows that look
for what the other searches have found can stop early.
"""
