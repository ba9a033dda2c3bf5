"""Communities by Leiden's method."""

from __future__ import annotations

from .communities import ITERATIONS, PARAMETERS, form_of, iterations
from .question import Question

LEIDEN = Question(
    name="leiden",
    summary="Find communities by Leiden's method: groups with many edges inside, all connected.",
    examples=(
        "delegraph leiden edges/ -o communities/",
        "delegraph leiden graph.dg -o communities/ --resolution 2 --seed 7",
        "delegraph leiden edges/ -o communities/ --objective cpm --resolution 0.05",
        "delegraph leiden edges/ -o communities/ --hierarchy",
    ),
    description="""
Vertices move between communities as long as that raises the quality. Then each community is divided
into parts, the graph between the parts is treated likewise, and so on, level by level. By default
all this is done twice. Every community is connected.

community is the community's least vertex. With --hierarchy, OUTPUT also has the groups of each
level: level_0 the smallest ones, level_1 groups of these, and so on up to the communities.

The same --seed gives the same communities, whatever the
engine, the workers or the threads. Other seeds give others that are about as good.

The graph has to be undirected. Rows that repeat an edge count once. Self-loops are left out;
--loops keep counts each twice, as modularity does. If the graph has weights, edges count by their
weights.

The run uses CPUs, also where a GPU is usable.
""",
    about="""
``community`` is the community's least vertex, and every community is connected. The same ``seed``
gives the same communities on every engine. Edges count by their weights, if the graph has any. With
``hierarchy``, ``level_0`` is the least vertex of the smallest group that each vertex is in,
``level_1`` that of a group of these, and so on.
""",
    errors={"InputError": "also if the graph is directed."},
    parameters=(*PARAMETERS[:2], iterations(ITERATIONS), *PARAMETERS[2:]),
    forms=(form_of("leiden", "Communities (Leiden)"),),
    checked_by="quality counted again, and connected communities",
    in_bench=True,
)
