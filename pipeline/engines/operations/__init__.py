"""Operations that algorithms are written in: vectors of the vertices, products with the edges,
scans of them.

Every engine on CPUs has them, in memory and on disk, of one rank or of several: an algorithm is
written once, over these, and knows nothing of threads, files or ranks.
"""
