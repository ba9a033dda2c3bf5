"""Makers of an engine's Subject: the loaded graph, as those who write and record results need
it.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ...partition.input.arrow import TEXT_BYTES, string_ends
from ...partition.input.edges import EdgeList
from ...partition.input.id_types import is_string, type_name
from ...partition.input.ids import Ids
from ...partition.store.store import Store
from ..build.prepare import BuildOptions, fingerprint_of
from ..build.read import DenseEdges
from ..results.names import PARENT_BYTES, Names, names_of_ids
from ..results.result import writing_bytes
from ..run.records import GraphRecord, graph_record
from .engine import Subject

_WRITING = 64 << 20  # bytes of a task that writes a piece of the result, beside strings
_COPIES = 4  # copies of the strings: decoded, as the user's type, in pages, compressed


def subject_of(store: Store, names: Names) -> Subject:
    """Return the subject of a store."""
    return Subject(
        names, graph_record(store.info), store.info.layout, partial(writing_bytes, store)
    )


def subject_of_scan(edges: EdgeList, dense: DenseEdges, options: BuildOptions) -> Subject:
    """Return the subject of an edge list that is scanned in the order of its files, with arrays by
    dense id.

    dense: the edges, read with their self-loops counted.
    """
    names = names_of_ids(dense.ids, dense.present)
    assert dense.self_loops is not None
    record = GraphRecord(
        fingerprint=fingerprint_of(edges, options),
        directed=options.directed,
        vertices=sum(names.pieces),
        rows=edges.rows,
        self_loops=dense.self_loops,
        loops=None,
        duplicates=None,
        id_type=type_name(edges.id_type),
        weights=None,
    )
    return subject_by_ids(record, dense.ids, names, "edges")


def subject_by_ids(record: GraphRecord, ids: Ids, names: Names, layout: str) -> Subject:
    """Return the subject of an edge list whose ids are in memory."""
    held, task = 8 * ids.domain, _WRITING + _COPIES * _text_at_once(ids)
    return Subject(names, record, layout, lambda tasks: held + tasks * task)


def _text_at_once(numbering: Ids) -> int:
    """Return a bound on the characters of vertices and of parents that a task writes at once; 0
    unless ids are strings.
    """
    if numbering.values is None or not is_string(numbering.id_type):
        return 0
    longest = np.diff(string_ends(numbering.values)).max(initial=0)
    return TEXT_BYTES + PARENT_BYTES + 2 * int(longest)
