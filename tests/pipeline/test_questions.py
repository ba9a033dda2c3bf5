"""Each question is declared once; functions, methods, options and judges follow from that."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph
from delegraph.cli.main import cli
from delegraph.cli.questions import command_of
from delegraph.pipeline.judging.judge import Judge
from delegraph.pipeline.parameter_checks import algorithm_of
from delegraph.pipeline.questions import FORMS, QUESTIONS, load
from delegraph.pipeline.questions.parameters import REQUIRED, Choice, Flag, Parameter, Real, Whole
from support import python_functions

ANY: Any = delegraph
"""The package, as a type whose functions accept arguments that type checkers refuse."""

EDGES = pa.table({"src": [1, 2, 3, 5], "dst": [2, 3, 4, 6], "w": [1, 1, 1, 1]})


def test_signatures_are_as_declared():
    for path, made in (
        (python_functions.FUNCTIONS, python_functions.functions()),
        (python_functions.METHODS, python_functions.methods()),
    ):
        written = ast.dump(ast.parse(path.read_text()))
        assert written == ast.dump(ast.parse(made)), "run tests/support/python_functions.py"


@pytest.mark.parametrize("name", QUESTIONS)
def test_question(name):
    """A question's command, function and method have the same parameters and defaults."""
    question = QUESTIONS[name]
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = {option.name: option for option in command.params}
    function = inspect.signature(getattr(delegraph, name)).parameters
    method = inspect.signature(getattr(delegraph.Graph, name)).parameters
    assert question.forms[0].name == name
    for each in question.parameters:
        default = inspect.Parameter.empty if each.default is REQUIRED else each.default
        assert function[each.name].default == default
        assert (each.name in method) != each.written
        if default not in (None, False, inspect.Parameter.empty):
            assert options[each.name].default == default


@pytest.mark.parametrize("name", FORMS)
def test_form(name):
    """References of a form lead to an algorithm, a program and a judge."""
    form = FORMS[name]
    assert callable(load(form.algorithm))
    assert form.program is None or callable(load(form.program))
    assert isinstance(load(form.judge), Judge)


@pytest.mark.parametrize("name", ["components", "pagerank", "betweenness", "closeness"])
def test_result_in_memory(tmp_path, name):
    """A result in memory of a table or a path, without an output, has the rows of the folder."""
    pq.write_table(EDGES, tmp_path / "edges.parquet")
    ask = getattr(delegraph, name)
    written = ask(tmp_path / "edges.parquet", output=tmp_path / "out")
    assert written.record[name] == ask(EDGES, output=tmp_path / "again").record[name]
    for graph in (tmp_path / "edges.parquet", EDGES):
        result = ask(graph, device="cpu")
        assert result.table.equals(
            pq.read_table(tmp_path / "out").select(result.table.column_names)
        )


def test_searches_in_memory():
    result = delegraph.bfs(EDGES, 1)
    assert result.distance.to_pylist() == [0, 1, 2, 3, None, None]
    assert delegraph.bfs(EDGES, sources=[1, 5]).table.num_rows == 6
    assert delegraph.bfs(EDGES, sources="1,5", together=True)["nearest"].null_count == 0
    assert delegraph.sssp(EDGES, 1, weight="w")["distance"].to_pylist()[:4] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("ask", "reason"),
    [
        (lambda: ANY.bfs(EDGES), "give either source= or sources="),
        (lambda: ANY.bfs(EDGES, 1, sources=[2]), "give either source= or sources="),
        (lambda: ANY.bfs(EDGES, 1, together=True), "together=True needs sources="),
        (lambda: ANY.bfs(EDGES, sources=[1], strategy="rows"), "need a search from one"),
        (lambda: ANY.bfs(EDGES, 1, strategy="rows"), "strategy needs an output"),
        (lambda: ANY.bfs(EDGES, 1, workers=2), "workers needs an output"),
        (
            lambda: ANY.bfs(EDGES, 1, scratch="x", profile="y"),
            "profile, scratch need an output",
        ),
        (
            lambda: ANY.pagerank(EDGES, iterations=2, tolerance=0.1),
            "iterations= and tolerance= exclude each other",
        ),
        (lambda: ANY.pagerank(EDGES, dangling="odd"), "must be 'even' or 'none', not 'odd'"),
        (lambda: ANY.pagerank(EDGES, unweighted=2), "must be True or False, not 2"),
        (lambda: ANY.closeness(EDGES, seed=None), "seed must be a whole number, not None"),
    ],
)
def test_values_that_are_refused(ask, reason):
    with pytest.raises(delegraph.InputError) as raised:
        ask()
    assert reason in str(raised.value)


def test_unknown_options():
    with pytest.raises(TypeError, match="no such option: colour"):
        ANY.components(EDGES, colour="red")


def test_numbers_of_numpy():
    question = QUESTIONS["pagerank"]
    _, plain = algorithm_of(question, {"iterations": 3, "damping": 0.5})
    _, algorithm = algorithm_of(question, {"iterations": np.int64(3), "damping": np.float64(0.5)})
    assert algorithm == plain


def test_a_new_question():
    """A command needs only a declaration: its options, checks and help follow from the
    declaration.
    """
    question = QUESTIONS["components"]._replace(
        name="colours",
        summary="Colour the vertices.",
        parameters=(
            Parameter("rounds", Whole(1, 9), 3, "Most rounds."),
            Parameter("share", Real(), 0.5, "Share of vertices a round."),
            Parameter("winner", Choice(("first", "last")), "first", "Which vertex wins."),
            Parameter("strict_colours", Flag(), False, "No two alike."),
        ),
    )
    command = command_of(question)
    context = click.Context(command, info_name="colours")
    page = command.get_help(context)
    for words in ("Colour the vertices.", "--rounds", "[default: 3", "--strict-colours"):
        assert words in page
    assert page.index("--rounds INTEGER") < page.index("--memory-limit SIZE")
    assert "--scheduler " not in page
    assert "--help-all explains --scheduler" in page
    options = {option.name: option for option in command.params}
    with pytest.raises(click.BadParameter):
        options["rounds"].process_value(context, "0")
