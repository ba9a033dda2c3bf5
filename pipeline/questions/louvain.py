"""Communities by Louvain's method."""

from __future__ import annotations

from .communities import PARAMETERS, form_of, iterations
from .question import Question

LOUVAIN = Question(
    name="louvain",
    summary="Find communities by Louvain's method: groups with many edges inside.",
    examples=(
        "delegraph louvain edges/ -o communities/",
        "delegraph louvain graph.dg -o communities/ --resolution 0.5",
        "delegraph louvain edges/ -o communities/ --hierarchy",
    ),
    description="""
Vertices move between communities as long as that raises the quality. Then the graph between the
communities is treated likewise, and so on, level by level. A community may fall into pieces that no
edge joins; those of leiden cannot, and are mostly better.

community is the community's least vertex. With --hierarchy, OUTPUT also has the groups of each
level: level_0 the smallest ones, level_1 groups of these, and so on up to the communities.

The same --seed gives the same communities, whatever the
engine, the workers or the threads.

The graph has to be undirected. Rows that repeat an edge count once. Self-loops are left out;
--loops keep counts each twice, as modularity does. If the graph has weights, edges count by their
weights.

The run uses CPUs, also where a GPU is usable.
""",
    about="""
``community`` is the community's least vertex. A community need not be connected, as ``leiden``'s
are. The same ``seed`` gives the same communities on every engine. Edges count by their weights, if
the graph has any. With ``hierarchy``, ``level_0`` is the least vertex of the smallest group that
each vertex is in, ``level_1`` that of a group of these, and so on.
""",
    errors={"InputError": "also if the graph is directed."},
    parameters=(*PARAMETERS[:2], iterations(1), *PARAMETERS[2:]),
    forms=(form_of("louvain", "Communities (Louvain)"),),
    checked_by="quality counted again",
    in_bench=True,
)
