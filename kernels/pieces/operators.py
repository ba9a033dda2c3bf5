"""Monoids, as types: a matrix-vector product combines the neighbours of a vertex by a monoid.

A kernel that is given a ``Sum`` is compiled for sums: ``combine`` is resolved by the operator's
type, and costs nothing where it stands. So one kernel serves all monoids, at the speed of one
written by hand, and Numba's cache keeps each. (Yang, Buluc, Owens: GraphBLAST, section 3: a product
over a semiring is all that changes between algorithms.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from ..base.compiled import Struct, inlined, u32s, u64s
from ..base.graph import UNREACHED
from ..base.intrinsics import fetch_add, fetch_min, fetch_or, prefetch
from ..base.numbering import renumber
from .piece import weight_of


class Sum(NamedTuple):
    """The sum of 64-bit floats. unit: the neutral value."""

    unit: float = 0.0


class Or(NamedTuple):
    """The union of words of bits. full: all bits wanted; a row that has them needs no more."""

    unit: np.uint64
    full: np.uint64


class ByteOr(NamedTuple):
    """The union of bits, as ``Or``, of one byte a vertex."""

    unit: np.uint8
    full: np.uint8


class WeightedSum(NamedTuple):
    """The sum of values times the weights of edges. floats: whether weights are floats."""

    unit: float
    floats: bool


class IntegerSum(NamedTuple):
    """The sum of unsigned integers of 64 bits, which is exact in any order. unit: zero."""

    unit: np.uint64 = np.uint64(0)


class CountSum(NamedTuple):
    """The sum of unsigned integers of 32 bits: IntegerSum in half the memory. unit: zero."""

    unit: np.uint32 = np.uint32(0)


class Min(NamedTuple):
    """The minimum of words. unit: the greatest word. full: the least possible word."""

    unit: np.uint64
    full: np.uint64


class AmountsWithin(NamedTuple):
    """The sum of what a vertex's edges to vertices with the same value amount to, which depends on
    both ends of an edge. Threads can combine them at once. unit: zero, the value of vertices that
    take no part.
    """

    amounts: Any
    unit: np.uint64 = np.uint64(0)


SUM = Struct(Sum, (types.float64,))
WEIGHTED_SUM = Struct(WeightedSum, (types.float64, types.boolean))
INTEGER_SUM = Struct(IntegerSum, (types.uint64,))
COUNT_SUM = Struct(CountSum, (types.uint32,))
OR = Struct(Or, (types.uint64, types.uint64))
BYTE_OR = Struct(ByteOr, (types.uint8, types.uint8))
MIN = Struct(Min, (types.uint64, types.uint64))


class UnitAmounts(NamedTuple):
    """What edges amount to in a tally if all are alike. each: 1."""

    each: np.uint64 = np.uint64(1)


class ScaledWeights(NamedTuple):
    """What edges amount to in a tally: their weights times ``scale``, a power of two, rounded to
    whole numbers. floats: whether weights are floats.
    """

    scale: float
    floats: bool


class MostCommon(NamedTuple):
    """The rule of a tally that prefers the label with the greatest sum, and of several the least
    label. least: 0, the least sum. (Numba needs a field.)
    """

    least: np.uint64 = np.uint64(0)


class ListedAmounts(NamedTuple):
    """Amounts of edges in a tally that stand in place of their weights: uint64, a whole number each
    (Piece.weights). least: 0, the least amount. (Numba needs a field.)
    """

    least: np.uint64 = np.uint64(0)


class BestGain(NamedTuple):
    """The rule of a tally that prefers the community that a vertex gains most by being in. The gain
    is the sum of its edges to the community, less what the masses make one expect: the vertex's
    mass, times that of the community without the vertex, times ``factor``. Of several the vertex
    prefers the one that it is in, else the one with the least label. NO_LABEL stands for the one
    that it is in, as long as no edge to it is found.

    A gain is one fixed expression of 64-bit floats, so it is the same on every engine.

    numbers: uint32, by place; empty where places are numbers. All other arrays are by number, and
    labels are numbers. mine: uint32, the community of each vertex. mass: uint64, of each vertex.
    totals: uint64, of each community. parts, groups: uint32; empty, or a vertex joins only a
    community whose group is the vertex's part.
    """

    factor: float
    numbers: NDArray[np.uint32]
    mine: NDArray[np.uint32]
    mass: NDArray[np.uint64]
    totals: NDArray[np.uint64]
    parts: NDArray[np.uint32]
    groups: NDArray[np.uint32]


UNIT_AMOUNTS = Struct(UnitAmounts, (types.uint64,))
SCALED_WEIGHTS = Struct(ScaledWeights, (types.float64, types.boolean))
LISTED_AMOUNTS = Struct(ListedAmounts, (types.uint64,))
MOST_COMMON = Struct(MostCommon, (types.uint64,))
BEST_GAIN = Struct(BestGain, (types.float64, u32s, u32s, u64s, u64s, u32s, u32s))

AnySum = Sum | WeightedSum
Amounts = UnitAmounts | ScaledWeights | ListedAmounts
Rule = MostCommon | BestGain
Spread = IntegerSum | CountSum | Or | ByteOr | Min
"""The operators whose values threads can combine at once, so that they can be pushed."""

WholeSum = IntegerSum | CountSum
"""The sums of whole numbers, which are exact in any order."""

Operator = AnySum | Spread

WITHIN = Struct(AmountsWithin, (UNIT_AMOUNTS, types.uint64))
WEIGHTED_WITHIN = Struct(AmountsWithin, (SCALED_WEIGHTS, types.uint64))
LISTED_WITHIN = Struct(AmountsWithin, (LISTED_AMOUNTS, types.uint64))

FOLDS = {
    Sum: np.add,
    WeightedSum: np.add,
    IntegerSum: np.add,
    CountSum: np.add,
    Or: np.bitwise_or,
    ByteOr: np.bitwise_or,
    Min: np.minimum,
    AmountsWithin: np.add,
}
"""The NumPy function by which each operator combines arrays of values."""


TALLIED = {MostCommon, BestGain, UnitAmounts, ScaledWeights, ListedAmounts}
"""The types of amounts and rules, by which tallies are compiled."""


def reads_weights(operator: Any) -> bool:
    """Return whether what an edge gives depends on its weight."""
    amounts = getattr(operator, "amounts", None)
    weighted = WeightedSum | ScaledWeights | ListedAmounts
    return isinstance(operator, weighted) or isinstance(amounts, weighted)


def combine(operator: Any, left: Any, right: Any) -> Any:
    """Combine two values. Only kernels can call this."""
    raise NotImplementedError


def along(operator: Any, value: Any, weights: Any, edge: Any) -> Any:
    """Return the value at an edge's end as the edge passes it on. Only kernels can call this."""
    raise NotImplementedError


def across(operator: Any, here: Any, there: Any, weights: Any, edge: Any) -> Any:
    """Return what an edge gives to one of its ends, by the values at this end and at the other one.
    Only kernels can call this.
    """
    raise NotImplementedError


def takes_part(operator: Any, here: Any) -> Any:
    """Return whether edges give something to a vertex with this value, by AmountsWithin. Only
    kernels can call this.
    """
    raise NotImplementedError


def finished(operator: Any, value: Any) -> Any:
    """Return whether no value that is still to come can change this one. Only kernels can call
    this.
    """
    raise NotImplementedError


def merge(operator: Any, values: Any, place: Any, value: Any) -> bool:
    """Combine a value with an entry of an array that other threads change, too. Returns whether
    this changed the entry. Only kernels can call this.
    """
    raise NotImplementedError


def amount(amounts: Any, weights: Any, edge: Any) -> Any:
    """Return what an edge adds to a sum of a tally: a uint64. Only kernels can call this."""
    raise NotImplementedError


def picker(rule: Any, place: Any) -> Any:
    """Return what a rule knows of the vertex at a place, which picks a label: a tuple, for the
    functions below. Only kernels can call this.
    """
    raise NotImplementedError


def worth(rule: Any, picker: Any, label: Any, total: Any) -> Any:
    """Return what a label, which may be NO_LABEL, is worth to a vertex by its sum. Only kernels can
    call this.
    """
    raise NotImplementedError


def counts_alone(rule: Any, amounts: Any) -> Any:
    """Return whether a rule goes by how many edges have a label alone: all edges are alike, and a
    label is worth nothing else. Only kernels can call this.
    """
    raise NotImplementedError


def fetch_label(rule: Any, places: Any, labels: Any, targets: Any, edge: Any) -> None:
    """Have the cache fetch the label of an edge's target, by BestGain alone: most labels differ at
    first, while those of other rules soon fit the cache. rule: None where there is none. Only
    kernels can call this.
    """
    raise NotImplementedError


def fetch_worth(rule: Any, keys: Any, used: Any, i: Any) -> None:
    """Have the cache fetch what ``worth`` needs to know of the i-th label of a table. Only kernels
    can call this.
    """
    raise NotImplementedError


def may_be_worth(rule: Any, total: Any, least: Any) -> Any:
    """Return whether a label with a sum may be worth ``least``, which costs less than to find out.
    Only kernels can call this.
    """
    raise NotImplementedError


def outranks(picker: Any, label: Any, label_worth: Any, other: Any, other_worth: Any) -> Any:
    """Return whether a vertex prefers a label to another, which may be NO_LABEL. Only kernels can
    call this.
    """
    raise NotImplementedError


@overload(combine)
def _combine(operator, left, right):
    if operator.instance_class in (Or, ByteOr):
        return lambda operator, left, right: left | right
    if operator.instance_class is Min:
        return lambda operator, left, right: min(left, right)
    return lambda operator, left, right: left + right


@overload(along)
def _along(operator, value, weights, edge):
    if operator.instance_class is WeightedSum:
        return lambda operator, value, weights, edge: (
            value * weight_of(weights[np.uintp(edge)], operator.floats)
        )
    return lambda operator, value, weights, edge: value


@overload(across)
def _across(operator, here, there, weights, edge):
    return lambda operator, here, there, weights, edge: (
        amount(operator.amounts, weights, edge) if here == there else operator.unit
    )


@overload(takes_part)
def _takes_part(operator, here):
    return lambda operator, here: here != operator.unit


@overload(finished)
def _finished(operator, value):
    if operator.instance_class in (Or, ByteOr):
        return lambda operator, value: value & operator.full == operator.full
    if operator.instance_class is Min:
        return lambda operator, value: value == operator.full
    return lambda operator, value: False


@overload(merge)
def _merge(operator, values, place, value):
    if operator.instance_class is Min:

        def least(operator, values, place, value):
            return value < values[place] and value < fetch_min(values, place, value)

        return least
    if operator.instance_class in (IntegerSum, CountSum, AmountsWithin):

        def added(operator, values, place, value):
            fetch_add(values, place, value)
            return value != operator.unit

        return added

    def either(operator, values, place, value):
        return bool(value & ~values[place]) and bool(value & ~fetch_or(values, place, value))

    return either


@overload(amount)
def _amount(amounts, weights, edge):
    if amounts.instance_class is UnitAmounts:
        return lambda amounts, weights, edge: amounts.each
    if amounts.instance_class is ListedAmounts:
        return lambda amounts, weights, edge: weights[edge]

    def scaled(amounts, weights, edge):
        return np.uint64(np.rint(weight_of(weights[edge], amounts.floats) * amounts.scale))

    return scaled


@overload(counts_alone)
def _counts_alone(rule, amounts):
    alone = rule.instance_class is MostCommon and amounts.instance_class is UnitAmounts
    return lambda rule, amounts: alone


@inlined
def _float(total):
    """Return a sum, which is below 2^63, as a float: of signed numbers, this is one instruction."""
    return np.float64(np.int64(total))


@overload(picker)
def _picker(rule, place):
    if rule.instance_class is not BestGain:
        return lambda rule, place: ()

    def facts(rule, place):
        number = rule.numbers[place] if rule.numbers.shape[0] else np.uint32(place)
        part = rule.parts[number] if rule.parts.shape[0] else np.uint32(0)
        mass = rule.mass[number]
        mine = rule.mine[number]
        expected = _float(mass) * rule.factor
        stays = expected * _float(rule.totals[mine] - mass)
        return mine, part, expected, stays

    return facts


@overload(worth)
def _worth(rule, picker, label, total):
    if rule.instance_class is not BestGain:
        return lambda rule, picker, label, total: total

    def gain(rule, picker, label, total):
        mine, part, expected, stays = picker
        if label in (mine, UNREACHED):
            return _float(total) - stays
        if rule.groups.shape[0] and rule.groups[label] != part:
            return -np.inf
        return _float(total) - expected * _float(rule.totals[label])

    return gain


@overload(fetch_label)
def _fetch_label(rule, places, labels, targets, edge):
    if isinstance(rule, types.NoneType) or rule.instance_class is not BestGain:
        return lambda rule, places, labels, targets, edge: None
    return lambda rule, places, labels, targets, edge: prefetch(
        labels, np.intp(renumber(places, targets[edge]))
    )


@overload(fetch_worth)
def _fetch_worth(rule, keys, used, i):
    if rule.instance_class is not BestGain:
        return lambda rule, keys, used, i: None

    def fetch_total(rule, keys, used, i):
        at = np.uintp(used[i])
        prefetch(rule.totals, np.intp(keys[at] if keys.shape[0] else np.uint32(at)))

    return fetch_total


@overload(may_be_worth)
def _may_be_worth(rule, total, least):
    if rule.instance_class is not BestGain:
        return lambda rule, total, least: total >= least
    return lambda rule, total, least: _float(total) >= least  # expectations are not negative


@overload(outranks)
def _outranks(picker, label, label_worth, other, other_worth):
    if not len(picker):

        def least(picker, label, label_worth, other, other_worth):
            return label_worth > other_worth or (label_worth == other_worth and label < other)

        return least

    def mine_or_least(picker, label, label_worth, other, other_worth):
        if label_worth != other_worth:
            return label_worth > other_worth
        mine = picker[0]
        if other in (mine, UNREACHED):
            return False
        return label == mine or label < other

    return mine_or_least
