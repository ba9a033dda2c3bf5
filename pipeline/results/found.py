"""What a search finds, and what its supersteps did."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.bfs.state import LevelWork
from ..run.records import SuperstepRecord


@dataclass(frozen=True)
class Found:
    """The outcome of a search.

    distance: int32 (n,), -1 where unreached. parent: uint32 (n,), UNREACHED for the source and
    where unreached.
    """

    distance: NDArray[np.int32]
    parent: NDArray[np.uint32]
    supersteps: list[SuperstepRecord]

    @property
    def reached(self) -> int:
        return 1 + sum(step["found"] for step in self.supersteps)

    @property
    def depth(self) -> int:
        return sum(step["found"] > 0 for step in self.supersteps)


def superstep_record(
    level: int, direction: str, frontier: int, work: LevelWork, seconds: float
) -> SuperstepRecord:
    """The record of a superstep that read nothing from disk and sent nothing."""
    return SuperstepRecord(
        level=level,
        direction={"all": direction},
        frontier=frontier,
        found=work.found,
        edges_examined=work.examined,
        bytes_read=0,
        blocks_skipped=0,
        bytes_sent={},
        seconds=seconds,
    )
