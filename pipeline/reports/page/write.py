"""Writing of a page: ``path`` decides the kind of page, and the output appears whole."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ....partition.disk.files import open_regular
from ....partition.disk.lock import writing_alone
from ....partition.disk.outputs import (
    check_file,
    is_store,
    made_folders,
    naming_full_disk,
    publish_file,
    write_file,
)
from ....partition.disk.system_errors import naming_file, raise_failure
from ....partition.disk.urls import AnyPath, named, refuse_remote
from ....partition.errors import InputError
from ....partition.input.edges import EdgeList, open_edges
from ....partition.store.store import Store, open_store
from ...results.result import open_result
from .batch import jobs_file, page_of_batch
from .bench import is_bench, page_of_bench
from .page import GENERATOR, Page, render
from .result import page_of_result
from .store import page_of_store

_TAKES = "report takes a store, a result, a batch or bench's JSON"
_MARK = f'<meta name="generator" content="{GENERATOR} '.encode()


def write_page(
    path: AnyPath,
    output: AnyPath,
    overwrite: bool = False,
    graph: AnyPath | None = None,
    src: str = "src",
    dst: str = "dst",
    weight: str | None = None,
) -> None:
    """Write a page about a store, a result, a batch, or the output of ``bench --json``.

    graph: the store or the edge list that a result is of, to draw a part of it. src, dst, weight:
    the columns of an edge list. overwrite: whether another such page may be replaced. Raises
    InputError for a path that is none of the four, and for an output that may not be written.
    """
    refuse_remote(path, "report reads only from a disk of this machine: copy it there")
    check_file(output, "report", _is_page, overwrite, path)
    place = Path(output).absolute()
    with (
        naming_full_disk(place, lambda: ""),
        made_folders(place.parent),
        writing_alone(place) as folder,
    ):
        check_file(output, "report", _is_page, overwrite, path)  # again: nobody else writes now
        made = folder / place.name
        opened = None if graph is None else _open_graph(graph, src, dst, weight)
        write_file(made, render(page_of(Path(path), opened)))
        publish_file(made, place)


def _open_graph(graph: AnyPath, src: str, dst: str, weight: str | None) -> Store | EdgeList:
    if is_store(graph):
        if (src, dst, weight) != ("src", "dst", None):
            raise InputError(f"{graph} is a store: leave out --src, --dst and --weight")
        return open_store(Path(graph))
    return open_edges(named(graph), src, dst, weight)


def page_of(path: Path, graph: Store | EdgeList | None = None) -> Page:
    """Return the page about what ``path`` is. graph: of a result, to draw a part of it."""
    path = Path(os.path.normpath(path))
    if path.name in ("", ".."):
        path = Path(os.path.abspath(path))  # by its name
    page = _page_without_graph(path)
    if page is not None and graph is not None:
        raise InputError(f"{path}: only a result is drawn with its graph: leave out --graph")
    if page is not None:
        return page
    try:
        result = open_result(path)
    except InputError as error:
        raise InputError(f"{error}; {_TAKES}") from error
    return page_of_result(result, path, graph)


def _page_without_graph(path: Path) -> Page | None:
    """Return the page about a store, a batch or a bench; None for anything else."""
    if is_store(path):
        return page_of_store(open_store(path))
    if (jobs := jobs_file(path)) is not None:
        return page_of_batch(jobs)
    if path.is_file() and (document := _json(path)) is not None:
        if is_bench(document):
            return page_of_bench(document, path)
        record = path.name.endswith(".run.json")
        told = (
            "it is the run record of an output: give the output"
            if record
            else "bench did not print it"
        )
        raise InputError(f"{path}: {told}; {_TAKES}")
    return None


def _json(path: Path) -> Any:
    """Return a JSON document; None for any other file: a result may be a file, too, and a large
    one.
    """
    with naming_file(path), open(path, "rb") as file:
        if file.read(1000).lstrip()[:1] not in (b"{", b"["):
            return None
        file.seek(0)
        try:
            return json.load(file)
        except (ValueError, RecursionError):
            return None


def _is_page(path: Path) -> bool:
    """Return whether a file is a page that delegraph wrote."""
    try:
        with open(open_regular(path), "rb") as file:
            return _MARK in file.read(1000)
    except OSError as error:
        raise_failure(path, error)
        return False
