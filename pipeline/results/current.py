"""Checks whether an existing result is the result that a command asks for."""

from __future__ import annotations

import os
from typing import Any

from ...partition.disk.journal import difference
from ...partition.disk.outputs import check_undamaged, read_record
from ...partition.disk.system_errors import raise_failure
from ...partition.disk.urls import AnyPath
from ...partition.errors import InputError
from ..questions.bfs import SuperstepRecord
from ..run.records import AnswerRecord
from .result import Option, ResultInfo, open_result


def wanted_of(info: ResultInfo) -> dict[str, str]:
    """Return the choices that decide a result, by the words that messages use for them."""
    return {
        "the command": info.algorithm,
        "the graph": info.graph,
        "--directed": _option_text(info.directed),
        **{
            f"--{name.replace('_', '-')}": _option_text(value)
            for name, value in info.options.items()
        },
    }


def _option_text(value: Option) -> str:
    """Return the value of an option as text.

    >>> [_option_text(value) for value in (None, True, False, 0.85)]
    ['none', 'given', 'not given', '0.85']
    """
    if isinstance(value, bool):
        return "given" if value else "not given"
    return "none" if value is None else str(value)


def all_supersteps(record: Any, output: AnyPath) -> list[SuperstepRecord]:
    """Return all supersteps of an existing result. Raises InputError if its record lists only some
    of them.
    """
    if record["supersteps_between"] is not None:
        raise InputError(
            f"{output} exists already, and its run record has only the first and last supersteps: "
            "search again with --overwrite, or leave out the file of --profile"
        )
    return record["supersteps"]


def done_already(output: AnyPath, wanted: ResultInfo) -> AnswerRecord:
    """Return the record of an existing result. Raises InputError, which names the difference, if
    another command or another graph has made the result, or if it is damaged.
    """
    info = open_result(output).info
    theirs = {} if info is None else wanted_of(info)
    ours = wanted_of(wanted)
    try:
        record = read_record(output)
        if info is not None and theirs == ours and record["graph"]["fingerprint"] == info.graph:
            check_undamaged(output, record)
            if info.algorithm == "bfs":
                record.setdefault("supersteps_between", None)  # older versions listed all
            return record
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise_failure(os.fspath(output), error)  # else the output is not ours, or gone
    if theirs and theirs["the graph"] != ours["the graph"]:
        theirs["the graph"] = "another one, or one of other weights"
        ours["the graph"] = "this one"
    told = f", from another command: {difference(theirs, ours)}" if theirs != ours else ""
    raise InputError(
        f"{output} exists{told}; name another output, move it away, or replace it with --overwrite"
    )
