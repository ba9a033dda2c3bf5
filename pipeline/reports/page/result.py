"""Page about a result: its values come from the result itself, its making from the run record."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from ...questions import FORMS
from ...results.result import Result
from ..report import result_document
from . import run
from .charts import MOST_COLUMNS, Column, Frame, Point, Tick, across, chart, columns, dots, joined
from .levels import levels
from .markup import Content, tag
from .numbers import at, duration, entries, figure, number, share, size, text
from .page import Figure, Page, Section
from .scales import integers, linear, logarithmic
from .tables import Bar, bars, beside, table

Item = TypeVar("Item")


def page_of_result(result: Result, path: Path) -> Page:
    found = result_document(result)
    record, unknown = _record(result, path)
    form = FORMS[result.algorithm]
    did = at(record, form.key) if isinstance(at(record, form.key), dict) else {}
    by_level = levels(record)
    listed = by_level is not None and not at(record, "supersteps_between")
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
        sections=[
            by_level,
            None if listed else _by_distance(found),
            _iterations(record, found),
            _top(result.algorithm, found),
            run.phases(record),
            _steps(record),
            run.memory(record),
            run.the_run(record, path, [*_asked(result, did), ("files", _files(result))]),
        ],
    )


def _record(result: Result, path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the record of this result; a record of another graph or algorithm is left out."""
    record, unknown = run.read_record(path)
    graph = at(record, "graph", "fingerprint")
    other = result.info is not None and graph is not None and graph != result.info.graph
    key = FORMS[result.algorithm].key
    every = {form.key for form in FORMS.values()} - {key}
    if record and (other or (key not in record and every & record.keys())):
        return {}, ["What ran, and for how long: the run record beside it is of another run."]
    return record, unknown


def _figures(result: Result, found: dict[str, Any], did: dict[str, Any]) -> list[Figure]:
    """Return the key figures, from the result's own columns where they suffice."""
    vertices = number(found, "vertices")
    made = []
    if "reached" in found and vertices is not None:
        note = f"{share(found['reached'], vertices)} of {vertices:,} vertices"
        made.append(Figure("reached", figure(found["reached"]), note))
    if "searches" in found:
        made.append(Figure("searches", figure(found["searches"]), f"{found['rows']:,} rows"))
    if "depth" in found:
        made.append(Figure("depth", figure(found["depth"]), "greatest distance"))
    if "farthest" in found:
        made.append(Figure("farthest", figure(found["farthest"]), "greatest distance"))
    if "components" in found:
        made.append(Figure("components", figure(found["components"])))
    if (largest := number(did, "largest")) is not None and vertices:
        note = f"{share(largest, vertices)} of the vertices"
        made.append(Figure("largest component", figure(largest), note))
    if (iterations := number(did, "iterations")) is not None:
        note = {"True": "converged", "False": "not converged"}.get(str(did.get("converged")), "")
        made.append(Figure("iterations", figure(iterations), note))
    if result.algorithm not in ("bfs", "bfs-together", "bfs-each") and "reached" not in found:
        made.append(Figure("vertices", figure(vertices)))
    if (least := number(did, "diameter_at_least")) is not None:
        most = number(did, "diameter_at_most")
        note = "nothing bounds it above" if most is None else f"at most {figure(most)}"
        title = "diameter" if least == most else "diameter, at least"
        made.append(Figure(title, figure(least), "" if least == most else note))
    return made


def _spent(result: Result, record: dict[str, Any]) -> list[Figure]:
    seconds = number(record, "seconds", "search")
    name = "searched in" if result.algorithm.startswith("bfs") else "computed in"
    return [] if seconds is None else [Figure(name, duration(seconds))]


def _by_distance(found: dict[str, Any]) -> Section | None:
    """Return a chart of vertices by distance, counted in the result itself."""
    what = "rows" if "rows_by_distance" in found else "vertices"
    counts = found.get(f"{what}_by_distance")
    if not counts:
        return None
    together = -(-len(counts) // MOST_COLUMNS)
    bins = [counts[i : i + together] for i in range(0, len(counts), together)]
    width = together / len(counts)
    names = [_distances(i * together, len(some)) for i, some in enumerate(bins)]
    made = [
        Column(
            i * width,
            min(1, (i + 1) * width),
            sum(some) / len(some),
            "plain",
            f"distance {name}: {sum(some):,} {what}",
        )
        for i, (name, some) in enumerate(zip(names, bins, strict=True))
    ]
    frame = Frame(
        f"{what.capitalize()} by distance",
        "A column for each distance, or several in a row; the table has the numbers.",
        linear(max(column.value for column in made), whole=True),
        f"{what}{', a distance' if together > 1 else ''}",
        [Tick((d + 0.5) / len(counts), f"{d:,}") for d in integers(0, len(counts) - 1)],
        "distance, in hops",
    )
    most = max(range(len(counts)), key=counts.__getitem__)
    told = f"Distance {most:,} has the most: {counts[most]:,} {what}."
    if together > 1:
        told += f" Each column shows the mean of {together:,} distances."
    rows = [(name, figure(sum(some))) for name, some in zip(names, bins, strict=True)]
    counted = table(f"{what.capitalize()} by distance", ("distance", what), rows)
    content = [tag("p", told), tag("figure", chart(frame, columns(frame, made)))]
    content.append(beside("Table of distances", counted, len(rows)))
    return Section(f"{what.capitalize()} by distance", content, wide=True)


def _distances(first: int, count: int) -> str:
    return f"{first:,}" if count == 1 else f"{first:,} to {first + count - 1:,}"


def _iterations(record: dict[str, Any], found: dict[str, Any]) -> Section | None:
    """Return a chart of PageRank's iterations, by the change of each."""
    every = entries(record, "iterations")
    known = [(i, number(some, "change") or 0) for i, some in enumerate(every, 1)]
    drawn = [(i, change) for i, change in known if change > 0]
    if not drawn:
        return None
    together = -(-len(drawn) // MOST_COLUMNS)
    points = [
        Point((i - 0.5) / len(every), change, f"iteration {i:,}: change {figure(change)}")
        for i, change in _each(drawn, together)
    ]
    tolerance = max(0.0, number(found, "tolerance") or 0)
    values = [point.value for point in points] + ([tolerance] if tolerance else [])
    frame = Frame(
        "Change by iteration",
        "A dot for each iteration, on a logarithmic scale; the table has the numbers.",
        logarithmic(min(values), max(values)),
        "change (L1)",
        [Tick((i - 0.5) / len(every), f"{i:,}") for i in integers(1, len(every))],
        "iteration",
    )
    layers = [joined(frame, points, "line"), dots(frame, points)]
    if tolerance:
        layers.append(across(frame, tolerance, f"tolerance {figure(tolerance)}"))
    told = f"The last of {len(every):,} iterations changed {figure(drawn[-1][1])}, as the sum of "
    told += "all vertices' changes. The scale is logarithmic."
    if together > 1:
        told += f" Of every {together:,} iterations, one is drawn and listed."
    if len(drawn) < len(every):
        told += f" {len(every) - len(drawn):,} changed nothing, or are not known: they have no dot."
    rows = [
        (
            f"{i:,}",
            figure(number(some, "change")),
            figure(number(some, "edges_examined")),
            duration(number(some, "seconds")),
        )
        for i, some in _each(list(enumerate(every, 1)), together)
    ]
    made = table("Iterations", ("iteration", "change", "edges examined", "time"), rows)
    content = [tag("p", told), tag("figure", chart(frame, *layers))]
    return Section(
        "Change by iteration", [*content, beside("Table of iterations", made, len(rows))]
    )


def _each(items: list[Item], step: int) -> list[Item]:
    """Return each ``step``-th item, and the last one."""
    return items[::-step][::-1]


def _top(algorithm: str, found: dict[str, Any]) -> Section | None:
    """Return a table of the vertices with the greatest values."""
    top = found.get("top")
    if not top:
        return None
    rows = [
        Bar(str(vertex), None if value is None else float(value), figure(value))
        for vertex, value in top
    ]
    made = bars(f"The greatest {algorithm}", ("vertex", algorithm), rows)
    return Section("Greatest values", [made])


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
    *("reached", "depth", "components", "largest", "iterations", "converged", "farthest"),
    *("diameter_at_least", "diameter_at_most"),
)


def _files(result: Result) -> str:
    return f"{len(result.files):,}, of {size(result.bytes)}"
