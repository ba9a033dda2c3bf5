"""Compile beforehand what questions call, by asking them of small graphs.

``python -m delegraph.pipeline.warm_up FILE`` compiles the kernels that come with the package, and
``python -m delegraph.pipeline.warm_up --cuda FOLDER`` those of searches on a GPU: a build of the
package runs both (setup.py).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
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
from .api import build, validate
from .ask import ask
from .questions import QUESTIONS, Form, Question
from .questions.parameters import REQUIRED, Flag, OneVertex, SomeVertices, VertexPairs, Vertices
from .run.execute import Progress

MODULE = "delegraph.pipeline.warm_up"

SHIPPED = (
    *("bfs", "components", "pagerank", "sssp", "betweenness", "closeness", "harmonic"),
    *("eccentricity", "hits", "eigenvector", "katz", "cores", "degree"),
    *("path", "leiden", "louvain"),
)
"""Questions whose kernels come with the package: those that are asked most, or whose kernels take
more than 8 s of processor time to compile. A first run of the others compiles theirs; with them an
installation would take half as long again.
"""

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
    is_mine: Callable[[str], bool] = lambda name: True,
) -> None:
    """Compile the kernels of questions, of builds, and of the validation of results.

    names: of questions, in the order in which they are asked. is_mine: whether to ask a question
    whose turn has come.
    """
    with TemporaryFolder() as folder:
        compile_reading(pa.int32())
        for graph in _GRAPHS:
            _write(graph, Path(folder))
        for done, name in enumerate(names):
            if not is_mine(name):
                continue
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
    """Compile the kernels of usual questions for the baseline of processors, and write them to a
    file; do nothing where code for the baseline does not run.

    Two processes ask the questions, from either end, each of them those that the other one has not
    begun. A kernel that the other process is at is left to it.
    """
    if not shipped.runs_here():
        return
    with TemporaryFolder() as folder:
        chosen = {"NUMBA_CPU_NAME": shipped.BASELINE, "NUMBA_CPU_FEATURES": ""}
        env = {**os.environ, "NUMBA_CACHE_DIR": os.path.join(folder, "cache"), **chosen}
        command = [sys.executable, "-m", MODULE]
        processes = []
        try:
            processes.append(subprocess.Popen([*command, "--from-the-start", folder], env=env))
            with contextlib.suppress(OSError):  # one process can do it alone
                processes.append(subprocess.Popen([*command, "--from-the-end", folder], env=env))
            for process in processes:
                if process.wait():
                    raise RuntimeError(f"compiling ended with exit code {process.returncode}")
        finally:
            for process in processes:
                process.terminate()
                process.wait()
        kernels = Path(folder, "kernels").iterdir()
        shipped.write(path, ((kernel.name, kernel.read_bytes()) for kernel in kernels))


def ship_cuda(folder: Path) -> None:
    """Compile CUDA kernels of searches into a folder, for the GPUs of this machine, or for usual
    ones if it has none; do nothing where there is no NVRTC.
    """
    from ..kernels.gpu import cubins, driver
    from ..kernels.gpu.device import cluster_blocks, source
    from ..kernels.gpu.search import functions_of_searches

    compiler = cubins.find_compiler()
    if compiler is None:
        return
    wanted = [
        (source(name), function, architecture)
        for architecture in sorted(driver.architectures() or cubins.ARCHITECTURES)
        for name, function in functions_of_searches(cluster_blocks(architecture))
    ]
    cubins.make(folder, compiler, wanted)


def _compile_some(names: Sequence[str], folder: Path) -> None:
    """Compile the kernels of the questions that no other process has begun, and put each of them
    into a file.
    """
    begun, kernels = folder / "begun", folder / "kernels"
    for part in (begun, kernels):
        part.mkdir(exist_ok=True)

    def is_mine(name: str) -> bool:
        with contextlib.suppress(FileExistsError):
            (begun / name).touch(exist_ok=False)
            return True
        return False

    warm_up(names, is_mine=is_mine)
    for key, data in compiled.cached_kernels():
        (kernels / key).write_bytes(data)


def _main(first: str, path: str = "") -> None:
    if first == "--from-the-end":
        _compile_some(SHIPPED[::-1], Path(path))
    elif first == "--from-the-start":
        _compile_some(SHIPPED, Path(path))
    elif first == "--cuda":
        ship_cuda(Path(path))
    else:
        ship(Path(first))


if __name__ == "__main__":
    _main(*sys.argv[1:])
