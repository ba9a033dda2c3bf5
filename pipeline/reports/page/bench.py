"""Page about the output of ``bench --json``: rates of searches, by numbers of ranks, or with and
without optimizations; or runs of an algorithm.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log2
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from ...results.supersteps import MOST_LISTED
from ..numbers import (
    UNKNOWN,
    at,
    compact,
    duration,
    entries,
    figure,
    number,
    numbers,
    share,
    size,
    text,
    time_unit,
)
from . import run
from .charts import Frame, Point, Tick, chart, dots, joined
from .levels import levels
from .markup import Content, tag
from .page import Figure, Page, Section
from .scales import Scale, linear, logarithmic
from .tables import Bar, bars, table

Document = dict[str, Any]

_QUARTILES = ("min", "q1", "median", "q3", "max")
_CHECKED = "Each result was checked by Graph500's five rules; a bench that finds one broken fails."


def is_bench(document: Any) -> bool:
    """Return whether a document is one of the four that ``bench --json`` prints."""
    if isinstance(document, list):
        return bool(document) and all(isinstance(at(row, "report"), dict) for row in document)
    return isinstance(document, dict) and any(
        key in document for key in ("gteps", "by_hand", "evps")
    )


def page_of_bench(document: Any, path: Path) -> Page:
    if isinstance(document, list):
        algorithm = "evps" in document[-1]["report"]
        return _of_algorithm(document, path) if algorithm else _of_ranks(document, path)
    if "evps" in document:
        return _of_algorithm([{"report": document}], path)
    return _of_ways(document, path) if "by_hand" in document else _of_one(document, path)


def _of_one(report: Document, path: Path) -> Page:
    return Page(
        kind="Bench",
        name=_graph_name(report),
        command=None,
        figures=_figures(report),
        sections=[_rates(report), _before(report), _the_run(report, path)],
        unknown=_lacks(report),
    )


def _of_algorithm(rows: list[Document], path: Path) -> Page:
    """Return the page of an algorithm, by one process, or by one or more numbers of ranks."""
    report = rows[-1]["report"]
    figures = _ranks(rows)
    for name, key in (("a run", "seconds"), ("an iteration", "iteration_seconds")):
        seconds = numbers(report, key)
        if "median" in seconds and "max" in seconds:
            worst = f"slowest {duration(seconds['max'])}"
            figures.append(Figure(f"{name}, median", duration(seconds["median"]), worst))
    figures.append(Figure("runs", figure(number(report, "runs")), "the last result is valid"))
    evps = number(report, "evps")
    told = UNKNOWN if evps is None else compact(evps)
    figures.append(Figure("vertices and edges a second", told))
    return Page(
        kind=f"Bench of {text(at(report, 'algorithm'))}",
        name=_graph_name(report),
        command=None,
        figures=figures,
        sections=[_scaling(rows), _the_run(report, path)],
        unknown=[],
        notes=_notes(rows),
    )


def _ranks(rows: list[Document]) -> list[Figure]:
    """Return the figures on the ranks of the last row; none for one process."""
    last = rows[-1]
    ranks, efficiency = number(last, "ranks"), number(last, "efficiency")
    made = [] if ranks is None else [Figure("ranks", figure(ranks))]
    if len(rows) > 1 and efficiency is not None:
        note = f"with {figure(number(rows[0], 'ranks'))}, it is 100%"
        made.append(Figure("efficiency", share(efficiency, 1), note))
    return made


def _notes(rows: list[Document]) -> list[str]:
    return list(dict.fromkeys(note for row in rows for note in run.notes(row)))


def _of_ranks(rows: list[Document], path: Path) -> Page:
    """Return the page of searches by one or more numbers of ranks."""
    last = rows[-1]
    report = last["report"]
    return Page(
        kind="Bench by several workers",
        name=_graph_name(report),
        command=None,
        figures=[*_ranks(rows), *_figures(report)],
        sections=[
            _scaling(rows),
            _rates(report),
            _levels(at(last, "exchanged")),
            _exchanged(at(last, "exchanged")),
            _before(report),
            _the_run(report, path),
        ],
        unknown=_lacks(report),
        notes=_notes(rows),
    )


def _of_ways(report: Document, path: Path) -> Page:
    return Page(
        kind="Bench of optimizations",
        name=_graph_name(report),
        command=None,
        figures=[
            *_all_over_none(report),
            Figure("searches, each way", _searches(report)),
            *_depth(report),
        ],
        sections=[_added(report), _without(report), _before(report), _the_run(report, path)],
        unknown=[] if entries(report, "added") else ["The document has no rates of its ways."],
    )


def _graph_name(report: Document) -> str:
    graph = at(report, "graph")
    if path := at(graph, "path"):
        return Path(str(path)).name
    if not isinstance(graph, dict):
        return "a graph"
    if graph.get("kind") == "grid":
        return f"grid:{graph.get('height')}x{graph.get('width')}"
    return f"{graph.get('kind', 'a graph')}:{graph.get('scale', '?')}"


def _searches(report: Document) -> str:
    sources = at(report, "sources")
    return f"{len(sources):,}" if isinstance(sources, list) else UNKNOWN


def _figures(report: Document) -> list[Figure]:
    mean, rate = number(report, "gteps_harmonic_mean"), number(report, "gteps", "median")
    seconds = numbers(report, "search_seconds")
    made = []
    if mean is not None:
        made.append(Figure("GTEPS, harmonic mean", figure(mean), f"median {figure(rate)}"))
    if "median" in seconds and "max" in seconds:
        worst = f"slowest {duration(seconds['max'])}"
        made.append(Figure("search, median", duration(seconds["median"]), worst))
    made.append(Figure("searches", _searches(report), "no rule broken"))
    return [*made, *_depth(report)]


def _depth(report: Document) -> list[Figure]:
    depth = numbers(report, "depth")
    if "median" not in depth:
        return []
    note = f"{figure(depth.get('min'))} to {figure(depth.get('max'))}"
    return [Figure("depth, median", figure(depth["median"]), note)]


def _lacks(report: Document) -> list[str]:
    wanted = ("graph", "device", "sources", "search_seconds", "gteps", "depth")
    missing = [name.replace("_", " ") for name in wanted if name not in report]
    return [f"The document does not have: {', '.join(missing)}."] if missing else []


def _rates(report: Document) -> Section | None:
    """Return a chart of quartiles, as boxes; the document has no value of a single search."""
    rows: list[list[str]] = []
    boxes: list[Element] = []
    mean = number(report, "gteps_harmonic_mean")
    for name, key in (("rate, GTEPS", "gteps"), ("search", "search_seconds"), ("depth", "depth")):
        found = numbers(report, key)
        if not all(quartile in found for quartile in _QUARTILES):
            continue
        unit = time_unit(found["max"]) if key == "search_seconds" else None
        scale, label = (unit.scale, f"search, {unit.name}") if unit else (1, name)
        values = [found[quartile] / scale for quartile in _QUARTILES]
        boxes.append(_box(label, values, mean if key == "gteps" else None))
        told = duration if unit else figure
        rows.append([name, *(told(found[quartile]) for quartile in _QUARTILES)])
    if not rows:
        return None
    told = f"{_searches(report)} searches. {_CHECKED} A box holds the middle half of the searches, "
    told += "its thick line the median; the thin line goes from the least to the greatest"
    told += ", and the diamond is the harmonic mean." if mean is not None else "."
    made = table("Quartiles over the searches", ("of a search", *_QUARTILES), rows)
    return Section("Searches", [tag("p", told), tag("figure", *boxes), made], wide=True)


def _box(name: str, values: list[float], mean: float | None) -> Element:
    """Draw one row: whiskers from least to greatest, the box from the first to the third
    quartile.
    """
    least, first, middle, third, most = values
    scale = linear(most)
    at = [f"{100 * scale.place(value):.5g}%" for value in values]
    box = tag(
        "rect",
        class_="box",
        x=at[1],
        width=f"{max(0, 100 * (scale.place(third) - scale.place(first))):.5g}%",
        y=8,
        height=20,
    )
    words = f"{name}: {figure(least)} to {figure(most)}, median {figure(middle)}"
    return tag(
        "svg",
        tag("title", words),
        tag("text", name, class_="axis", x=0, y=-4),
        *_box_axis(scale),
        tag("line", class_="whisker", x1=at[0], x2=at[4], y1=18, y2=18),
        *(tag("line", class_="whisker", x1=x, x2=x, y1=13, y2=23) for x in (at[0], at[4])),
        box,
        tag("line", class_="median", x1=at[2], x2=at[2], y1=6, y2=30),
        None if mean is None else _diamond(scale.place(mean)),
        class_="chart box-chart",
        role="img",
        aria_label=words,
        height=58,
    )


def _box_axis(scale: Scale) -> Iterator[Element]:
    for value in scale.ticks:
        x = f"{100 * scale.place(value):.5g}%"
        yield tag("line", class_="grid", x1=x, x2=x, y1=2, y2=36)
        yield tag("text", compact(value), class_="tick", x=x, y=50, text_anchor="middle")


def _diamond(at: float) -> Element:
    drawn = tag("path", class_="diamond", d="M0 11L6 18L0 25L-6 18Z")
    return tag("svg", drawn, x=f"{100 * at:.5g}%", overflow="visible")


def _scaling(rows: list[Document]) -> Section | None:
    """Return a chart of rates by ranks, beside the rates of ranks that lose nothing."""
    found = [
        (int(ranks), rate)
        for row in rows
        if (ranks := number(row, "ranks") or 0) >= 1 and (rate := _rate_of(row) or 0) > 0
    ]
    if len(found) < 2:
        return None
    first, most = found[0][0], found[-1][0]
    a_rank = found[0][1] / first
    unit = "EVPS" if "evps" in rows[-1]["report"] else "GTEPS"
    ends = log2(first), log2(max(most, first * 2))

    def place(ranks: int) -> float:
        return 0.04 + 0.92 * (log2(ranks) - ends[0]) / (ends[1] - ends[0])

    measured = [
        Point(place(ranks), rate, f"{ranks} ranks: {figure(rate)} {unit}") for ranks, rate in found
    ]
    ideal = [Point(place(ranks), a_rank * ranks, "") for ranks, _ in found]
    rates = [point.value for point in (*measured, *ideal)]
    frame = Frame(
        f"{unit} by ranks",
        "What was measured, and a dashed line for rates that grow as the ranks do; the table has "
        "the numbers.",
        logarithmic(min(rates), max(rates)),
        unit,
        [Tick(place(ranks), f"{ranks:,}") for ranks, _ in found],
        "ranks",
    )
    drawn = chart(
        frame,
        joined(frame, ideal, "ideal"),
        joined(frame, measured, "line"),
        dots(frame, measured),
    )
    legend = tag(
        "div",
        tag("span", _stroke("line"), "measured"),
        tag("span", _stroke("ideal"), "ideal: the first rate, times the ranks"),
        class_="legend",
    )
    head = ("ranks", "efficiency", unit, "ideal", "median", "slowest", "sent a search", "graph")
    made = bars(
        "By ranks; medians over the runs, and the efficiency of a rank against the first row's",
        head,
        [_scaling_row(row, a_rank) for row in rows],
        max(1.0, *(number(row, "efficiency") or 0 for row in rows)),
    )
    told = f"The rate of {most:,} ranks is {figure(found[-1][1] / found[0][1])} "
    told += f"times that of {first:,}; ideal is {figure(most / first)} times. Both axes are "
    told += "logarithmic."
    content = [tag("p", told), tag("figure", legend, drawn), made]
    return Section("Rates by ranks", content, wide=True)


def _rate_of(row: Document) -> float | None:
    """Return the median rate of searches, or the mean rate of an algorithm."""
    gteps = numbers(row, "report", "gteps")
    return gteps.get("median", number(row, "report", "evps"))


def _stroke(kind: str) -> Element:
    drawn = tag("line", class_=kind, x1=1, x2=27, y1=7, y2=7)
    return tag("svg", drawn, width=28, height=14, aria_hidden="true")


def _scaling_row(row: Document, a_rank: float) -> Bar:
    """Return a row of the table with its efficiency as the bar: a rank's rate over that of a rank
    in the first row.
    """
    ranks, efficiency = number(row, "ranks"), number(row, "efficiency")
    seconds = numbers(row, "report", "search_seconds") or numbers(row, "report", "seconds")
    sent = numbers(row, "exchanged", "bytes_sent")
    cells = (
        figure(_rate_of(row)),
        UNKNOWN if ranks is None else figure(float(a_rank * ranks)),
        duration(seconds.get("median")),
        duration(seconds.get("max")),
        size(sum(sent.values())) if sent else "-",
        _graph_name(row["report"]),
    )
    told = UNKNOWN if efficiency is None else share(efficiency, 1)
    return Bar(figure(ranks), efficiency, told, cells)


def _levels(exchanged: Any) -> Section | None:
    """Return the levels of the search with the median time; on GPUs, which do not number levels,
    only if the record lists all.
    """
    found, subject = entries(exchanged, "levels"), "The search with the median time. "
    if any("examined" in level for level in found):
        if (number(exchanged, "supersteps") or 0) > MOST_LISTED:
            return None
        subject = "The search with the median time, on rank 0's GPU. "
        found = [_superstep(level) for level in found]
    return levels({"supersteps": found}, subject)


def _superstep(level: Document) -> Document:
    """Return a superstep of a GPU under the names of a record."""
    parts = (number(level, name) for name in ("found", "normals", "delegates"))
    return {
        "direction": {"all": level.get("direction")},
        "found": sum(part for part in parts if part is not None),
        "edges_examined": level.get("examined"),
        "seconds": level.get("seconds"),
    }


def _exchanged(exchanged: Any) -> Section | None:
    """Return a section on the bytes that ranks sent each other, and held."""
    sent = numbers(exchanged, "bytes_sent")
    if not sent:
        return None
    whole = sum(sent.values())
    rows = [Bar(kind, held, size(held), (share(held, whole),)) for kind, held in sent.items()]
    made = bars("Bytes sent a search, by kind", ("kind", "bytes", "share"), rows)
    told = f"{size(whole)} a search, in {figure(number(exchanged, 'supersteps'))} supersteps, both "
    told += f"on average. The rank that holds most holds {size(number(exchanged, 'held_bytes'))}."
    return Section("Sent between ranks", [tag("p", told), made])


def _before(report: Document) -> Section | None:
    """Return a section on the phases before the searches."""
    phases = {
        "preparation": number(report, "preparation_seconds"),
        "load": number(report, "load_seconds"),
        "compile": number(report, "compile_seconds"),
        "a search, median": number(report, "search_seconds", "median"),
    }
    if all(seconds is None for seconds in phases.values()):
        return None
    if phases["a search, median"] is None:
        del phases["a search, median"]  # of several ways, which have one each
    rows = [Bar(name, seconds, duration(seconds)) for name, seconds in phases.items()]
    return Section("Time before the searches", [bars("Seconds", ("phase", "time"), rows)])


def _all_over_none(report: Document) -> list[Figure]:
    """Return the figures on the effect of all optimizations together."""
    rates = [number(way, "gteps", "median") for way in entries(report, "added")]
    if len(rates) < 2 or not rates[0] or not rates[-1]:
        return []
    hand = number(report, "by_hand", "gteps", "median")
    return [
        Figure("GTEPS, all optimizations", figure(rates[-1]), f"by hand {figure(hand)}"),
        Figure("over none of them", f"{rates[-1] / rates[0]:.2f} times"),
    ]


def _added(report: Document) -> Section | None:
    """Return a chart of optimizations, added one after the other."""
    ways, hand = entries(report, "added"), at(report, "by_hand")
    if not ways:
        return None
    named, before = [], set()
    for way in ways:
        on = way.get("on")
        switched = [str(name) for name in on] if isinstance(on, list) else []
        new = [name for name in switched if name not in before]
        named.append((" ".join(new).replace("_", " ") or "none", way))
        before = {*switched}
    rows = [_way(f"+ {name}" if i else "baseline", way) for i, (name, way) in enumerate(named)]
    rows += [_way("kernels by hand", hand)]
    told = "Masked products without any optimization, then with one more from row to row; speed-up "
    told += "is over the row before, of the kernels by hand over all optimizations. "
    made = bars("Median rates", _WAY_HEAD, rows)
    return Section("One after the other", [tag("p", told, _CHECKED_BY_HAND), made], wide=True)


_WAY_HEAD = ("way", "GTEPS", "speed-up", "search", "edges examined")
_CHECKED_BY_HAND = "Every result was held against that of the kernels by hand."


def _way(name: str, way: Any) -> Bar:
    rate, speed_up = number(way, "gteps", "median"), number(way, "speed_up")
    edges = number(way, "edges_examined")
    cells = (
        "-" if speed_up is None else f"{speed_up:.2f} times",
        duration(number(way, "search_seconds", "median")),
        UNKNOWN if edges is None else figure(round(edges)),
    )
    return Bar(name, rate, figure(rate), cells)


def _without(report: Document) -> Section | None:
    ways = at(report, "without")
    if not isinstance(ways, dict) or not ways:
        return None
    rows = [_way(f"without {name.replace('_', ' ')}", way) for name, way in ways.items()]
    told = "All optimizations but one; speed-up is that of all optimizations over the row."
    made = bars("Median rates, all but one", _WAY_HEAD, rows)
    return Section("All but one", [tag("p", told), made], wide=True)


def _the_run(report: Document, path: Path) -> Section:
    graph = at(report, "graph")
    items: list[tuple[str, Content]] = [
        (f"graph's {name}" if name == "path" else name.replace("_", " "), text(value))
        for name, value in (graph.items() if isinstance(graph, dict) else ())
    ]
    for name in ("method", "seed"):
        if name in report:
            items.append((name, text(report[name])))
    return run.the_run(report, path, items)
