"""Steps from ids and edges to rows, on the CPU: marking, counting, positions, sorting,
generating.
"""
