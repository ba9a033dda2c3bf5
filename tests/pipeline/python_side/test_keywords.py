"""Messages speak of keywords in Python, and of options on the command line."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph
from delegraph.pipeline import api, ask
from delegraph.pipeline.python_side import keywords
from delegraph.pipeline.python_side.keywords import with_keywords
from delegraph.pipeline.questions import QUESTIONS

ROOT = Path(__file__).parents[3]
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")

NO_MESSAGES = ("pipeline/questions/", "pipeline/batches/", "pipeline/warm_up.py")
"""Help of commands, what only the command ``batch`` says, and arguments of a process."""


def _messages() -> Iterator[tuple[str, str]]:
    """Yield each text of the package that names an option, and where it stands; {} is 7."""
    for layer in ("kernels", "partition", "pipeline"):
        for path in sorted((ROOT / layer).rglob("*.py")):
            place = str(path.relative_to(ROOT))
            if not place.startswith((*NO_MESSAGES, "pipeline/python_side/")):
                yield from ((place, text) for text in _texts(path) if OPTION.search(text))
    for path in sorted((ROOT / "pipeline" / "questions").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise):
                found = (text for text in _texts_of(node) if OPTION.search(text))
                yield from ((f"pipeline/questions/{path.name}", text) for text in found)


def _texts(path: Path) -> Iterator[str]:
    """Yield the texts of a file, but no docstrings."""
    tree = ast.parse(path.read_text())
    expressions = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    yield from _texts_of(tree, {id(value) for value in expressions})


def _texts_of(tree: ast.AST, skipped: Collection[int] = ()) -> Iterator[str]:
    parts = {*skipped}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "7" for part in node.values
            )
        elif isinstance(node, ast.Constant) and type(node.value) is str and id(node) not in parts:
            yield node.value


MESSAGES = sorted(set(_messages()))


def _keywords_of_functions() -> set[str]:
    names: set[str] = set()
    functions = [getattr(delegraph, name) for name in dir(delegraph)]
    functions += [api.bench_across, api.bench_ablation, api.bench_algorithm_across]
    for function in functions:
        if inspect.isfunction(function):
            names |= {*inspect.signature(function).parameters}
    return names | {*api.AllOptions.__annotations__} | {*ask.AskingOptions.__annotations__}


def test_there_are_messages():
    assert len(MESSAGES) > 60


@pytest.mark.parametrize(("place", "text"), MESSAGES)
def test_every_option_in_a_message_is_a_keyword(place, text):
    for option in OPTION.findall(text):
        known = keywords.keyword_of(option) in _keywords_of_functions()
        assert known or option in keywords.COMMAND_ONLY, f"{place}: --{option}"
    told = with_keywords(text)
    assert {*OPTION.findall(told)} <= keywords.COMMAND_ONLY, told
    assert with_keywords(told) == told  # a function may call another one


@pytest.mark.parametrize(("place", "text"), MESSAGES)
def test_words_of_a_sentence_are_no_values(place, text):
    told = with_keywords(text)
    for value in re.findall(r'\w=("?[^\s,:;()]*)', told):
        assert re.fullmatch(r'|True|False|N|"?[\w/.]*"?', value), told
    for word in re.findall(r"\b\w+= (\w+)", told):
        assert word in {*ENGLISH}, f"{told!r}: is {word!r} a value?"


ENGLISH = (
    *("and", "exclude", "for", "if", "is", "makes", "must", "needs", "need", "or", "the", "to"),
    *("would", "writes"),
)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("give --memory-limit 1.5GB or more", 'give memory_limit="1.5GB" or more'),
        ("leave out --device cuda:1", 'leave out device="cuda:1"'),
        ("--profile a/b.parquet exists", 'profile="a/b.parquet" exists'),
        ("with --partitions 4 or more", "with partitions=4 or more"),
        ("make one with --weight COL", "make one with weight="),
        ("'delegraph validate'", "delegraph.validate()"),
        (
            "with: delegraph convert 'a b.csv' --from csv -o a-edges",
            'with: delegraph.convert("a b.csv", format="csv", output="a-edges")',
        ),
        ("give --no-header if so", "give header=False if so"),
        ("a--memory-limit/x and ./--overwrite stay", "a--memory-limit/x and ./--overwrite stay"),
        ("all of them with --json", "all of them with --json"),
        ("source '--weight' is not a vertex", "source '--weight' is not a vertex"),
    ],
)
def test_words(message, told):
    assert with_keywords(message) == told


def test_all_flags_are_known():
    """An option without a value is one whose keyword takes True or False."""
    flags = {
        each.name
        for question in QUESTIONS.values()
        for each in question.parameters
        if each.default is False
    }
    for options in (api.AllOptions, ask.AskingOptions):
        flags |= {name for name, kind in options.__annotations__.items() if "bool" in str(kind)}
    flags -= {"progress"}
    assert flags <= {*keywords._FIXED}


@pytest.fixture
def edges(tmp_path) -> Path:
    path = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"src": [1, 2], "dst": [2, 3]}), path)
    return path


def test_errors_in_python_and_on_the_command_line(edges, tmp_path, request):
    run = request.getfixturevalue("delegraph")
    out = tmp_path / "out"
    delegraph.components(edges, output=out)
    told = run("bfs", edges, "--source", 1, "-o", out)
    assert (told.code, "replace it with --overwrite" in told.err) == (2, True)
    with pytest.raises(delegraph.InputError, match="replace it with overwrite=True"):
        delegraph.bfs(edges, 1, output=out)
    told = run("build", edges, "-o", tmp_path / "graph.dg", "--memory-limit", "1MB")
    assert re.search("give --memory-limit [0-9.]+[KMG]B or more", told.err)
    with pytest.raises(delegraph.InputError, match=r'give memory_limit="[0-9.]+[KMG]B" or more'):
        delegraph.build(edges, tmp_path / "graph.dg", memory_limit="1MB")


def test_errors_of_an_open_graph(edges, tmp_path):
    with delegraph.open(edges) as graph:
        with pytest.raises(delegraph.InputError, match="give their column with weight="):
            graph.sssp(1)
        with pytest.raises(delegraph.InputError, match="exclude each other") as refused:
            graph.pagerank(iterations=3, tolerance=1e-3)
        assert "--" not in str(refused.value)
        result = graph.components()
    result.write(tmp_path / "out")
    with pytest.raises(delegraph.InputError, match="replace it with overwrite=True"):
        result.write(tmp_path / "out")


def test_errors_of_the_backend(edges):
    nx = pytest.importorskip("networkx")
    graph = nx.path_graph(3)
    told = r'give memory_limit="[0-9.]+[KMG]B" or more'
    limit = nx.config.backends["delegraph"](memory_limit="1MB")
    with limit, pytest.raises(delegraph.InputError, match=told):
        nx.pagerank(graph, backend="delegraph")


def test_notes(tmp_path, request):
    """Notes of a result and of an outcome have keywords, and those of a command options."""
    table = pa.table({"src": [1, 1, 2], "dst": [2, 2, 3], "w": [1, 2, 3]})
    pq.write_table(table, tmp_path / "edges.parquet")
    run = request.getfixturevalue("delegraph")
    told = run("pagerank", tmp_path / "edges.parquet", "-o", tmp_path / "out", "--weight", "w")
    assert "--duplicates sum" in told.err
    written = delegraph.pagerank(tmp_path / "edges.parquet", output=tmp_path / "again", weight="w")
    found = delegraph.pagerank(tmp_path / "edges.parquet", weight="w")
    for notes in (written.notes, found.notes):
        assert any('duplicates="sum"' in note for note in notes)


def test_public_functions_are_decorated():
    """All functions that people call word their errors, the methods of graphs and results too."""
    functions = [getattr(delegraph, name) for name in dir(delegraph)]
    functions = [each for each in functions if inspect.isfunction(each)]
    functions += [each for name, each in vars(api).items() if name.startswith("bench")]
    functions += [delegraph.Graph.ask, delegraph.Graph.plan, delegraph.Result.write]
    for function in functions:
        assert hasattr(function, "__wrapped__"), function.__name__
