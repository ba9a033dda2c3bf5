"""A backend of NetworkX: its functions, asked of a graph that delegraph holds.

    nx.pagerank(G, backend="delegraph")
    nx.config.backend_priority = ["delegraph"]

NetworkX finds it by the entry points of the package and alone imports it. ``info`` says what there
is, and is read with NetworkX; ``backend`` are the functions; ``converted`` is the graph.
"""
