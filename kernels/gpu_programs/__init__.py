"""Algorithms beside breadth-first search on one GPU: calls of the kernels in cuda/programs/."""
