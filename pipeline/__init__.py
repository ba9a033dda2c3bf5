"""Plans and runs: preparation on Dask, supersteps, results, validation, records.

This layer knows no terminal: it reports progress through a callable and returns data.
"""
