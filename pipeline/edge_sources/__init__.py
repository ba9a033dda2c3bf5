"""Graphs in memory that Python's functions take: tables, sparse matrices, NetworkX graphs, pairs.

``parquet`` writes any of them to a temporary Parquet edge list, batch by batch. ``kinds`` tells
them apart by the modules of their classes, so no library is imported that the caller does not use.
Each other file makes batches of edges from one kind.
"""
