"""Each question is declared once, and the lists that are written by hand agree with that."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import click
import pytest

import delegraph
from delegraph.cli.main import cli
from delegraph.pipeline import parameters
from delegraph.pipeline.algorithms import validate
from delegraph.pipeline.bench.algorithms import ALGORITHMS
from delegraph.pipeline.questions import FORMS, QUESTIONS, load
from delegraph.pipeline.run import records

RECORDS: list[Any] = [
    kind
    for name, kind in vars(records).items()
    if name.endswith("RunRecord") or name == "RunRecord"
]


@pytest.mark.parametrize("name", QUESTIONS)
def test_question(name):
    """It is a command, a function, and a method of an open graph, whose options have the same names
    and defaults.
    """
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = {option.name: option for option in command.params}
    function = inspect.signature(getattr(delegraph, name)).parameters
    method = inspect.signature(getattr(delegraph.Graph, name)).parameters
    assert name in delegraph.__all__
    for option, parameter in function.items():
        if option in ("graph", "output", "options"):
            continue
        assert option in options
        if option in method:
            assert method[option].default == parameter.default
        if parameter.default not in (None, inspect.Parameter.empty, False):
            assert options[option].default == parameter.default
    assert QUESTIONS[name].forms[0].name == name


@pytest.mark.parametrize("name", FORMS)
def test_form(name):
    """Its parameters are checked, its record has a type, and its program can be planned."""
    form = FORMS[name]
    assert callable(getattr(parameters, name.replace("-", "_")))
    assert any(form.record in get_type_hints(kind) for kind in RECORDS)
    assert form.program is None or callable(load(form.program))
    assert form.title
    assert form.columns


def test_lists():
    assert validate._JUDGES.keys() == FORMS.keys()
    assert ALGORITHMS.keys() <= QUESTIONS.keys()
