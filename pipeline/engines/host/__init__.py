"""Engines of one process on CPUs: rows in memory or on disk, searches and programs over them."""
