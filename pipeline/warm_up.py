"""Compile beforehand what questions call, by asking them of small graphs.

``python -m delegraph.pipeline.warm_up FILE`` compiles the kernels that come with the package: a
build of the package runs it (setup.py).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..kernels.base import compiled, shipped
from ..partition.disk.temporary import TemporaryFolder
from ..partition.errors import InputError
from ..partition.input.ids import compile_reading
from .api import build, generate, validate
from .ask import ask
from .questions import QUESTIONS, Form, Question
from .questions.parameters import REQUIRED, Flag, OneVertex, SomeVertices, VertexPairs, Vertices
from .run.execute import Progress

MODULE = "delegraph.pipeline.warm_up"

_SCALE = 6  # of the generated graph
_VERTICES = 64
_ROWS = 400
_MOST_PARAMETERS = 2  # of a form, to be asked for at all


class _Graph(NamedTuple):
    """A small graph. ids: NumPy's type of ids. weighted: whether it is read with its weights."""

    ids: type[np.generic]
    directed: bool = False
    weighted: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """Return the options with which the graph is read."""
        weight = {"weight": "weight"} if self.weighted else {}
        return {"directed": self.directed, **weight}

    def paths(self, folder: Path) -> tuple[Path, Path]:
        """Return the paths of its edge list and its store."""
        name = f"{self.ids.__name__}-{self.directed}-{self.weighted}"
        return folder / f"{name}.parquet", folder / f"{name}.dg"


_GRAPHS = (
    _Graph(np.int64),
    _Graph(np.int64, weighted=True),
    _Graph(np.str_, directed=True),
)


def warm_up(
    names: Sequence[str] = tuple(QUESTIONS),
    progress: Progress = lambda step, done, total: None,
) -> None:
    """Compile the kernels of questions, of builds, of the validation of results, and of
    ``generate kronecker``.

    names: of questions, in the order in which they are asked.
    """
    with TemporaryFolder() as folder:
        generate("kronecker", Path(folder, "kronecker"), scale=_SCALE)
        compile_reading(pa.int32())
        for graph in _GRAPHS:
            _write(graph, Path(folder))
        for done, name in enumerate(names):
            progress(f"compile: {name}", done, len(names))
            for form, values in _forms_of(QUESTIONS[name]):
                for graph in _GRAPHS:
                    if form.weights or not graph.weighted:
                        _ask(name, form, values, graph, Path(folder))
        progress("compile", len(names), len(names))


def _write(graph: _Graph, folder: Path) -> None:
    """Write a graph as an edge list and as a store."""
    rng = np.random.default_rng(1)
    src, dst = rng.integers(0, _VERTICES, (2, _ROWS)).astype(graph.ids).tolist()
    weights = rng.integers(1, 9, _ROWS)
    edges, store = graph.paths(folder)
    pq.write_table(pa.table({"src": src, "dst": dst, "weight": weights}), edges)
    build(edges, store, **graph.options)


def _ask(name: str, form: Form, values: dict[str, Any], graph: _Graph, folder: Path) -> None:
    """Ask a question of an edge list and of its store, and validate the results."""
    edges, store = graph.paths(folder)
    output = folder / "result"
    # Without weights, a question that needs them is refused.
    refused = (InputError,) if form.weights and not graph.weighted else ()
    with contextlib.suppress(*refused):
        for path, options in ((edges, graph.options), (store, {})):
            ask(name, path, output, values, {**options, "device": "cpu", "overwrite": True})
            validate(path, output, **options)


def _forms_of(question: Question) -> Iterator[tuple[Form, dict[str, Any]]]:
    """Yield the forms of a question, each with the fewest values by which it is asked for."""
    needed = {parameter.name for parameter in question.parameters if parameter.default is REQUIRED}
    values = {
        parameter.name: value
        for parameter in question.parameters
        if (value := _value_of(parameter.kind)) is not None
    }
    for number, form in enumerate(question.forms):
        for names in _subsets(values):
            if needed <= set(names) and _form_of(question, names) == number:
                yield form, {name: values[name] for name in names}
                break


def _subsets(names: Collection[str]) -> Iterator[tuple[str, ...]]:
    for size in range(_MOST_PARAMETERS + 1):
        yield from combinations(names, size)


def _form_of(question: Question, names: Collection[str]) -> int | None:
    try:
        return question.form(names)
    except InputError:
        return None


def _value_of(kind: Any) -> Any:
    """Return a value for a parameter; None if no form is asked for by its kind."""
    if isinstance(kind, OneVertex):
        return 0
    if isinstance(kind, Vertices):
        return [0, 1]
    if isinstance(kind, VertexPairs):
        return [(0, 1)]
    if isinstance(kind, SomeVertices):
        return 2
    return True if isinstance(kind, Flag) else None


def ship(path: Path) -> None:
    """Compile the kernels of all questions for the baseline of processors, and write them to a
    file; do nothing where code for the baseline does not run.

    Two processes compile, from either end of the questions: each compiles what the other one is not
    at, and loads the rest.
    """
    if not shipped.runs_here():
        return
    with TemporaryFolder() as cache:
        chosen = {"NUMBA_CPU_NAME": shipped.BASELINE, "NUMBA_CPU_FEATURES": ""}
        env = {**os.environ, "NUMBA_CACHE_DIR": cache, **chosen}
        command = [sys.executable, "-m", MODULE]
        processes = []
        try:
            processes.append(subprocess.Popen([*command, "--from-the-start", path], env=env))
            with contextlib.suppress(OSError):  # one process can do it alone
                processes.append(subprocess.Popen([*command, "--from-the-end"], env=env))
            if processes[0].wait():
                raise RuntimeError(f"compiling ended with exit code {processes[0].returncode}")
            processes[-1].wait()  # it soon ends, too, and removes its files
        finally:
            for process in processes:
                process.terminate()
                process.wait()


def _main(first: str, path: str = "") -> None:
    if first == "--from-the-end":
        warm_up(tuple(reversed(QUESTIONS)))
    elif first == "--from-the-start":
        warm_up()
        shipped.write(Path(path), compiled.cached_kernels())
    else:
        ship(Path(first))


if __name__ == "__main__":
    _main(*sys.argv[1:])
