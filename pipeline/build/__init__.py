"""Builds: an edge list becomes a store, by a plan of steps on CPUs or GPUs. Also the generation of
edge lists.
"""
