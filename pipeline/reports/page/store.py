"""A page about a store: degrees, kinds of edges, partitions, files, and its build."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import log2
from xml.etree.ElementTree import Element

import numpy as np

from ....partition.store.layout import kept_subgraphs
from ....partition.store.manifest import GraphInfo
from ....partition.store.store import Store
from ..numbers import compact, duration, figure, number, share, size
from . import run
from .charts import MOST_COLUMNS, Column, Frame, Point, Tick, chart, columns, dots, stems, upright
from .markup import tag
from .page import Figure, Page, Section
from .scales import integers, linear, logarithmic
from .tables import Bar, bars, beside, table

_MOST_BARS = 24


def page_of_store(store: Store) -> Page:
    info = store.info
    record, unknown = run.read_record(store.path)
    if record and run.at(record, "graph", "fingerprint") != info.fingerprint:
        record, unknown = (
            {},
            ["What built it, and for how long: the run record beside it is of another graph."],
        )
    seconds = number(record, "seconds")
    return Page(
        kind="Store",
        name=store.path.name,
        command=run.command(record),
        figures=[
            Figure("vertices", figure(info.vertices), f"ids are {info.id_type}"),
            Figure(
                "edges",
                figure(info.edges),
                f"{'directed' if info.directed else 'undirected'}, of {info.rows:,} rows",
            ),
            Figure("partitions", figure(info.partitions), _layout(info)),
            Figure(
                "on disk",
                size(store.bytes),
                f"{store.bytes / max(1, info.edges):.1f} bytes an edge",
            ),
            *([] if seconds is None else [Figure("built in", duration(seconds))]),
            *filter(None, [run.peak(record)]),
        ],
        unknown=unknown,
        notes=run.notes(record),
        sections=[
            _degrees(info),
            _kinds(info),
            _partitions(store),
            _rows(info),
            _files(store),
            run.steps(record),
            run.memory(record),
            run.the_run(
                record, store.path, [("order", info.order), ("fingerprint", info.fingerprint)]
            ),
        ],
    )


def _layout(info: GraphInfo) -> str:
    if info.partitions == 1:
        return "one CSR"
    return f"layout {info.layout}" + (f", a grid of {info.grid}" if info.grid else "")


def _separates(info: GraphInfo) -> bool:
    return info.layout == "delegate" and info.partitions > 1


def _degrees(info: GraphInfo) -> Section:
    """Return a chart of vertices by degree, both by powers."""
    counts = info.degree_histogram
    first = next((bucket for bucket, count in enumerate(counts) if count), 0)
    shown = counts[first:]
    points = [
        Point((i + 0.5) / len(shown), count, f"degree {_range(first + i)}: {count:,} vertices")
        for i, count in enumerate(shown)
        if count
    ]

    def place(degree: int) -> float:
        """Return the place whose right side begins with this degree."""
        return ((1 + log2(degree) if degree else 0) - first) / len(shown)

    ends = [0, *(10**power for power in range(20))]
    ticks = [Tick(at, compact(end)) for end in ends if 0 <= (at := place(end)) <= 1]
    told = "Vertices of each range of degrees, from one power of two to the next; both axes are "
    told += "logarithmic."
    frame = Frame(
        "Vertices by degree",
        "A dot for each range of degrees; the table has the numbers.",
        logarithmic(min((p.value for p in points), default=1), max(1, *counts)),
        "vertices",
        ticks,
        "degree",
    )
    layers = [stems(frame, points), dots(frame, points)]
    if _separates(info):
        told += (
            f" Right of the threshold are {info.delegates:,} delegates, "
            f"{share(info.delegates, info.vertices)} of all vertices."
        )
        if 0 <= (at := place(info.threshold + 1)) <= 1:
            layers.append(upright(frame, at, f"threshold {info.threshold:,}"))
    rows = [
        (_range(first + i), f"{count:,}", share(count, info.vertices))
        for i, count in enumerate(shown)
    ]
    made = table("Vertices by degree", ("degree", "vertices", "share"), rows)
    content = [tag("p", told), tag("figure", chart(frame, *layers))]
    return Section("Degrees", [*content, beside("Table of degrees", made, len(rows))])


def _range(bucket: int) -> str:
    low, high = (0, 0) if bucket == 0 else (1 << (bucket - 1), (1 << bucket) - 1)
    return f"{low:,}" if low == high else f"{low:,}\u2013{high:,}"


_CHOSEN = {
    "user": "was asked for",
    "nn": "is the largest that leaves few rows to nn",
    "delegates": "is the least that keeps to 4n/P delegates",
    "no delegates": "leaves no delegates",
}


def _kinds(info: GraphInfo) -> Section | None:
    """Return a section on kinds of edges; None where edges are not separated."""
    if not _separates(info):
        return None
    whole = sum(info.subgraph_edges.values())
    rows = [
        Bar(name, count, figure(count), (share(count, whole),))
        for name, count in info.subgraph_edges.items()
    ]
    told = f"Vertices of degree above {info.threshold:,} are delegates (d), the others normal (n). "
    told += f"The threshold {_CHOSEN[info.threshold_chosen_by]}. {share(info.nn_row_share, 1)} of "
    told += "the input's rows are nn: along these alone a vertex is sent to its owner."
    made = bars("Entries of each kind", ("kind of edge", "entries", "share"), rows)
    return Section("Edges by kind", [tag("p", told), made])


def _partitions(store: Store) -> Section | None:
    """Return a section on the balance of partitions; None for one partition."""
    info = store.info
    if info.partitions == 1:
        return None
    names = kept_subgraphs(info.grid, info.directed)
    entries = [
        sum(store.files[file].length(np.uint32) for name in names for file in store.shards(p, name))
        for p in range(info.partitions)
    ]
    held = {
        int(folder.removeprefix("partition-")): sum(store.files[name].bytes for name in files)
        for folder, files in groupby(
            sorted(name for name in store.files if name.startswith("partition-")),
            key=lambda name: name.partition("/")[0],
        )
    }
    mean = sum(entries) / len(entries)
    told = f"The fullest partition holds {max(entries) / mean:.3f}" if mean else "None holds any: 0"
    told += " times the entries of the mean one."
    head = ("partition", "entries", "bytes")
    if info.partitions <= _MOST_BARS:
        rows = [
            Bar(str(p), count, figure(count), (size(held.get(p, 0)),))
            for p, count in enumerate(entries)
        ]
        return Section("Partitions", [tag("p", told), bars("Entries by partition", head, rows)])
    drawn, remark = _fullest(entries)
    cells = [(str(p), figure(count), size(held.get(p, 0))) for p, count in enumerate(entries)]
    made = table("Entries by partition", head, cells)
    content = [tag("p", told + remark), tag("figure", drawn)]
    return Section("Partitions", [*content, beside("Table of partitions", made, len(cells))])


def _fullest(entries: Sequence[int]) -> tuple[Element, str]:
    """Draw a column for each partition, or for the fullest of several in a row; return the chart
    and a sentence that says which.
    """
    together = -(-len(entries) // MOST_COLUMNS)
    values = [max(entries[i : i + together]) for i in range(0, len(entries), together)]
    width = 1 / len(values)
    made = [
        Column(i * width, (i + 1) * width, value, "plain", f"partition {i * together}: {value:,}")
        for i, value in enumerate(values)
    ]
    last = len(entries) - 1
    frame = Frame(
        "Entries by partition",
        "A column for each partition, or for the fullest of several; the table has the numbers.",
        linear(max(values), whole=True),
        "entries",
        [Tick((at + 0.5) / len(entries), f"{at:,}") for at in integers(0, last)],
        "partition",
    )
    told = f" Each column is the fullest of {together:,} in a row." if together > 1 else ""
    return chart(frame, columns(frame, made)), told


def _rows(info: GraphInfo) -> Section:
    """Return a section on the fate of the input's rows."""
    parts = {
        "edges": info.edges,
        "duplicates": info.duplicates,
        "self-loops": info.self_loops,
    }
    rows = [
        Bar(name, count, figure(count), (share(count, info.rows),)) for name, count in parts.items()
    ]
    told = f"Of {info.rows:,} rows the duplicates and the self-loops were dropped."
    if info.loops is not None:
        told = (
            f"Of {info.rows:,} rows the duplicates were dropped; {info.loops:,} vertices keep the "
            "weight of their self-loops."
        )
    made = bars("Rows of the input", ("became", "rows", "share"), rows)
    return Section("From rows to edges", [tag("p", told), made])


def _files(store: Store) -> Section:
    sizes: dict[str, int] = {}
    for name, file in store.files.items():
        kind = _file_kind(name)
        sizes[kind] = sizes.get(kind, 0) + file.bytes
    sizes["manifest"] = store.bytes - sum(sizes.values())
    rows = [
        Bar(kind, held, size(held), (share(held, store.bytes),))
        for kind, held in sorted(sizes.items(), key=lambda item: -item[1])
    ]
    entries = sum(store.info.subgraph_edges.values())
    told = f"{size(store.bytes)} in {len(store.files) + 1:,} files. As a list of pairs of 8-byte "
    told += f"ids, its {entries:,} entries would be {size(16 * entries)}."
    made = bars("Bytes by kind of file", ("files", "bytes", "share"), rows)
    return Section("On disk", [tag("p", told), made])


def _file_kind(name: str) -> str:
    """Return the kind of a store's file by its name.

    >>> _file_kind("partition-0000/nn.targets-0000.npy"), _file_kind("vertices.parquet")
    ('targets', 'vertices')
    """
    stem = name.rpartition("/")[2].removesuffix(".npy").removesuffix(".parquet")
    return stem.rpartition(".")[2].partition("-")[0]
