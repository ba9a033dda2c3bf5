"""Ranks on the workers of a Dask cluster: the client, the job, its two kinds of work, and the
plan.
"""
