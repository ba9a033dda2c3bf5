"""Supersteps of several ranks on CPUs: the subgraphs of a rank, its visits and its messages, by
layout.
"""
