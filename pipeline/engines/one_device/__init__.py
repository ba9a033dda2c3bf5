"""Engines of one GPU: searches and programs over a store or an edge list."""
