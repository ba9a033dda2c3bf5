"""Graphs on disk: edges, ids, degrees, order, layout, store.

This layer does not know Dask: every function does one step of work over arrays and files.
"""
