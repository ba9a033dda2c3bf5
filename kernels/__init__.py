"""Functions that take arrays and return arrays: the NumPy definition, and the backends that are
tested against it.

This layer knows no file and no Dask.
"""
