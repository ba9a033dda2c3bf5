"""``pipeline/functions.py`` and ``pipeline/methods.py``: signatures and documentation of questions
in Python, made from the declarations in ``pipeline/questions``; run as a program, this file writes
both.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from delegraph.pipeline.questions import QUESTIONS, Form, Question
from delegraph.pipeline.questions.parameters import (
    REQUIRED,
    Choice,
    Flag,
    OneVertex,
    Parameter,
    Real,
    SomeVertices,
    SuperstepsFile,
    VertexPairs,
    VertexWeights,
    Vertices,
    Whole,
)

PIPELINE = Path(__file__).parents[2] / "pipeline"
FUNCTIONS, METHODS = PIPELINE / "functions.py", PIPELINE / "methods.py"

_WIDTH = 100

_ANNOTATIONS = {
    Whole: "int",
    Real: "float",
    Flag: "bool",
    OneVertex: "AnyVertex",
    Vertices: "AnyVertices",
    SomeVertices: "AnySources",
    VertexPairs: "AnyPairs",
    VertexWeights: "AnyPath | Mapping[AnyVertex, float]",
    SuperstepsFile: "AnyPath",
}

_HEAD = '''"""{title}

Written by tests/support/python_functions.py from the declarations in pipeline/questions. Change
those, and run it.
"""

from __future__ import annotations

'''

_FUNCTIONS = """from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from ..partition.disk.urls import AnyPath
from .ask import AskingOptions, ask
from .parameter_checks import AnyPairs, AnySources, AnyVertex, AnyVertices
from .python_side.public import public

if TYPE_CHECKING:
    from .algorithms.run import Outcome
    from .edge_sources.kinds import EdgeSource
    from .result import BfsResult, Result

__all__ = [{names}]
"""

_METHODS = '''from collections.abc import Mapping
from typing import Any, Literal, overload

from ..partition.disk.urls import AnyPath
from .parameter_checks import AnyPairs, AnySources, AnyVertex, AnyVertices
from .result import BfsResult, Result


class QuestionMethods:
    """The questions that may be asked of an open graph."""

    def _ask(self, name: str, values: Mapping[str, Any]) -> Any:
        """Answer a question, which ``Graph`` does."""
        raise NotImplementedError
'''


def functions() -> str:
    """Return the text of ``pipeline/functions.py``, before formatting."""
    names = ", ".join(f'"{name}"' for name in sorted(QUESTIONS))
    head = _HEAD.format(title="The functions that ask a question of a graph, given its path.")
    parts = [head + _FUNCTIONS.format(names=names)]
    for question in QUESTIONS.values():
        parts += [*_overloaded_functions(question), _function(question)]
    return "\n\n".join(parts)


def methods() -> str:
    """Return the text of ``pipeline/methods.py``, before formatting."""
    head = _HEAD.format(title="The methods of an open graph that ask a question of it.")
    parts = [head + _METHODS]
    for question in QUESTIONS.values():
        parameters = [each for each in question.parameters if not each.written]
        if _results_differ(question):
            forms = (
                _method(question, _taken(question, form), form.result, "...")
                for form in question.forms
            )
            parts += [_indented(f"@overload\n{text}") for text in dict.fromkeys(forms)]
        answer = f'return self._ask("{question.name}", {_values(parameters)})'
        body = f"{_docstring(question, parameters, ())}\n{answer}"
        parts.append(_indented(_method(question, parameters, _results(question), body)))
    return "\n".join(parts)


def _overloaded_functions(question: Question) -> Iterable[str]:
    every = question.parameters
    yield "@overload\n" + _function_of(question, every, "output: AnyPath", "Outcome", "...")
    output = "output: None = None"
    forms = (
        _function_of(question, _taken(question, form), output, form.result, "...")
        for form in question.forms
    )
    for text in dict.fromkeys(forms):
        yield f"@overload\n{text}"


_OPTIONS = (
    "options: src, dst and weight (the columns of the ids and of the weights), directed, "
    "duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as "
    "``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and the "
    "other options of the command."
)


def _function(question: Question) -> str:
    every = question.parameters
    graph = (
        "graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a "
        "NetworkX graph, or pairs."
    )
    output = "output: the folder of the result; None for a result in memory."
    returns = (
        "The result; with an output its record, whether it was there already, and notes for the "
        "user."
    )
    docstring = _docstring(question, every, (graph, output), returns, (_OPTIONS,))
    body = f'{docstring}\nreturn ask("{question.name}", graph, output, {_values(every)}, options)'
    function = _function_of(question, every, "output: AnyPath | None = None", "Any", body)
    return f"@public\n{function}"


def _taken(question: Question, form: Form) -> list[Parameter]:
    """Return the parameters of one form without an output; if forms have results of several
    classes, the first parameter is required.
    """
    every = (each for each in question.parameters if not each.written)
    taken = [each for each in every if _is_of(question, each, form)]
    if not _results_differ(question):
        return taken
    first = taken[0]
    return [first._replace(default=REQUIRED), *taken[1:]]


def _is_of(question: Question, parameter: Parameter, form: Form) -> bool:
    """Return whether a form takes a parameter, or the parameter belongs to no form and decides
    which form is asked for.
    """
    if parameter.name in question.taken_by(form):
        return True
    deciding = all(parameter.name not in question.taken_by(each) for each in question.forms)
    return deciding and form is not question.forms[0]


def _results_differ(question: Question) -> bool:
    return len({form.result for form in question.forms}) > 1


def _results(question: Question) -> str:
    return " | ".join(dict.fromkeys(form.result for form in question.forms))


def _function_of(
    question: Question, parameters: Iterable[Parameter], output: str, returns: str, body: str
) -> str:
    leading, rest = _split(parameters)
    words = ["graph: AnyPath | EdgeSource", *leading, "*", output, *rest]
    signature = ", ".join([*words, "**options: Unpack[AskingOptions]"])
    return f"def {question.name}({signature}) -> {returns}:\n{_indented(body)}\n"


def _method(question: Question, parameters: Iterable[Parameter], returns: str, body: str) -> str:
    leading, rest = _split(parameters)
    words = ["self", *leading, *(["*", *rest] if rest else [])]
    return f"def {question.name}({', '.join(words)}) -> {returns}:\n{_indented(body)}\n"


def _split(parameters: Iterable[Parameter]) -> tuple[list[str], list[str]]:
    """Return the arguments that may be given by position, and those that are given by name."""
    every = list(parameters)
    return (
        [_argument(each) for each in every if each.leads],
        [_argument(each) for each in every if not each.leads],
    )


def _argument(parameter: Parameter) -> str:
    kind, default = parameter.kind, parameter.default
    if isinstance(kind, Choice):
        words = ", ".join(f'"{word}"' for word in kind.words)
        annotation = f"Literal[{words}]"
    else:
        annotation = _ANNOTATIONS[type(kind)]
    if isinstance(kind, Real | Whole) and kind.words:
        words = ", ".join(f'"{word}"' for word in kind.words)
        annotation += f" | Literal[{words}]"
    if default is REQUIRED:
        return f"{parameter.name}: {annotation}"
    if default is None:
        return f"{parameter.name}: {annotation} | None = None"
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    return f"{parameter.name}: {annotation} = {shown}"


def _values(parameters: Iterable[Parameter]) -> str:
    return "{" + ", ".join(f'"{each.name}": {each.name}' for each in parameters) + "}"


def _docstring(
    question: Question,
    parameters: Iterable[Parameter],
    before: tuple[str, ...],
    returns: str = "",
    after: tuple[str, ...] = (),
) -> str:
    indent = 4 if before else 8
    lines = [question.summary, "", *_filled(question.about, indent)]
    arguments = [*before, *(f"{each.name}: {_said(each)}" for each in parameters), *after]
    if arguments:
        lines += ["", "Args:", *_entries(arguments, indent)]
    if returns:
        lines += ["", "Returns:", *_entries([returns], indent)]
    if question.errors:
        errors = [f"{error}: {when}" for error, when in question.errors.items()]
        lines += ["", "Raises:", *_entries(errors, indent)]
    return '"""' + "\n".join(lines).strip() + '\n"""'


def _said(parameter: Parameter) -> str:
    words = parameter.python or parameter.help
    return words[0].lower() + words[1:] if not parameter.python else words


def _entries(entries: Iterable[str], indent: int) -> list[str]:
    lines: list[str] = []
    for entry in entries:
        lines += textwrap.wrap(
            entry,
            _WIDTH - indent,
            initial_indent="    ",
            subsequent_indent="        ",
            break_on_hyphens=False,
        )
    return lines


def _filled(text: str, indent: int) -> list[str]:
    lines: list[str] = []
    for paragraph in text.strip().split("\n\n"):
        lines += ["", *textwrap.wrap(paragraph, _WIDTH - indent, break_on_hyphens=False)]
    return lines[1:]


def _indented(text: str) -> str:
    return textwrap.indent(text, "    ")


def _formatted(text: str) -> str:
    """Return the text in the format of the project's formatter."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(FUNCTIONS), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    FUNCTIONS.write_text(_formatted(functions()))
    METHODS.write_text(_formatted(methods()))
