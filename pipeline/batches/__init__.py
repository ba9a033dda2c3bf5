"""Batches: many commands in one file, the order in which they run, and their outcomes."""
