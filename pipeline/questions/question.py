"""The declaration of a question, and of each form that its results have."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal, NamedTuple

ColumnType = Literal["id", "integer", "float", "number"]
"""Types of a result's column: that of the vertices' ids, integers, floats, or either number."""


class Form(NamedTuple):
    """One form of a question, with a result of its own.

    name: in a result's metadata, and in ``plan --algorithm``. title: for people. columns: of the
    result, beside ``vertex``. record: the key of the run record that says what was done. program:
    the function that makes the program of a GraphInfo that ``plan`` plans; None for searches with
    kernels of their own.
    """

    name: str
    title: str
    columns: Mapping[str, ColumnType]
    record: str
    program: str | None


class Question(NamedTuple):
    """A command that asks something of a graph.

    name: of the command, and of the functions in Python. summary: one line of help. forms: the
    first one is the one that has the question's name.
    """

    name: str
    summary: str
    forms: tuple[Form, ...]

    @classmethod
    def of_one_form(
        cls, name: str, title: str, summary: str, columns: Mapping[str, ColumnType], program: str
    ) -> Question:
        """A question whose results are all of one kind, recorded under the question's name."""
        return cls(name, summary, (Form(name, title, columns, name, program),))


def load(reference: str) -> Any:
    """Import what a reference names, such as ``"algorithms.pagerank:planned"`` in the pipeline."""
    module, name = reference.split(":")
    return getattr(import_module(f"..{module}", __package__), name)
