"""Ranks on GPUs: the parts of a store that a rank loads, and its results, for each layout."""
