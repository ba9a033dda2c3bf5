"""Records held against the types that describe them."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Union, get_args, get_origin, get_type_hints, is_typeddict


def conforms(value, kind) -> bool:
    """Whether a JSON value is what a type says: the keys of a TypedDict, no more and no less."""
    if is_typeddict(kind):
        hints = get_type_hints(kind)
        return (
            isinstance(value, dict)
            and value.keys() == hints.keys()
            and all(conforms(value[name], hint) for name, hint in hints.items())
        )
    origin, args = get_origin(kind), get_args(kind)
    if origin is list:
        return isinstance(value, list) and all(conforms(item, args[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(conforms(item, args[1]) for item in value.values())
    if origin in (Union, UnionType):
        return any(conforms(value, arg) for arg in args)
    if kind in (None, NoneType):
        return value is None
    return type(value) is kind or (kind is float and type(value) is int)
