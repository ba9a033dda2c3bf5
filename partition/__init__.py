"""Graphs on disk: edges, ids, degrees, order, layout, store.

This layer knows no Dask: everything here is one step of work over arrays and files.
"""
