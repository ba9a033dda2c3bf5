"""Page about a result: its values come from the result itself, its making from the run record."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from ....partition.errors import InputError
from ....partition.input.edges import EdgeList
from ....partition.store.store import Store
from ...questions import FORMS
from ...questions.facts import plural
from ...results.result import Result
from ..neighbourhood import neighbourhood
from ..numbers import at, duration, entries, figure, number, share, size, text
from ..result import result_document
from . import run
from .charts import MOST_COLUMNS, Frame, Point, Tick, across, chart, dots, joined
from .distribution import distribution, top
from .drawing import MOST_VERTICES, centres_of, communities_drawing, drawing
from .levels import levels
from .markup import Content, tag
from .page import Figure, Page, Section
from .scales import integers, linear, logarithmic
from .tables import beside, table

Item = TypeVar("Item")


def page_of_result(result: Result, path: Path, graph: Store | EdgeList | None = None) -> Page:
    """Return the page of a result. graph: the graph that it is of, to draw a part of it."""
    found = result_document(result)
    record, unknown = _record(result, path)
    form = FORMS[result.algorithm]
    did = at(record, form.key) if isinstance(at(record, form.key), dict) else {}
    if result.info is None:
        unknown = ["The graph and the options of the result: the files do not name them.", *unknown]
    return Page(
        kind=form.title,
        name=path.name,
        command=run.command(record),
        figures=[
            *_figures(result, found, did),
            *_spent(result, record),
            *filter(None, [run.peak(record)]),
        ],
        unknown=unknown,
        notes=run.notes(record),
        answers=[
            distribution(result.algorithm, found) if "distribution" in found else None,
            top(result.algorithm, found),
            communities_drawing(record, found),
            None if graph is None else _drawn(graph, result, found),
        ],
        sections=[
            levels(record),
            _iterations(record, found),
            _qualities(record),
            run.phases(record),
            _steps(record),
            run.memory(record),
            run.the_run(record, path, [*_asked(result, did), ("files", _files(result))]),
        ],
    )


def _drawn(graph: Store | EdgeList, result: Result, found: dict[str, Any]) -> Section:
    if FORMS[result.algorithm].finding is None:
        raise InputError(f"a result of {result.algorithm} has no drawing: leave the graph out")
    centres = centres_of(result, found)
    directed = result.info is not None and result.info.directed
    return drawing(neighbourhood(graph, result, centres, MOST_VERTICES), directed)


def _record(result: Result, path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the record of this result; a record of another graph or algorithm is left out."""
    record, unknown = run.read_record(path)
    graph = at(record, "graph", "fingerprint")
    is_foreign = result.info is not None and graph is not None and graph != result.info.graph
    key = FORMS[result.algorithm].key
    other_keys = {form.key for form in FORMS.values()} - {key}
    if record and (is_foreign or (key not in record and other_keys & record.keys())):
        return {}, ["What ran, and for how long: the run record beside it is of another run."]
    return record, unknown


def _figures(result: Result, found: dict[str, Any], did: dict[str, Any]) -> list[Figure]:
    """Return the key figures, from the result's own columns where they suffice."""
    vertices = number(found, "vertices")
    made = []
    if "reached" not in found and "searches" not in found:
        name = "rows" if vertices is None else "vertices"
        made.append(Figure(name, figure(number(found, name))))
    if "reached" in found and vertices is not None:
        note = f"{share(found['reached'], vertices)} of {vertices:,} vertices"
        made.append(Figure("reached", figure(found["reached"]), note))
    if "searches" in found:
        made.append(Figure("searches", figure(found["searches"]), f"{found['rows']:,} rows"))
    if "depth" in found:
        made.append(Figure("depth", figure(found["depth"]), "greatest distance"))
    if "farthest" in found:
        made.append(Figure("farthest", figure(found["farthest"]), "greatest distance"))
    group = _group(result)
    if group and (groups := number({**did, **found}, plural(group))) is not None:
        made.append(Figure(plural(group), figure(groups)))
    if (quality := number(did, "quality")) is not None:
        made.append(Figure("quality", figure(quality), str(did.get("objective"))))
    if (largest := number(did, "largest")) is not None:
        note = f"{share(largest, vertices)} of the vertices" if group and vertices else ""
        made.append(Figure(f"largest {group}".rstrip(), figure(largest), note))
    if (iterations := number(did, "iterations")) is not None:
        note = {"True": "converged", "False": "not converged"}.get(str(did.get("converged")), "")
        made.append(Figure("iterations", figure(iterations), note))
    if (least := number(did, "diameter_at_least")) is not None:
        most = number(did, "diameter_at_most")
        note = "nothing bounds it above" if most is None else f"at most {figure(most)}"
        title = "diameter" if least == most else "diameter, at least"
        made.append(Figure(title, figure(least), "" if least == most else note))
    return made


def _group(result: Result) -> str:
    """Return what a group of vertices is called that the result is about; "" if it is not."""
    if result.algorithm == "condensation":
        return "component"
    kind, column = FORMS[result.algorithm].finding or ("", "")
    return column if kind == "groups" else ""


def _spent(result: Result, record: dict[str, Any]) -> list[Figure]:
    seconds = number(record, "seconds", "search")
    name = "searched in" if result.algorithm.startswith("bfs") else "computed in"
    return [] if seconds is None else [Figure(name, duration(seconds))]


def _iterations(record: dict[str, Any], found: dict[str, Any]) -> Section | None:
    """Return a chart of PageRank's iterations, by the change of each."""
    iterations = entries(record, "iterations")
    known = [(i, number(iteration, "change") or 0) for i, iteration in enumerate(iterations, 1)]
    drawn = [(i, change) for i, change in known if change > 0]
    if not drawn:
        return None
    together = -(-len(drawn) // MOST_COLUMNS)
    points = [
        Point((i - 0.5) / len(iterations), change, f"iteration {i:,}: change {figure(change)}")
        for i, change in _each(drawn, together)
    ]
    tolerance = max(0.0, number(found, "tolerance") or 0)
    values = [point.value for point in points] + ([tolerance] if tolerance else [])
    frame = Frame(
        "Change by iteration",
        "A dot for each iteration, on a logarithmic scale; the table has the numbers.",
        logarithmic(min(values), max(values)),
        "change (L1)",
        [Tick((i - 0.5) / len(iterations), f"{i:,}") for i in integers(1, len(iterations))],
        "iteration",
    )
    layers = [joined(frame, points, "line"), dots(frame, points)]
    if tolerance:
        layers.append(across(frame, tolerance, f"tolerance {figure(tolerance)}"))
    told = f"The last of {len(iterations):,} iterations changed {figure(drawn[-1][1])}, as the sum "
    told += "of all vertices' changes. The scale is logarithmic."
    if together > 1:
        told += f" Of every {together:,} iterations, one is drawn and listed."
    if len(drawn) < len(iterations):
        undrawn = len(iterations) - len(drawn)
        told += f" {undrawn:,} changed nothing, or are not known: they have no dot."
    rows = [
        (
            f"{i:,}",
            figure(number(iteration, "change")),
            figure(number(iteration, "edges_examined")),
            duration(number(iteration, "seconds")),
        )
        for i, iteration in _each(list(enumerate(iterations, 1)), together)
    ]
    made = table("Iterations", ("iteration", "change", "edges examined", "time"), rows)
    content = [tag("p", told), tag("figure", chart(frame, *layers))]
    return Section(
        "Change by iteration", [*content, beside("Table of iterations", made, len(rows))]
    )


def _qualities(record: dict[str, Any]) -> Section | None:
    """Return a chart of the quality of communities after each level."""
    made = entries(record, "levels")
    known = [(i, number(level, "quality")) for i, level in enumerate(made)]
    points = [
        Point((i + 0.5) / len(made), quality, f"{_level_name(made[i])}: {figure(quality)}")
        for i, quality in known
        if quality is not None and quality > 0
    ]
    if not points:
        return None
    values = [point.value for point in points]
    frame = Frame(
        "Quality by level",
        "A dot for each level of each iteration with a quality above 0; the table has the numbers.",
        linear(max(values)),
        "quality",
        [Tick((i + 0.5) / len(made), figure(number(made[i], "level"))) for i, _ in known],
        "level",
    )
    counts = "vertices", "communities", "quality", "rounds", "moves"
    rows = [
        (
            figure(number(level, "iteration")),
            figure(number(level, "level")),
            *(figure(number(level, count)) for count in counts),
            duration(number(level, "seconds")),
        )
        for level in made
    ]
    told = "The vertices of level 0 are those of the graph; those of the others are groups of them."
    listed = table("Levels", ("iteration", "level", *counts, "time"), rows)
    drawn = chart(frame, joined(frame, points, "line"), dots(frame, points))
    content = [tag("p", told), tag("figure", drawn)]
    return Section("Quality by level", [*content, beside("Table of levels", listed, len(rows))])


def _level_name(level: Any) -> str:
    iteration, number_of = (figure(number(level, key)) for key in ("iteration", "level"))
    return f"iteration {iteration}, level {number_of}"


def _each(items: list[Item], step: int) -> list[Item]:
    """Return each ``step``-th item, and the last one."""
    return items[::-step][::-1]


def _steps(record: dict[str, Any]) -> Section | None:
    """Return a section on steps; None where steps are the phases, and none was reused."""
    found = entries(record, "plan", "steps")
    named = {text(step.get("name")) for step in found}
    reused = any(step.get("reused") is True for step in found)
    return run.steps(record) if reused or named - run.PHASES.keys() else None


def _asked(result: Result, did: dict[str, Any]) -> list[tuple[str, Content]]:
    """Return the options that decide the result, and the record's other facts about the work."""
    info = result.info
    # Where both have a name the record's says more: of sources, how many; in options, a digest.
    shown = (info.options if info else {}) | {
        name: value for name, value in did.items() if name not in _IN_FIGURES
    }
    if info:
        shown = {"directed": info.directed, **shown, "graph": info.graph}
    return [
        (name.replace("_", " "), size(number(shown, name)) if "bytes" in name else text(value))
        for name, value in shown.items()
        if name != "source_ids"
    ]


_IN_FIGURES = (
    *("reached", "depth", "components", "communities", "labels", "quality", "objective"),
    *("largest", "iterations", "converged", "farthest"),
    *("diameter_at_least", "diameter_at_most"),
)


def _files(result: Result) -> str:
    return f"{len(result.files):,}, of {size(result.bytes)}"
