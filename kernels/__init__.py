"""Arrays in, arrays out: the NumPy definition and the backends tested against it.

This layer knows no file and no Dask.
"""
