"""Operations that algorithms are written in: vectors of values of vertices, products of vectors
with the edges, and scans of the edges.

Every engine on CPUs offers them, in memory and on disk, with one rank or several. So an algorithm
is written once, without knowledge of threads, files or ranks.
"""
