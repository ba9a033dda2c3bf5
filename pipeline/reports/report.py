"""Documents of ``info`` and ``plan`` for machines, and their lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...partition.disk.memory import format_bytes
from ...partition.disk.outputs import is_result, is_store
from ...partition.disk.urls import named
from ...partition.errors import InputError
from ...partition.input.edges import EdgeList, open_edges
from ...partition.input.id_types import type_name
from ...partition.store.grid import Grid
from ...partition.store.layout import ROWS_IN_ONE_PARTITION, default_partitions, table_1_bytes
from ...partition.store.store import Store, open_store
from ..questions.bfs import BetweenRecord, SuperstepRecord
from ..questions.facts import several
from ..results.result import open_result
from ..run.plan import Plan
from ..summary import MARK, table_lines
from .projection import project
from .result import result_document, result_lines

Document = dict[str, Any]


def describe(
    path: str | Path, src: str = "src", dst: str = "dst", ranks: int | None = None
) -> Document:
    """Describe an edge list, a store or a result, without searching it.

    ranks: for a store, the number of ranks to project bytes held and sent for (projection.py).
    """
    path = named(path)
    if is_store(path):
        store = open_store(path)
        projected = {"projection": project(store, ranks)} if ranks else {}
        return {**store_document(store), **projected}
    if ranks:
        raise InputError(f"{path} is not a store: --ranks is only for stores")
    try:
        return result_document(open_result(path))
    except InputError:  # no result: an edge list, or the reason why it is none of the three
        if is_result(path):
            raise
        return edges_document(open_edges(path, src, dst))


def edges_document(edges: EdgeList) -> Document:
    return {
        "kind": "edge list",
        "files": len(edges.files),
        "bytes": edges.bytes,
        "rows": edges.rows,
        "src": edges.src,
        "dst": edges.dst,
        "other_columns": edges.other_columns,
        "id_type": type_name(edges.id_type),
        "id_bounds": edges.bounds,
        "default_partitions": default_partitions(edges.rows),
        "rows_in_one_partition": ROWS_IN_ONE_PARTITION,
        "notes": list(edges.notes),
    }


def store_document(store: Store) -> Document:
    info = store.info
    entries = sum(info.subgraph_edges.values())
    return {
        "kind": "store",
        **asdict(info),
        "default_partitions": default_partitions(info.rows),
        "rows_in_one_partition": ROWS_IN_ONE_PARTITION,
        "subgraph_shares": {
            name: count / entries if entries else 0.0 for name, count in info.subgraph_edges.items()
        },
        "bytes": store.bytes,
        "subgraph_bytes": sum(
            record.bytes for name, record in store.files.items() if name.startswith("partition-")
        ),
        "table_1_bytes": table_1_bytes(
            info.vertices, info.delegates, info.partitions, entries, info.subgraph_edges["nn"]
        ),
        "edge_list_bytes": 16 * entries,
    }


def plan_document(plan: Plan) -> Document:
    budget = plan.budget
    return {
        "kind": "plan",
        "exact": plan.exact,
        "device": plan.device,
        "memory_limit_bytes": budget.limit,
        "baseline_bytes": budget.baseline,
        "projected_peak_bytes": plan.peak_bytes,
        "worst_step": plan.worst.name,
        "workers": budget.workers,
        "threads": budget.threads * budget.sharing * budget.apart,
        "in_memory": plan.shape.in_memory,
        "spans": plan.shape.spans,
        "batch_rows": plan.shape.batch_rows,
        "scratch_bytes": plan.scratch_bytes,
        "store_bytes": plan.final_bytes,
        "notes": list(plan.notes),
        "steps": [{**asdict(step), "projected_bytes": plan.held(step)} for step in plan.steps],
    }


def lines(document: Document, mark: str = MARK) -> str:
    """Return the document as text for a person. mark: the letter that bars are made of."""
    form = {
        "edge list": _edges_lines,
        "store": _store_lines,
        "plan": _plan_lines,
    }
    if document["kind"] == "result":
        return result_lines(document, mark)
    return form[document["kind"]](document)


def _partitions(document: Document) -> str:
    return (
        f"{document['default_partitions']} by default (1 up to "
        f"{document['rows_in_one_partition']:,} rows; beyond that, the least power of two that "
        "keeps each partition below)"
    )


def _edges_lines(document: Document) -> str:
    bounds, other_columns = document["id_bounds"], ", ".join(document["other_columns"])
    columns = f"{document['src']} -> {document['dst']}, {document['id_type']}"
    return table_lines(
        [
            ("edge list", f"{document['rows']:,} rows; {document['files']:,} file(s)"),
            ("bytes", f"{document['bytes']:,}"),
            ("columns", columns + (f"; not read: {other_columns}" if other_columns else "")),
            ("ids", f"{bounds[0]:,} to {bounds[1]:,}" if bounds else "no bounds recorded"),
            ("partitions", _partitions(document)),
        ]
    )


def _by_formula(document: Document) -> str:
    if document["layout"] != "delegate":
        return ""
    return f"; by Table I of the delegates' paper: {document['table_1_bytes']:,}"


def _layout(document: Document) -> str:
    name, grid = document["layout"], document["grid"]
    return f"{name}, a grid of {Grid(*grid)} partitions" if grid else name


def _loops(document: Document) -> str:
    if document["loops"] is None:
        return f"{document['self_loops']:,} self-loops"
    kept = several(document["self_loops"], "self-loop", "self-loops")
    return f"kept {kept} of {several(document['loops'], 'vertex', 'vertices')}"


def _store_lines(document: Document) -> str:
    rows = [
        ("store", "directed" if document["directed"] else "undirected"),
        ("vertices", f"{document['vertices']:,} ({document['id_type']})"),
        (
            "edges",
            f"{document['edges']:,} of {document['rows']:,} rows; dropped "
            f"{document['duplicates']:,} duplicates, " + _loops(document),
        ),
        ("order", document["order"]),
    ]
    if document["weights"] is not None:
        rows.insert(
            3,
            (
                "weights",
                "{column}: {kind} from {least:g} to {most:g}, mean {mean:g}; "
                "duplicates: {duplicates}".format(**document["weights"])
                + _rounded(document["weights"]),
            ),
        )
    if document["partitions"] == 1:
        rows.append(("partitions", "1, as one CSR: no threshold and no delegates"))
    else:
        rows += [
            ("partitions", f"{document['partitions']}; {_partitions(document)}"),
            ("layout", _layout(document)),
        ]
    if document["layout"] == "delegate":
        rows += [
            (
                "threshold",
                f"{document['threshold']:,} (chosen by: {document['threshold_chosen_by']}), "
                f"{document['nn_row_share']:.1%} of rows are nn",
            ),
            (
                "delegates",
                f"{document['delegates']:,} "
                f"({document['delegates'] / document['vertices']:.2%} of vertices; at most "
                f"4n/P = {4 * document['vertices'] // document['partitions']:,} wanted)",
            ),
        ]
    rows += [
        (name, f"{count:,} edges ({document['subgraph_shares'][name]:.1%})")
        for name, count in document["subgraph_edges"].items()
        if document["layout"] == "delegate"
    ]
    rows += [
        (
            "bytes",
            f"{document['bytes']:,}; {document['subgraph_bytes']:,} of them subgraphs; their "
            f"edges as a 16-byte edge list: {document['edge_list_bytes']:,}"
            + _by_formula(document),
        ),
        ("degrees", "vertices"),
    ]
    for bucket, count in enumerate(document["degree_histogram"]):
        low, high = (0, 0) if bucket == 0 else (1 << (bucket - 1), (1 << bucket) - 1)
        name = f"{low:,}" if low == high else f"{low:,}-{high:,}"
        rows.append((f"  {name}", f"{count:,}"))
    told = table_lines(rows)
    return told + _projection_lines(document["projection"]) if "projection" in document else told


def _rounded(weights: Document) -> str:
    """Say how many weights were rounded when they were read; nothing where none were, or where that
    is not known.
    """
    if not weights["rounded"]:
        return ""
    change = f"the greatest change is {weights['greatest_change']:.2g} of the weight"
    return f"; {weights['rounded']:,} rounded to 32 bits, {change}"


def _projection_lines(projection: Document) -> str:
    """Return tables of the bytes that ranks would hold and send."""
    names = list(projection["ranks"][0]["edges"])
    head = "".join(f"{name:>16}" for name in names)
    lines = ["", "", f"{'rank':<6}{'vertices':>14}{head}{'bytes':>16}{'by Table I':>16}"]
    for rank, held in enumerate(projection["ranks"]):
        edges = "".join(f"{held['edges'][name]:>16,}" for name in names)
        of_table = f"{held['table_1_bytes']:>16,}" if "dd" in names else ""
        lines.append(f"{rank:<6}{held['vertices']:>14,}{edges}{held['bytes']:>16,}{of_table}")
    lines += [
        "",
        f"{'bytes sent':<12}{'at most a superstep':>20}{'(a pull)':>16}{'papers: a superstep':>22}"
        f"{'a search':>18}",
    ]
    for layout, sent in projection["bytes_sent"].items():
        line = f"{layout:<12}{sent['push_superstep']:>20,.0f}{sent['pull_superstep']:>16,.0f}"
        superstep = sent["paper_superstep"]
        line += f"{'-' if superstep is None else f'{superstep:,.0f}':>22}"
        lines.append(f"{line}{sent['paper_search']:>18,.0f}")
    return "\n".join(lines)


def _plan_lines(document: Document) -> str:
    if document["in_memory"]:
        held = "edges are held in memory"
    else:
        held = (
            "edges go through scratch files"
            if document["scratch_bytes"]
            else "edges are read as needed"
        )
    size = format_bytes
    rows = [
        ("plan", f"{held}; {'exact' if document['exact'] else 'upper bounds'}"),
        ("device", document["device"] or "cpu"),
        ("memory limit", size(document["memory_limit_bytes"])),
        (
            "most held",
            f"{size(document['projected_peak_bytes'])} in step '{document['worst_step']}', "
            f"{size(document['baseline_bytes'])} of it Python and libraries",
        ),
    ]
    rows += [
        (name, size(document[f"{name}_bytes"]))
        for name in ("scratch", "store")
        if document[f"{name}_bytes"]
    ]
    head = ("step", "tasks", "at once", "bytes a task", "on a device", "shared", "scratch", "store")
    table = [head] + [
        (
            step["name"],
            f"{step['tasks']:,}",
            str(step["at_once"]),
            *(
                size(step[name]) if step[name] else "-"
                for name in (
                    "task_bytes",
                    "device_bytes",
                    "shared_bytes",
                    "disk_bytes",
                    "final_bytes",
                )
            ),
        )
        for step in document["steps"]
    ]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    steps = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    ]
    return "\n".join([table_lines(rows), "", *steps])


def supersteps_table(steps: Sequence[SuperstepRecord], between: BetweenRecord | None = None) -> str:
    """Return a table with a line for each superstep. between: sums of the supersteps that ``steps``
    leaves out.
    """
    lines = [
        f"{'level':>6} {'direction':<10}{'frontier':>14}{'found':>14}{'examined':>16}{'us':>12}"
    ]
    for step in steps:
        if between is not None and step["level"] == between["last_level"] + 1:
            ways = sorted({way for counts in between["directions"].values() for way in counts})
            lines.append(
                f"{'...':>6} {'/'.join(ways):<10}{'':>14}{between['found']:>14,}"
                f"{between['edges_examined']:>16,}{between['seconds'] * 1e6:>12,.1f}  "
                f"levels {between['first_level']:,} to {between['last_level']:,}: "
                f"--profile FILE.parquet writes all of them"
            )
        lines.append(
            f"{step['level']:>6} {'/'.join(sorted(set(step['direction'].values()))):<10}"
            f"{step['frontier']:>14,}{step['found']:>14,}{step['edges_examined']:>16,}"
            f"{step['seconds'] * 1e6:>12,.1f}"
        )
    return "\n".join(lines)
