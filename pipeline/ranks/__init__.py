"""How ranks meet, communicate and fail: communicators, and one long Dask task for each rank.

This package does not know what work the ranks do together.
"""
