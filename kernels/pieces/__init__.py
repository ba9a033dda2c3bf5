"""Visits of edges that are at hand in pieces: all edges of a subgraph in memory, or a run of its
pages.

This is the work of ranks, one of them or several. ``active`` says which rows and pages a level
needs.
"""
