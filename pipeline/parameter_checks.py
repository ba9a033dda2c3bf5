"""Checks of the values that are given for a question's parameters, and the algorithm of these."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any
from uuid import UUID

from ..partition.disk.urls import AnyPath, is_file_name, named
from ..partition.errors import InputError
from ..partition.numbers import GREATEST, check_number, check_whole, parse_integer, shown
from .algorithms.named_pairs import NamedPairs, PairFile, TypedPairs
from .questions import Form, Question, load
from .questions.parameters import (
    REQUIRED,
    Choice,
    Flag,
    OneVertex,
    Parameter,
    Real,
    SomeVertices,
    VertexPairs,
    VertexWeights,
    Vertices,
    Whole,
)
from .results.weights import NamedVertices, TypedVertices, VertexFile, typed
from .run.resources import as_plain

AnyVertex = int | str | bytes | UUID
"""The id of a vertex. bytes: 16 of them, where the ids of the graph are UUIDs or such bytes."""

AnyVertices = Sequence[AnyVertex] | AnyPath
"""Ids, or text that has ids with commas between them, or a Parquet file with ``vertex``."""

AnyPairs = Iterable[tuple[AnyVertex, AnyVertex]] | AnyPath
"""Pairs of ids, or a Parquet file with ``source`` and ``target``."""

AnySources = int | Sequence[AnyVertex] | PathLike[str] | str
"""A number of vertices drawn at random, or ids, or a Parquet file with ``vertex``."""


def algorithm_of(question: Question, values: Mapping[str, Any]) -> tuple[Form, Any]:
    """Return the form of a question that values ask for, and the algorithm that finds its result.

    values: by the names of parameters. A parameter with its default counts as left out.

    Raises:
        InputError: for a value that is wrong, and for values that exclude each other.
    """
    known = _by_name(question)
    given = given_values(question, values)
    form = question.forms[question.form(given)]
    for first, second in question.conflicts:
        if first in given and second in given:
            options = f"{known[first].option} and {known[second].option}"
            raise InputError(f"{options} exclude each other: leave one out")
    checked = {
        name: _checked(known[name], given[name]) if name in given else _default(known[name])
        for name in question.taken_by(form)
    }
    return form, load(form.algorithm)(**checked)


def given_values(question: Question, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are not the defaults of their parameters, with NumPy's numbers as
    Python's.
    """
    known = _by_name(question)
    plain = ((name, as_plain(value)) for name, value in values.items())
    return {name: value for name, value in plain if not _is_default(value, known[name].default)}


def _by_name(question: Question) -> dict[str, Parameter]:
    return {parameter.name: parameter for parameter in question.parameters}


def _is_default(value: Any, default: Any) -> bool:
    """Return whether a value says no more than its default; tables and mappings compare by
    themselves.
    """
    return value is default or (type(value) is type(default) and bool(value == default))


def _default(parameter: Parameter) -> Any:
    """Return the value of a parameter that is left out; InputError if it must be given."""
    if parameter.default is REQUIRED:
        raise InputError(f"give {parameter.option}")
    return parameter.default


def _checked(parameter: Parameter, value: Any) -> Any:
    """Return a value as algorithms take it; InputError if the parameter has no such value."""
    name = parameter.name
    given: Any = value
    match parameter.kind:
        case Whole(least, most, words):
            if value is None:
                raise InputError(f"{name} must be a whole number, not None")
            if value not in words:
                check_whole(name, value, least, most)
        case Real(words):
            if value not in words:
                check_number(name, value, " or ".join(["a number", *map(repr, words)]))
        case Flag():
            if not isinstance(value, bool):
                raise InputError(f"{name} must be True or False, not {shown(value)}")
        case Choice(words):
            if value not in words:
                known = " or ".join(map(repr, words))
                raise InputError(f"{name} must be {known}, not {shown(value)}")
        case OneVertex():
            return typed(value)
        case Vertices():
            return named_vertices(given)
        case SomeVertices():
            return _some_vertices(given)
        case VertexPairs():
            return _named_pairs(given)
        case VertexWeights():
            if isinstance(value, Mapping):
                return TypedVertices(list(value), name, list(value.values()))
            return VertexFile(named(given), weighted=True)
    return value


def named_vertices(vertices: AnyVertices) -> NamedVertices:
    """Return the vertices that ids, text or a file name.

    Text that ends in ``.parquet`` names a file. Other text has ids with commas between them, and
    may have one at its end.
    """
    if isinstance(vertices, PathLike):
        return VertexFile(named(vertices))
    if isinstance(vertices, str):
        if is_file_name(vertices):
            return VertexFile(named(vertices))
        vertices = vertices.removesuffix(",").split(",") if vertices else []
    if not isinstance(vertices, Iterable):
        raise InputError(
            f"sources must be a list of ids, text such as '17,25', or a file, not {shown(vertices)}"
        )
    return TypedVertices(list(vertices), "--sources")


def _some_vertices(sources: AnySources) -> int | NamedVertices:
    """Return the number of vertices to draw at random, or the vertices that are named."""
    if isinstance(sources, str) and sources.isascii() and sources.isdecimal():
        sources = parse_integer(sources, most=GREATEST)
    if isinstance(sources, int):
        check_whole("sources", sources, 1)
        return sources
    if isinstance(sources, str) and os.path.exists(sources):  # whatever its name
        return VertexFile(named(sources))
    return named_vertices(sources)


def count_of(value: Any) -> int | None:
    """Return the number that a value of a parameter is, or the number of vertices that it names;
    None if that is not known before a file is read.

    >>> count_of(16), count_of("17,25"), count_of([17]), count_of("some.parquet"), count_of(None)
    (16, 2, 1, None, None)
    """
    if isinstance(value, str) and not is_file_name(value):
        parts = value.removesuffix(",").split(",")
        return int(value) if value.isascii() and value.isdecimal() else len(parts)
    if isinstance(value, int):
        return value
    return len(value) if isinstance(value, Sequence) and not isinstance(value, str) else None


def _named_pairs(pairs: AnyPairs) -> NamedPairs:
    """Return the pairs that are given, or that a file has."""
    if isinstance(pairs, str | PathLike):
        return PairFile(named(pairs))
    try:
        ends = [(typed(as_plain(source)), typed(as_plain(target))) for source, target in pairs]
    except (TypeError, ValueError):
        raise InputError(
            f"pairs must be a list of pairs of ids, or a file, not {shown(pairs)}"
        ) from None
    return TypedPairs(ends, "pairs")
