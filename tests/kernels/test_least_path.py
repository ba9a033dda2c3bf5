"""The definition of the least shortest path, against all paths of small graphs."""

from itertools import pairwise, permutations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from delegraph.kernels.reference import least_shortest_path

VERTICES = 5
ENDS = st.integers(0, VERTICES - 1)
EDGES = st.lists(st.tuples(ENDS, ENDS, st.integers(0, 2)), max_size=14)


def least_of_all(edges: list[tuple[int, int, int]], source: int, target: int) -> list[int]:
    lightest: dict[tuple[int, int], int] = {}
    for u, v, weight in edges:
        lightest[u, v] = min(weight, lightest.get((u, v), weight))
    if source == target:
        return [source]
    between = [v for v in range(VERTICES) if v not in (source, target)]
    found = []
    for count in range(len(between) + 1):
        for inner in permutations(between, count):
            path = [source, *inner, target]
            if all(step in lightest for step in pairwise(path)):
                found.append((sum(lightest[step] for step in pairwise(path)), len(path), path))
    return min(found)[2] if found else []


@given(edges=EDGES, source=ENDS, target=ENDS)
@example(edges=[(0, 1, 0), (1, 0, 0), (1, 2, 0), (2, 1, 0)], source=0, target=2)
@example(edges=[(0, 1, 1), (1, 3, 1), (0, 2, 1), (2, 3, 1), (0, 3, 2)], source=0, target=3)
@example(edges=[(0, 2, 1), (2, 3, 1), (0, 1, 1), (1, 3, 1)], source=0, target=3)
@example(edges=[(0, 1, 1), (1, 4, 1), (4, 2, 1), (0, 3, 1), (3, 1, 0)], source=0, target=2)
@settings(max_examples=100, deadline=None)
def test_is_the_least_of_all_simple_paths(
    edges: list[tuple[int, int, int]], source: int, target: int
) -> None:
    src, dst, weight = np.array(edges, np.int64).reshape(-1, 3).T
    path = least_shortest_path(src, dst, weight, VERTICES, source, target)
    assert path == least_of_all(edges, source, target)
