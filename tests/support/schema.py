"""Records held against the types that describe records."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, TypedDict, Union, get_args, get_origin, get_type_hints, is_typeddict

from delegraph.pipeline.questions import FORMS
from delegraph.pipeline.run.records import FOUND, AnswerRecord


def run_record(form: str) -> Any:
    """Return the type of a question's run record, by the name of the form."""
    finding = FORMS[form].finding
    found = {"found": FOUND[finding[0]]} if finding else {}
    keys = {**get_type_hints(AnswerRecord), **FORMS[form].facts, **found}
    return TypedDict("RunRecord", keys)  # pyright: ignore - of keys that declarations have


def conforms(value, kind) -> bool:
    """Return whether a JSON value is what a type says, with exactly the keys of a TypedDict."""
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
    if origin is tuple:
        return len(value) == len(args) and all(map(conforms, value, args))
    return kind is Any or type(value) is kind or (kind is float and type(value) is int)
