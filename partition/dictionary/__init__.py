"""The sorted dictionary of ids that are no dense integers, in memory or on disk."""
