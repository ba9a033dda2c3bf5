"""Communication of ranks: how they meet, exchange messages and fail. A rank is one long Dask task.

This package does not know the work that ranks do together.
"""
