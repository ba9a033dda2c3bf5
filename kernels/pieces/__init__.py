"""Visits of edges that are at hand in pieces: all of a subgraph in memory, or a run of pages of it.

What ranks do, and searches of edges on disk; ``pages`` says which pages a level needs.
"""
