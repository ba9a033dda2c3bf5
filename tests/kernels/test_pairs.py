"""Distances between pairs, against their definition."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from delegraph.kernels.pieces.piece import Piece
from delegraph.kernels.programs.pairs import hops_between
from delegraph.kernels.reference import distances

VERTICES = 9
ENDS = st.integers(0, VERTICES - 1)
EDGES = st.lists(st.tuples(ENDS, ENDS), max_size=20)
EVERY = np.indices((VERTICES, VERTICES), np.uint32).reshape(2, -1)


def piece_of(src: np.ndarray, dst: np.ndarray) -> Piece:
    offsets = np.zeros(VERTICES + 1, np.uint32)
    np.cumsum(np.bincount(src, minlength=VERTICES), out=offsets[1:])
    return Piece(offsets, dst[np.argsort(src, kind="stable")].astype(np.uint32), 0, len(src))


@given(edges=EDGES, directed=st.booleans())
@settings(max_examples=100, deadline=None)
def test_hops_between_all_pairs(edges: list[tuple[int, int]], directed: bool) -> None:
    src, dst = np.array(edges, np.int64).reshape(-1, 2).T
    if not directed:
        src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
    hops = np.zeros(VERTICES**2, np.int32)
    levels, queues = np.full((2, VERTICES), -1, np.int32), np.zeros((2, VERTICES), np.uint32)
    hops_between(piece_of(src, dst), piece_of(dst, src), *EVERY, hops, *levels, *queues)
    expected = [distances(src, dst, VERTICES, source, directed=True) for source in range(VERTICES)]
    assert hops.tolist() == np.concatenate(expected).tolist()
    assert (levels == -1).all()
