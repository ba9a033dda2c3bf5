"""The declaration of a question: its parameters, its words, and where its code is.

A declaration is light, since every command loads all of them: code that needs NumPy is named, and
``load`` imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import count, takewhile
from typing import Any, Literal, NamedTuple

from .parameters import Parameter

ColumnType = Literal["id", "integer", "count", "float", "number"]
"""Types of a result's column: that of the vertices' ids, integers, integers that spread over powers
of ten, floats, or either number.
"""


class Cost(NamedTuple):
    """The time that a form takes for each entry of a graph's rows, in nanoseconds: of one core, and
    of a GPU. ``--device auto`` goes by it (engines/auto_device.py).

    repeated: the parameter that says how often this is done. usually: how often if that parameter
    is not given, or names a file; None for once for each vertex. scans: whether an edge list is
    answered in one scan on CPUs, without rows.
    """

    cpu: float
    gpu: float
    repeated: str = ""
    usually: int | None = 1
    scans: bool = False


class Form(NamedTuple):
    """A form of a question, with a result of its own.

    name: in a result's metadata, and in ``plan --algorithm``. title: for people.
    takes: names of the parameters of this form; none where it takes all of the question's.
    keys: columns of ids that say what a row is of: a vertex, or two vertices, of which there may be
    several rows. columns: the result's other columns. alternatives: sets of these of which a result
    has one, as its graph is, those with more columns first; none where a result has all columns.
    numbered: the beginning of the names of further columns, of ids, which end in numbers from 0 on;
    a result has any number of them. "" where there are none.
    facts: types of the keys that its run record has beside those of every record. The first key
    holds the main facts.
    algorithm: makes the algorithm, of checked parameters by name.
    program: makes the program of a GraphInfo that ``plan`` plans; None for searches with kernels of
    their own.
    judge: the Judge of its results.
    tell: makes the line that the command prints, of the run record.
    tell_verdict: makes the line that ``validate`` prints, of the verdict on a right result.
    assumed: the question that ``validate`` takes a result to answer that does not say which.
    result: the class of the result in Python.
    weights: whether edges count by their weights.
    cost: by which ``--device auto`` chooses; None for a form that does not run on GPUs.
    on_directed: whether it is asked of directed graphs, too; if not, these are refused.
    on_gpus: whether it runs on GPUs; if not, it runs on CPUs whatever ``--device`` says.
    on_several_gpus: the same on GPUs of several workers.
    counts_loops: whether the self-loops that a graph keeps count. counts_loops_on_gpus: whether
    GPUs count them, too; if not, a graph that keeps some is a matter of CPUs.
    finding: what a person reads in its result: "values", "distances" or "groups", and the column of
    numbers, or of the group's name (results/findings.py); a result without this column is read by
    its first one. None for a result whose rows are not of a vertex each.
    elsewhere: what other programs do with "loops", "duplicates" and "weights", where that gives
    other numbers.
    """

    name: str
    title: str
    columns: Mapping[str, ColumnType]
    facts: Mapping[str, Any]
    algorithm: str
    program: str | None
    judge: str
    tell: Callable[[Any], str]
    tell_verdict: Callable[[Any], str]
    takes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ("vertex",)
    alternatives: tuple[tuple[str, ...], ...] = ()
    numbered: str = ""
    assumed: str = ""
    result: str = "Result"
    weights: bool = False
    cost: Cost | None = None
    on_directed: bool = True
    on_gpus: bool = True
    on_several_gpus: bool = True
    counts_loops: bool = False
    counts_loops_on_gpus: bool = True
    finding: tuple[str, str] | None = None
    elsewhere: Mapping[str, str] = {}

    @property
    def key(self) -> str:
        """Return the key of the run record that holds the main facts."""
        return next(iter(self.facts))

    def columns_in(self, names: Collection[str]) -> tuple[str, ...] | None:
        """Return the columns of a result that has some names; None if the result lacks any."""
        sets = self.alternatives or (tuple(self.columns),)
        found = next((some for some in sets if {*self.keys, *some} <= {*names}), None)
        return found and (*found, *self.numbered_in(names))

    def numbered_in(self, names: Collection[str]) -> tuple[str, ...]:
        """Return the numbered columns of a result that has some names."""
        numbers = takewhile(lambda i: f"{self.numbered}{i}" in names, count())
        return tuple(f"{self.numbered}{i}" for i in numbers) if self.numbered else ()

    def finding_in(self, names: Sequence[str]) -> str:
        """Return the column that a person reads in a result with some columns."""
        assert self.finding is not None
        return self.finding[1] if self.finding[1] in names else names[0]


def only_form(given: Collection[str]) -> int:
    """Return the number of the form, for a question that has only one."""
    return 0


class Question(NamedTuple):
    """A command that asks something of a graph, and the functions in Python of the same name.

    summary: one line of help. examples: command lines. description: the rest of the command's help.
    about: the rest of the Python functions' documentation. errors: what raises which error there,
    beside what every function raises.
    parameters: in the order of the help. conflicts: pairs of parameters that exclude each other.
    forms: the first one has the question's name. form: the number of the form that is asked for, by
    the names of the parameters that are given; InputError where they fit none.
    converges: whether a run may end before it has converged, which ``--strict`` makes a failure.
    checked_by: how ``validate`` checks results, for its help.
    bench_parameter: the parameter that ``bench`` gives random vertices to, and how many vertices;
    None where it gives none. in_bench: whether ``bench`` measures the question.
    """

    name: str
    summary: str
    examples: tuple[str, ...]
    description: str
    parameters: tuple[Parameter, ...]
    forms: tuple[Form, ...]
    about: str = ""
    errors: Mapping[str, str] = {}
    conflicts: tuple[tuple[str, str], ...] = ()
    form: Callable[[Collection[str]], int] = only_form
    converges: bool = False
    checked_by: str = ""
    in_bench: bool = False
    bench_parameter: tuple[str, int] | None = None

    def taken_by(self, form: Form) -> tuple[str, ...]:
        """Return the names of the parameters of a form."""
        return form.takes or tuple(parameter.name for parameter in self.parameters)


@cache
def load(reference: str) -> Any:
    """Import the thing that a reference such as ``"algorithms.pagerank:planned"`` names.

    The module is one of the pipeline's.
    """
    module, name = reference.split(":")
    return getattr(import_module(f"..{module}", __package__), name)
