"""A rank on a GPU: what it loads of a store and what it leaves, by layout."""
