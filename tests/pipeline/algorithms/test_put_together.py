"""Results that several ranks with a device each found from their own sources join into the result
of one rank.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytest

from delegraph.kernels.base.graph import UNREACHED
from delegraph.pipeline.algorithms.bfs_each import DistanceBits
from delegraph.pipeline.algorithms.bfs_together import NearestSourceProgram
from delegraph.pipeline.engines.operations.program import ProgramResult

VERTICES = 300


def distances(sources: int) -> np.ndarray:
    """Return random distances by source; -1 where unreached."""
    rng = np.random.default_rng(1)
    result = rng.integers(0, 200, (sources, VERTICES))
    result[:, ::7] = -1
    result[: sources // 2] %= 5  # the first ranks need fewer bits
    return result


def record(part: np.ndarray, **more: Any) -> dict[str, Any]:
    reached = int(np.count_nonzero(part >= 0))
    about = {"edges": 10, "sources": len(part), "reached": reached}
    return {**about, "depth": int(part.max(initial=0)), "deeper": False, "apart": False, **more}


def together(part: np.ndarray) -> ProgramResult:
    bits = [np.uint64(1) << np.uint64(i) for i in range(len(part))]

    def words(marked: np.ndarray) -> np.ndarray:
        return sum(
            (bit * row for bit, row in zip(bits, marked, strict=True)),
            np.zeros(VERTICES, np.uint64),
        )

    digits = range(int(part.max(initial=0)).bit_length())
    has = {f"bit{k}": words(((part > 0) & (part >> k & 1)).astype(np.uint64)) for k in digits}
    if not len(part):
        return ProgramResult({}, record(part))
    return ProgramResult({"reached": words((part >= 0).astype(np.uint64)), **has}, record(part))


def apart(part: np.ndarray) -> ProgramResult:
    values = {f"distance{i}": row.astype(np.uint8) for i, row in enumerate(part)}
    return ProgramResult(values, record(part, apart=True))


def put_together(program: Any, results: list[ProgramResult]) -> ProgramResult:
    return reduce(program.put_together, results)


EACH = DistanceBits(np.arange(64, dtype=np.uint32), 8)


@pytest.mark.parametrize("find", [together, apart])
@pytest.mark.parametrize(("sources", "ranks"), [(64, 2), (64, 3), (5, 4), (2, 4), (1, 3)])
def test_searches_each_for_itself(find, sources, ranks):
    whole = distances(sources)
    parts = np.array_split(whole, ranks)
    joined, wanted = put_together(EACH, [find(part) for part in parts]), find(whole)
    assert list(joined.values) == list(wanted.values)
    for name, values in wanted.values.items():
        assert np.array_equal(np.asarray(joined.values[name]), np.asarray(values)), name
    assert joined.record == {**wanted.record, "edges": 10 * ranks}


@pytest.mark.parametrize(
    ("ways", "deeper"),
    [
        ((together, apart, together), False),
        ((apart, together, apart), False),
        ((apart, apart, "deeper"), True),
        (("deeper", together, together), True),
    ],
)
def test_all_search_again_if_one_has_to(ways, deeper):
    parts = np.array_split(distances(9), len(ways))
    too_deep = ProgramResult({}, {"edges": 10, "deeper": True, "apart": ways[0] is apart})
    results = [
        too_deep if way == "deeper" else way(part) for way, part in zip(ways, parts, strict=True)
    ]
    joined = put_together(EACH, results)
    assert not joined.values
    assert joined.record["deeper"] == deeper
    assert joined.record["apart"] == (apart in ways)


def test_the_nearest_of_all():
    """The first rank's source is taken where several sources are equally near."""
    whole = distances(6).astype(np.int32)
    parts, results, first = np.array_split(whole, 4), [], 0
    for part in parts:
        far = np.where(part < 0, 10**6, part)
        reached = far.min(0) < 10**6
        distance = np.where(reached, far.min(0), -1).astype(np.int32)
        nearest = np.where(reached, first + far.argmin(0), UNREACHED).astype(np.uint32)
        results.append(
            ProgramResult({"distance": distance, "nearest": nearest}, {"edges": 10, "depth": 3})
        )
        first += len(part)
    joined = put_together(NearestSourceProgram(np.arange(6, dtype=np.uint32)), results)
    far = np.where(whole < 0, 10**6, whole)
    reached = (whole >= 0).any(0)
    distance, nearest = (np.asarray(joined.values[name]) for name in NearestSourceProgram.columns)
    assert np.array_equal(distance, np.where(reached, far.min(0), -1))
    assert np.array_equal(nearest, np.where(reached, far.argmin(0), UNREACHED))
    count, depth = int(np.count_nonzero(reached)), int(far.min(0)[reached].max())
    assert joined.record == {"edges": 40, "depth": depth, "reached": count}


@pytest.mark.parametrize(("sources", "ranks"), [(64, 3), (2, 4)])
def test_every_source_is_one_ranks(sources, ranks):
    every = np.arange(sources, dtype=np.uint32)
    for program in (DistanceBits(every, 8), NearestSourceProgram(every)):
        dealt = [program.of_rank(rank, ranks).sources for rank in range(ranks)]
        assert np.concatenate(dealt).tolist() == every.tolist()
        assert len(dealt[0]) > 0
