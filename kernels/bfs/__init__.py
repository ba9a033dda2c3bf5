"""Breadth-first search in memory on the CPU: push and pull along rows, scans of edges in no order.

``check`` has the rules (Graph500's) that make a result right.
"""
