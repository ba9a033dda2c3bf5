"""The document of a result that ``info`` shows, and its lines for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ...partition.input.arrow import as_numpy
from ...partition.input.id_types import stored
from ..questions import FORMS, Form
from ..questions.facts import plural
from ..results.findings import Findings, Integers, check_values
from ..results.result import Result
from ..summary import MARK, distribution_rows, findings_of, shortened, table_lines, top_rows

Document = dict[str, Any]


def result_document(result: Result) -> Document:
    """Describe a result by its own columns."""
    info = asdict(result.info) if result.info else {}
    info |= info.pop("options", {})
    info |= info.pop("measured", {})
    form = FORMS[result.algorithm]
    return {
        "kind": "result",
        "files": len(result.files),
        "bytes": result.bytes,
        "rows" if form.finding is None else "vertices": result.rows,
        **info,
        "algorithm": result.algorithm,
        **_facts(result, form),
    }


def _facts(result: Result, form: Form) -> Document:
    if form.finding is not None:
        return _named(findings_of(result))
    return _each_facts(result) if form.name == "bfs-each" else {}


def _named(findings: Findings) -> Document:
    """Return findings, with what the record of the run calls them."""
    found = findings.facts()
    counted = findings.distribution
    if findings.kind == "distances":
        if isinstance(counted, Integers):
            levels = counted.counts.tolist()
            found |= {"depth": max(0, len(levels) - 1), "vertices_by_distance": levels}
        else:
            found["farthest"] = found["top"][0][1] if found["top"] else 0.0
    elif findings.kind == "groups":
        found[plural(findings.read)] = found.pop("groups")
    return found


def _each_facts(result: Result) -> Document:
    """Return the facts on all searches together."""
    sources: set[object] = set()
    levels = Integers()
    for batch in result.batches(1 << 20, ("source", "distance")):
        sources.update(stored(batch.column("source")).unique().to_pylist())
        hops = as_numpy(batch.column("distance"))
        check_values(hops, "distance")
        levels.add(hops)
    counts = levels.counts.tolist()
    return {
        "distribution": [list(level_range) for level_range in levels.ranges()],
        "searches": len(sources),
        "depth": max(0, len(counts) - 1),
        "rows_by_distance": counts,
    }


_FINDINGS = [form.finding for form in FORMS.values() if form.finding is not None]
_GROUPS = list(dict.fromkeys(plural(column) for kind, column in _FINDINGS if kind == "groups"))
"""Names of groups of vertices, in the plural."""

_APART = {
    *("kind", "algorithm", "files", "vertices", "rows", "bytes", "version"),
    *(*_GROUPS, "alone", "reached", "unreached", "farthest", "column", "top", "distribution"),
}
"""Facts of a result that have lines of their own; others are the graph and the options."""


def result_lines(document: Document, mark: str = MARK) -> str:
    """Return a result's document as text for a person. mark: the letter that bars are made of."""
    if document["algorithm"].startswith("bfs"):
        return _search_lines(document, mark)
    rows = [("result", f"of {document['algorithm']}; {document['files']:,} file(s)")]
    rows += _counts(document, "vertices", "rows", "bytes")
    rows += [
        (name, shortened(value))
        for name, value in document.items()
        if name not in _APART and value is not None
    ]
    rows += _counts(document, *_GROUPS, "alone", "reached", "unreached")
    if "farthest" in document:
        rows.append(("farthest", f"{document['farthest']:g}"))
    return table_lines([*rows, *_found_rows(document, mark)])


def _counts(document: Document, *names: str) -> list[tuple[str, str]]:
    return [(name, f"{document[name]:,}") for name in names if name in document]


def _found_rows(document: Document, mark: str) -> list[tuple[str, str]]:
    form = document["algorithm"]
    if "distribution" not in document:
        return []
    top = top_rows(form, document, len(document["top"]))
    return [*top, *distribution_rows(form, document, mark)]


def _search_lines(document: Document, mark: str) -> str:
    several = document["algorithm"] == "bfs-each"
    if several:
        found = f"{document['rows']:,} rows of {document['searches']:,} searches"
    else:
        found = f"{document['reached']:,} of {document['vertices']:,} vertices reached"
    rows = [("result", found), ("depth", f"{document['depth']:,}")]
    rows += [
        (name, shortened(document[name]))
        for name in ("source", "sources", "directed", "max_depth", "graph")
        if document.get(name) is not None
    ]
    if several:
        document = {"top": [], **document}
    return table_lines([*rows, *_found_rows(document, mark)])
