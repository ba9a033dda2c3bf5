"""Interchange with other programs: their graph files become edge lists; stores and results become
files of their formats.

Each format has a module. It opens a graph file as a ``GraphFile`` (graph_file.py), which
``edge_list`` reads piece by piece and writes as Parquet.
"""
