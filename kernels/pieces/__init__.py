"""Visits of edges that are at hand in pieces: all of a subgraph in memory, or a run of pages of it.

What ranks do, one of them or several; ``active`` says which rows and pages a level needs.
"""
