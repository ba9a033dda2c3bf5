"""A backend of NetworkX: its functions, answered by delegraph for a graph that it holds.

    nx.pagerank(G, backend="delegraph")
    nx.config.backend_priority = ["delegraph"]

NetworkX finds the backend by the package's entry points, and nothing else imports it. ``info``
lists the functions, and is read with NetworkX; ``backend`` has the functions; ``converted`` has the
graph.
"""
