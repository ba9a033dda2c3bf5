"""The run's record: what ran, on which input, how long, and what every superstep did.

It is written beside every output (``distances/`` -> ``distances.run.json``). These types are its
schema; a test holds the records against them, and docs/reference/run-record.md explains each key.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ..._version import __version__
from ...kernels.gpu.device import Device
from ...partition.disk.digests import folder_digests
from ...partition.secrets import without_secrets
from .peak import peak_bytes

if TYPE_CHECKING:
    from ...partition.store.manifest import GraphInfo

SCHEMA_VERSION = 2


class StepRecord(TypedDict):
    name: str
    tasks: int
    projected_bytes: int
    seconds: float
    reused: bool


class PlanRecord(TypedDict):
    memory_limit_bytes: int
    steps: list[StepRecord]
    projected_peak_bytes: int
    measured_peak_bytes: int


class PhasesRecord(TypedDict):
    load: float
    compile: float
    search: float
    write: float


class WeightsRecord(TypedDict):
    """Facts of an edge list's weights. rounded: the number of rows whose weight 32 bits do not hold
    exactly. greatest_change: the largest change of one weight by rounding, as a share of the
    weight. Both are None for a store that does not state them.
    """

    column: str
    kind: str
    combined_by: str
    rounded: int | None
    greatest_change: float | None


class GraphRecord(TypedDict):
    """Sizes of a graph. rows: of the input; ``self_loops`` of them are no edges, and ``duplicates``
    of them repeat an edge. loops: the number of vertices that keep the weight of their self-loops;
    None if these were left out. duplicates: None if not counted, as in a scan of an edge list.
    weights: None without weights.
    """

    fingerprint: str
    directed: bool
    vertices: int
    rows: int
    self_loops: int
    loops: int | None
    duplicates: int | None
    id_type: str
    weights: WeightsRecord | None


def graph_record(info: GraphInfo) -> GraphRecord:
    weights = None
    if info.weights is not None:
        weights = WeightsRecord(
            column=info.weights.column,
            kind=info.weights.kind,
            combined_by=info.weights.duplicates,
            rounded=info.weights.rounded,
            greatest_change=info.weights.greatest_change,
        )
    return GraphRecord(
        fingerprint=info.fingerprint,
        directed=info.directed,
        vertices=info.vertices,
        rows=info.rows,
        self_loops=info.self_loops,
        loops=info.loops,
        duplicates=info.duplicates,
        id_type=info.id_type,
        weights=weights,
    )


class CommandRecord(TypedDict):
    """The fields of every record. files: the output's files, with size and digest by name; empty
    for a store, whose manifest has them.
    """

    schema_version: int
    command: list[str]
    versions: dict[str, str]
    hardware: dict[str, str | int]
    device: str
    threads: int
    plan: PlanRecord
    files: dict[str, str]


class FoundRecord(TypedDict):
    """The findings of a result. column: the column that they are of. top: vertices with their
    values, the greatest first: of distances the farthest vertices, of groups the largest by name
    with their sizes. Of equal values, the least vertices.
    """

    column: str
    top: list[tuple[Any, float]]


class FoundDistancesRecord(FoundRecord):
    """reached, unreached: the number of vertices with a distance, and of those without."""

    reached: int
    unreached: int


class FoundGroupsRecord(FoundRecord):
    """alone: the number of groups of one vertex."""

    groups: int
    alone: int


FOUND = {
    "values": FoundRecord,
    "distances": FoundDistancesRecord,
    "groups": FoundGroupsRecord,
}
"""The type of a record's key ``found``, by the kind of the form's finding."""


class AnswerRecord(CommandRecord):
    """The record of a question about a graph.

    inputs: size and time of the first files of an edge list. notes: lines shown to the user.
    """

    ranks: int
    layout: str
    graph: GraphRecord
    inputs: dict[str, str]
    notes: list[str]
    seconds: PhasesRecord


class BuildRecord(CommandRecord):
    """The record of building a store. inputs: size and time of each file. seconds: of the whole
    build. notes: lines shown to the user.
    """

    graph: GraphRecord
    inputs: dict[str, str]
    notes: list[str]
    seconds: float


class GenerateRecord(CommandRecord):
    """The record of a generated edge list. recipe: all values that its rows depend on."""

    recipe: dict[str, str | int | float]
    rows: int
    seconds: float


class ConvertRecord(CommandRecord):
    """The record of a conversion: from a file of another format to an edge list, or from a store or
    a result to such a file.

    written: "edge list", "matrix" or "text", of ``rows`` rows, entries or lines. options: the
    options not left at their defaults. isolated: the number of rows that are the self-loop of a
    vertex without edges. directed: null if the format does not say. notes: lines shown to the user.
    bytes: of the written files.
    """

    inputs: dict[str, str]
    format: str
    options: dict[str, str | bool]
    written: str
    rows: int
    isolated: int
    directed: bool | None
    weighted: bool
    notes: list[str]
    bytes: int
    seconds: float


def file_facts(size: int, modified: int) -> str:
    """Return an input file's size and modification time as text. size: in bytes. modified: in
    nanoseconds since 1970.

    >>> file_facts(2100, 0)
    '2,100 bytes of 1970-01-01 00:00:00.000000'
    """
    return f"{size:,} bytes of {datetime.fromtimestamp(modified / 1e9, UTC):%Y-%m-%d %H:%M:%S.%f}"


def command_record(
    steps: list[StepRecord], threads: int, limit: int, device: Device | str | None = None
) -> CommandRecord:
    """Return the fields of every record, for a run in this process that is about to end.

    device: the device where kernels ran, or the devices of several workers, in words; None for the
    CPU.
    """
    return CommandRecord(
        schema_version=SCHEMA_VERSION,
        command=[without_secrets(word) for word in sys.argv],
        versions=versions() | (device.versions() if isinstance(device, Device) else {}),
        hardware=hardware(),
        device=str(device) if device else "cpu",
        threads=threads,
        plan=PlanRecord(
            memory_limit_bytes=limit,
            steps=steps,
            projected_peak_bytes=max((step["projected_bytes"] for step in steps), default=0),
            measured_peak_bytes=peak_bytes(),
        ),
        files={},
    )


def encode_record(record: CommandRecord, folder: Path | None = None) -> bytes:
    """Encode a record. folder: of the output's files, whose digests go into the record."""
    if folder is not None:
        record["files"] = folder_digests(folder)
    return json.dumps(record, indent=1).encode() + b"\n"


def versions() -> dict[str, str]:
    return {
        "delegraph": __version__,
        "python": platform.python_version(),
        **{library: version(library) for library in ("dask", "numba", "numpy", "pyarrow")},
    }


def hardware() -> dict[str, str | int]:
    return {
        "machine": platform.machine(),
        "cores": os.cpu_count() or 1,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


class Clock:
    """Clock that adds up seconds by phase."""

    def __init__(self) -> None:
        self.seconds = PhasesRecord(load=0.0, compile=0.0, search=0.0, write=0.0)
        self._inside = 0.0

    @contextmanager
    def phase(self, name: Literal["load", "compile", "search", "write"]) -> Iterator[None]:
        """Time a phase. The seconds of a phase nested in another one count for the nested phase
        only.
        """
        started, before, self._inside = time.perf_counter(), self._inside, 0.0
        try:
            yield
        finally:
            spent = time.perf_counter() - started
            self.seconds[name] += spent - self._inside
            self._inside = before + spent
