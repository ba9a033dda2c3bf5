"""A sample of a graph around some of its vertices, small enough to draw.

The edges are scanned: once for each step away from the vertices until enough are found, and once
for the edges between those. A scan holds one batch, so the graph may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.team import Team
from ...partition.errors import InputError
from ...partition.input.arrow import as_arrow, as_numpy, compute
from ...partition.input.edges import EdgeList
from ...partition.input.id_types import shown_id, told_id
from ...partition.store.store import Store
from ..results.names import ids_at
from ..results.result import Result
from ..results.store_names import StoreNames

_STEPS = 4
"""Steps away from the first vertices, at most."""

Scan = Callable[[], Iterator[tuple[pa.Array, pa.Array]]]
"""Yields the edges' ends in batches: ids, or places in a store's arrays."""


class Neighbourhood(NamedTuple):
    """A sample of a graph. vertices: ids as JSON shows them; the first ``centres`` ones are those
    that it is around. edges: pairs of places in ``vertices``, each pair once, in either direction.
    """

    vertices: list[Any]
    centres: int
    edges: list[tuple[int, int]]


def neighbourhood(
    graph: Store | EdgeList, result: Result, centres: Sequence[Any], most: int
) -> Neighbourhood:
    """Return a sample of at most ``most`` vertices around ``centres``, ids as JSON shows them.

    Raises InputError for a graph that is not the result's, as far as the result's files tell.
    """
    if isinstance(graph, Store):
        if result.info is not None and result.info.graph != graph.info.fingerprint:
            raise _another(str(graph.path))
        names = StoreNames(graph, Team(1))
        places = [_place(names, centre, str(graph.path)) for centre in centres]

        def batches() -> Iterator[tuple[pa.Array, pa.Array]]:
            for sources, targets in graph.edge_batches(Team(1)):
                yield as_arrow(sources), as_arrow(targets)

        found, edges = _sample(batches, places, most)
        ids = [shown_id(vertex_id) for vertex_id in ids_at(names, found)]
        return Neighbourhood(ids, len(centres), edges)
    keys = [told_id(centre, graph.id_type) for centre in centres]
    digest = f"{graph.fingerprint}-"
    if None in keys or (result.info is not None and not result.info.graph.startswith(digest)):
        raise _another(graph.files[0].path)

    def chunks() -> Iterator[tuple[pa.Array, pa.Array]]:
        for chunk in graph.chunks():
            yield from graph.batches(chunk)

    found, edges = _sample(chunks, keys, most)
    return Neighbourhood([shown_id(vertex_id) for vertex_id in found], len(centres), edges)


def _another(path: str) -> InputError:
    return InputError(
        f"{path} is not the graph of this result: give the graph that it is of, with --weight if "
        "the result goes by weights"
    )


def _place(names: StoreNames, centre: Any, path: str) -> int:
    value = told_id(centre, names.id_type)
    place = None if value is None else names.find(value)
    if place is None:
        raise _another(path)
    return place


def _sample(
    scan: Scan, centres: Sequence[Any], most: int
) -> tuple[list[Any], list[tuple[int, int]]]:
    """Return vertices and, as pairs of their places, the edges between them."""
    chosen: dict[Any, int] = {}
    for centre in centres:
        chosen.setdefault(centre, len(chosen))
    fringe = list(chosen)
    for _ in range(_STEPS):
        if len(chosen) >= most or not fringe:
            break
        by_vertex = _neighbours(scan, fringe, most)
        fringe = []
        # In turn, so that a hub does not leave the others without neighbours.
        for round_ in zip_longest(*by_vertex.values()):
            for vertex in round_:
                if vertex is not None and vertex not in chosen and len(chosen) < most:
                    chosen[vertex] = len(chosen)
                    fringe.append(vertex)
    pairs: set[tuple[int, int]] = set()
    wanted = list(chosen)
    for src, dst in _ends(scan(), wanted, both_ends=True):
        first, second = chosen[src], chosen[dst]
        if first != second:
            pairs.add((min(first, second), max(first, second)))
    return wanted, sorted(pairs)


def _neighbours(scan: Scan, vertices: Sequence[Any], most: int) -> dict[Any, dict[Any, None]]:
    """Return the first neighbours of each vertex, at most ``most``, in the order of the edges."""
    found: dict[Any, dict[Any, None]] = {vertex: {} for vertex in vertices}
    for batch in scan():
        wanting = [vertex for vertex in found if len(found[vertex]) < most]
        if not wanting:
            break
        for src, dst in _ends([batch], wanting, both_ends=False):
            for vertex, neighbour in ((src, dst), (dst, src)):
                if vertex in found and vertex != neighbour and len(found[vertex]) < most:
                    found[vertex][neighbour] = None
    return found


def _ends(
    batches: Iterable[tuple[pa.Array, pa.Array]], vertices: Sequence[Any], both_ends: bool
) -> Iterator[tuple[Any, Any]]:
    """Yield the edges of which both ends, or at least one, are among the vertices."""
    for columns in batches:
        src, dst = (_inside(column, vertices) for column in columns)
        at = as_arrow(np.flatnonzero(src & dst if both_ends else src | dst))
        ends = ((column.take(at)).to_pylist() for column in columns)
        yield from zip(*ends, strict=True)


def _inside(column: pa.Array, vertices: Sequence[Any]) -> NDArray[np.bool_]:
    """Return, for each row, whether its id is among the vertices."""
    import pyarrow.compute as pc  # as arrow.compute has it

    in_words = isinstance(column, pa.DictionaryArray)
    values = column.dictionary if in_words else column
    wanted = pc.SetLookupOptions(pa.array(vertices, values.type))
    inside = compute("is_in", values, options=wanted)
    there = inside.to_numpy(zero_copy_only=False)
    return there[as_numpy(column.indices)] if in_words else there
