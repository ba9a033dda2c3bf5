"""The weights of a graph: how those of duplicates are combined, and facts of all weights, which are
exact in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ...kernels.prepare.weights import EXPONENTS, SUM, Combining, add_weights
from ..input.weights import Duplicates, Rounding, WeightType
from .manifest import WeightInfo

_NONE = 1 << 32
_SCALE = 149  # every 32-bit float is a multiple of 2^-149


class Weighing(NamedTuple):
    """The handling of a graph's weights. kind: their type in the store. duplicates: the rule that
    combines the weights of duplicates.
    """

    kind: WeightType
    duplicates: Duplicates

    @property
    def combining(self) -> Combining:
        return Combining(get_args(Duplicates).index(self.duplicates), self.kind == "float32")


class WeightFacts:
    """The bits of the least and the greatest weight, and the sum of all weights by exponent."""

    def __init__(self, kind: WeightType) -> None:
        self._adding = Combining(SUM, kind == "float32")
        self._least, self._most = _NONE, 0
        self._sums = np.zeros(EXPONENTS, np.int64)

    def add(self, bits: NDArray[np.uint32]) -> None:
        if len(bits):  # bits rise with the weight
            self._least = min(self._least, int(bits.min()))
            self._most = max(self._most, int(bits.max()))
            add_weights(self._adding, bits, True, self._sums)

    def as_array(self) -> NDArray[np.int64]:
        return np.append([self._least, self._most], self._sums)


def weight_info(
    column: str,
    weighing: Weighing,
    facts: Iterable[NDArray[np.int64]],
    count: int,
    rounding: Rounding,
) -> WeightInfo:
    """Return the manifest's facts of weights. facts: of parts of the weights
    (``WeightFacts.as_array``). count: of all weights. rounding: of the input rows' weights when
    they were read.
    """
    parts, changes = list(facts), rounding.as_tuple()
    if not count:
        return WeightInfo(column, *weighing, 0.0, 0.0, 0.0, *changes)
    ends = np.array([min(p[0] for p in parts), max(p[1] for p in parts)], np.uint32)
    least, most = ends.view(weighing.kind).tolist()
    sums = [sum(int(p[2 + e]) for p in parts) for e in range(EXPONENTS)]
    if weighing.kind == "uint32":
        mean = sums[0] / count
    else:
        whole = sum(total << max(e, 1) - 1 for e, total in enumerate(sums))
        mean = whole / (count << _SCALE)
    return WeightInfo(column, *weighing, float(least), float(most), mean, *changes)
