"""How ranks meet, talk and fail: communicators, and one long Dask task for each rank.

Nothing here knows what ranks do together.
"""
