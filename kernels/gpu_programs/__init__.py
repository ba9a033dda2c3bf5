"""Algorithms beside breadth-first search, on one GPU or on ranks with one each: calls of the
kernels in cuda/programs/.
"""
