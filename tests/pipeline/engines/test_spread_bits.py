"""Bits that are spread along edges, as words and as bytes, against their definition: pushed from
few vertices and pulled from many, every layout, any number of ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from delegraph.kernels.pieces.operators import ByteOr, Or
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.operations.operations import Calls, Operations
from delegraph.pipeline.engines.operations.program import ProgramResult, Tell
from delegraph.pipeline.engines.operations.vectors import Counts, VectorType
from support.graphs import edges_of, random_edges
from support.marks import mostly_slow
from support.programs import run_program, stored

OPERATORS: dict[str, tuple[Any, Any]] = {
    "words": (Or(np.uint64(0), np.uint64(0xFFFF)), np.uint64),
    "bytes": (ByteOr(np.uint8(0), np.uint8(0xFF)), np.uint8),
}

PLACES: dict[str, tuple[Any, int, int, bool]] = {
    "memory": ("1d", 1, 1, False),
    "ranks": ("1d", 3, 2, False),
    "delegates": ("delegate", 3, 3, False),
    "grid": ("2d", 4, 4, False),
    "disk": ("1d", 1, 1, True),
    "delegates on disk": ("delegate", 3, 2, True),
}
"""Layouts, numbers of partitions and of ranks, and whether edges are on disk."""


@dataclass(frozen=True)
class SpreadBits:
    """A program that spreads bits. steps: for each spread, the vertices that have bits, by rising
    global id, and the bits.
    """

    operator: Any
    dtype: Any
    steps: Sequence[tuple[np.ndarray, np.ndarray]]
    columns = ("bits",)
    weighted = scans_once = False

    @property
    def calls(self) -> Calls:
        return Calls((type(self.operator),))

    def held_bytes(self, counts: Counts) -> int:
        return 0

    def run(self, operations: Operations, tell: Tell) -> ProgramResult:
        kind = VectorType(self.dtype, ghosts=True)
        x, y = operations.vector(kind), operations.vector(kind)
        for vertices, bits in self.steps:
            operations.put(x, vertices, bits)
            places = operations.where(x)
            operations.spread(self.operator, x, y, True, places)
            assert not any(part.any() for part in (*x.ghosts.values(), *y.ghosts.values()))
            x.fill(0, places)
        return ProgramResult({"bits": y}, {})


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("place", mostly_slow(PLACES, "disk", "delegates"))
@pytest.mark.parametrize("directed", [False, True])
def test_bits(tmp_path, name, place, directed):
    operator, dtype = OPERATORS[name]
    layout, partitions, ranks, on_disk = PLACES[place]
    options = BuildOptions(partitions=partitions, layout=layout, directed=directed)
    store = stored(tmp_path, *random_edges(3, 500, 1500), options)
    n, rng, steps = store.info.vertices, np.random.default_rng(1), []
    u, v = edges_of(store)
    wanted = np.zeros(n, dtype)
    for count in (3, n // 2):  # pushed, and pulled
        vertices = np.sort(rng.choice(n, count, replace=False)).astype(np.uint32)
        bits = (1 << rng.integers(0, 8, count)).astype(dtype)
        x = np.zeros(n, dtype)
        x[vertices] = bits
        np.bitwise_or.at(wanted, v, x[u])
        steps.append((vertices, bits))
    program = SpreadBits(operator, dtype, steps)
    columns, _ = run_program(store, program, tmp_path / "out", ranks, on_disk=on_disk)
    assert columns["bits"].dtype == dtype
    assert (columns["bits"] == wanted).all()
