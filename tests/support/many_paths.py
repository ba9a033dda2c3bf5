"""Graphs with more shortest paths than a 64-bit float can count."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Edges = tuple[NDArray[np.int64], NDArray[np.int64]]


def diamonds(count: int) -> Edges:
    """Return a chain of diamonds: diamond i leads from vertex 3i by 3i + 1 and 3i + 2 to 3i + 3."""
    at = 3 * np.arange(count)
    src = np.concatenate([at, at, at + 1, at + 2])
    return src, np.concatenate([at + 1, at + 2, at + 3, at + 3])


def layers(width: int, count: int) -> Edges:
    """Return layers of vertices, each vertex of which leads to all vertices of the next layer."""
    at = np.arange(width * (count - 1))
    first = (at // width + 1) * width
    src = np.repeat(at, width)
    return src, (first[:, None] + np.arange(width)).ravel()


def layers_beside_a_path(width: int, count: int) -> Edges:
    """Return layers and a path as long as the layers, from the first vertex to the last."""
    src, dst = layers(width, count)
    last = width * count - 1
    path = np.concatenate([[0], last + 1 + np.arange(count - 2), [last]])
    return np.concatenate([src, path[:-1]]), np.concatenate([dst, path[1:]])


def grid(side: int) -> Edges:
    at = np.arange(side * side).reshape(side, side)
    src = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    return src, np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
