"""Answers to questions of a graph that is not open: what functions in Python and commands ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..partition.disk.urls import AnyPath, named
from ..partition.errors import InputError
from .api import AllOptions, open_to_ask, sorted_options, with_choices_of
from .build.prepare import StoreOptions
from .parameter_checks import algorithm_of, count_of, given_values
from .python_side.progress import as_function
from .questions import QUESTIONS, Form, Question
from .run.execute import Executor, Progress
from .run.resources import usable_threads

# Each question loads what it needs itself, so that none waits for the others' modules.
if TYPE_CHECKING:
    from .algorithms.run import Outcome
    from .edge_sources.kinds import EdgeSource
    from .engines.auto_device import Asked
    from .result import Result

NEEDS_NO_OUTPUT = {
    "device",
    "device_memory_limit",
    "directed",
    "dst",
    "duplicates",
    "loops",
    "memory_limit",
    "progress",
    "src",
    "threads",
    "weight",
}
"""Options that do not need an output."""


class AskingOptions(AllOptions, total=False):
    """Options of every question. checkpoint: seconds between two saves of a long run."""

    threads: int | None
    checkpoint: float
    overwrite: bool
    progress: Progress | bool | None


def ask(
    name: str,
    graph: AnyPath | EdgeSource,
    output: AnyPath | None,
    values: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Outcome | Result:
    """Answer a question, as a result folder with its run record, or in memory without an output.

    Args:
        name: the name of the question.
        graph: a store or an edge list, or a graph in memory (edge_sources).
        output: the folder; None for a result in memory.
        values: values of the question's parameters.
        options: the AskingOptions that are given.

    Raises:
        InputError: for bad input, and for options that need an output if there is none.
        TypeError: for an unknown option.
    """
    if output is not None:
        return ask_to_output(name, graph, output, values, options)
    form, algorithm = _checked(name, values, options)
    _check_in_memory(QUESTIONS[name], values, options)
    with open_to_ask(graph, _asked(form, values), **options) as opened:
        return opened.ask(algorithm)


def ask_to_output(
    name: str,
    graph: AnyPath | EdgeSource,
    output: AnyPath,
    values: Mapping[str, Any],
    options: Mapping[str, Any],
    top: int = 0,
) -> Outcome:
    """Answer a question as ``ask`` does, as a result folder with its run record. top: how many
    vertices or groups the record names at least.
    """
    from .algorithms.run import CHECKPOINT_SECONDS, RunOptions, run_to_result
    from .edge_sources.parquet import as_edge_list

    form, algorithm = _checked(name, values, options)
    if not hasattr(algorithm, "engines"):
        from .algorithms.programs import ProgramAlgorithm  # a search does without

        algorithm = ProgramAlgorithm(algorithm)
    options_left, profile = {**options}, values.get("profile")
    threads = usable_threads(options_left.pop("threads", None))
    progress = as_function(options_left.pop("progress", None))
    overwrite = options_left.pop("overwrite", False)
    checkpoint = options_left.pop("checkpoint", CHECKPOINT_SECONDS)
    running = RunOptions(threads, checkpoint, top, _asked(form, values).times)
    options_left = with_choices_of(graph, options_left)
    resources, choices = sorted_options(options_left)
    shaped = options_left.keys() & StoreOptions.__annotations__.keys()
    with as_edge_list(graph, choices) as (path, choices):
        return run_to_result(
            algorithm,
            path,
            named(output),
            running,
            choices if shaped else None,
            Executor(threads, progress),
            resources,
            overwrite,
            None if profile is None else named(profile),
        )


def _checked(name: str, values: Mapping[str, Any], options: Mapping[str, Any]) -> tuple[Form, Any]:
    """Return the form and the algorithm that values ask for. Raises TypeError for an unknown
    option.
    """
    unknown = options.keys() - AskingOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"no such option: {', '.join(sorted(unknown))}")
    return algorithm_of(QUESTIONS[name], values)


def _asked(form: Form, values: Mapping[str, Any]) -> Asked:
    from .engines.auto_device import Asked

    if form.cost is None:
        return Asked(form, 0)
    count = count_of(values.get(form.cost.repeated))
    return Asked(form, form.cost.usually if count is None else count)


def _check_in_memory(
    question: Question, values: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    """Raise InputError for parameters and options that need an output."""
    written = {parameter.name for parameter in question.parameters if parameter.written}
    needing = [
        *(given_values(question, values).keys() & written),
        *(options.keys() - NEEDS_NO_OUTPUT),
    ]
    if needing:
        verb = "needs" if len(needing) == 1 else "need"
        raise InputError(f"{', '.join(sorted(needing))} {verb} an output: give output=")
