"""The definition of communities (algorithms/community_search.py), in plain Python: every round of
every level, which all engines are tested against.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

CLASSES = 8


def class_of(number: int, stamp: int) -> int:
    """Return the class of a vertex in a round: three bits of MurmurHash3's finalizer (Appleby)."""
    word = (1 << 64) - 1
    hashed = (number + stamp) & word
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        hashed ^= hashed >> 33
        hashed = hashed * factor & word
    return hashed >> 61


class Weighted(NamedTuple):
    """A graph of communities: what the edges of each vertex to each neighbour amount to, and those
    inside it in both directions; its mass.
    """

    edges: list[dict[int, int]]
    inside: list[int]
    mass: list[int]


def communities(
    graph: Weighted,
    factor: float,
    refines: bool,
    iterations: int,
    max_levels: int,
    stamp: Callable[[int, int, str, int], int],
    few: int = 1000,
    growth: int = 2,
    most_rounds: int = 100,
    most_joins: int = 20,
) -> tuple[list[int], list[list[int]]]:
    """Return the community of each vertex, by its least vertex (algorithms/community_search.py),
    and the same of the groups of each level of its hierarchy.

    factor: what is expected of two vertices, by the product of their masses. refines: whether
    communities are divided into parts, as Leiden does. stamp: of an iteration, a level, "move" or
    "join" and a round.
    """
    found, hierarchy = list(range(len(graph.mass))), []
    for iteration in range(iterations):
        before, level, label, up, moves = found, graph, found, list(range(len(found))), 0
        hierarchy = []
        for depth in range(max_levels):
            n = len(level.mass)
            label, marked = list(label), [bool(edges) for edges in level.edges]
            fewest = n + 1
            for number in range(most_rounds):
                moved = _move(level, factor, label, marked, stamp(iteration, depth, "move", number))
                moves += moved
                if moved * few <= n or moved >= growth * fewest:
                    break
                fewest = min(fewest, moved)
            parts = label
            if refines:
                parts, alone = list(range(n)), _tied(level, factor, label)
                for number in range(most_joins):
                    seed = stamp(iteration, depth, "join", number)
                    if not _join(level, factor, label, parts, alone, seed):
                        break
            names = sorted(set(parts))
            is_last = len(names) == n or depth + 1 == max_levels
            if is_last and refines:
                label = _split(level, label)
            found = [label[v] for v in up]
            if is_last:
                break
            number_of = {name: i for i, name in enumerate(names)}
            above = [number_of[part] for part in parts]
            level = _contracted(level, above, len(names))
            label = _least({above[v]: label[v] for v in range(n)})
            up = [above[v] for v in up]
            groups = _least(dict(enumerate(up)))
            if not hierarchy or 2 * len(set(groups)) <= len(set(hierarchy[-1])):
                hierarchy.append(groups)
        found = _least(dict(enumerate(found)))
        if hierarchy and len(set(hierarchy[-1])) == len(set(found)):
            hierarchy.pop()
        if not moves and found == before:
            break
    return found, hierarchy


def _least(label: dict[int, int]) -> list[int]:
    """Return labels, each by the least vertex that has it."""
    first: dict[int, int] = {}
    for v in range(len(label)):
        first.setdefault(label[v], v)
    return [first[label[v]] for v in range(len(label))]


def _split(level: Weighted, label: list[int]) -> list[int]:
    """Return communities divided into their connected parts."""
    part = list(range(len(label)))
    for _ in label:
        for v, edges in enumerate(level.edges):
            part[v] = min([part[v], *(part[u] for u in edges if label[u] == label[v])])
    return part


def _totals(level: Weighted, label: list[int]) -> dict[int, int]:
    totals: dict[int, int] = {}
    for v, mine in enumerate(label):
        totals[mine] = totals.get(mine, 0) + level.mass[v]
    return totals


def _best(
    level: Weighted,
    factor: float,
    v: int,
    label: list[int],
    totals: dict[int, int],
    allowed: Callable[[int], bool],
) -> int:
    """Return the community that a vertex gains most by being in; of several its own, else the
    least.
    """
    sums = {label[v]: 0}
    for u, amount in level.edges[v].items():
        sums[label[u]] = sums.get(label[u], 0) + amount
    expected = float(level.mass[v]) * factor
    best = []
    for other, total in sums.items():
        if other == label[v]:
            gain = float(total) - expected * float(totals[other] - level.mass[v])
            best.append((-gain, 0, other))
        elif allowed(other):
            best.append((-(float(total) - expected * float(totals[other])), 1, other))
    return min(best)[2]


def _move(level: Weighted, factor: float, label: list[int], marked: list[bool], stamp: int) -> int:
    moved, listed = 0, [v for v, is_marked in enumerate(marked) if is_marked]
    for i in range(CLASSES):
        totals = _totals(level, label)
        movers = [v for v in listed if class_of(v, stamp) == i]
        picks = [_best(level, factor, v, label, totals, lambda _: True) for v in movers]
        for v in movers:
            marked[v] = False
        moves = [(v, pick) for v, pick in zip(movers, picks, strict=True) if pick != label[v]]
        for v, pick in moves:
            label[v] = pick
        for v, _ in moves:
            for u in level.edges[v]:
                marked[u] = True
        moved += len(moves)
    return moved


def _tied(level: Weighted, factor: float, label: list[int]) -> list[bool]:
    """Return which vertices are tied to their communities as well as expected."""
    totals, tied = _totals(level, label), []
    for v, edges in enumerate(level.edges):
        within = sum(amount for u, amount in edges.items() if label[u] == label[v])
        rest = float(totals[label[v]] - level.mass[v])
        tied.append(within > 0 and float(within) >= float(level.mass[v]) * factor * rest)
    return tied


def _join(
    level: Weighted,
    factor: float,
    label: list[int],
    parts: list[int],
    alone: list[bool],
    stamp: int,
) -> int:
    joined = 0
    for i in range(CLASSES):
        totals = _totals(level, parts)
        joining = [v for v, is_alone in enumerate(alone) if is_alone and class_of(v, stamp) == i]
        picks = []
        for v in joining:

            def allowed(part: int, v: int = v, joining: list[int] = joining) -> bool:
                return label[part] == label[v] and part not in joining

            picks.append(_best(level, factor, v, parts, totals, allowed))
        for v, pick in zip(joining, picks, strict=True):
            if pick != v:
                parts[v] = pick
                alone[v] = alone[pick] = False
                joined += 1
    return joined


def _contracted(level: Weighted, above: list[int], count: int) -> Weighted:
    graph = Weighted([{} for _ in range(count)], [0] * count, [0] * count)
    for v, number in enumerate(above):
        graph.inside[number] += level.inside[v]
        graph.mass[number] += level.mass[v]
        for u, amount in level.edges[v].items():
            if above[u] == number:
                graph.inside[number] += amount
            else:
                edges = graph.edges[number]
                edges[above[u]] = edges.get(above[u], 0) + amount
    return graph
