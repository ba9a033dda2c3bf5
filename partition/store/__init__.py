"""Prepared graphs: degrees, order, the place of every edge, shards, the store and reading it."""
