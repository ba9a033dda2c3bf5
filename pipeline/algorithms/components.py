"""Connected components: each vertex gets the least vertex of its component.

Edges are taken both ways: in a directed graph these are its weakly connected components.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.gpu_programs import components as on_device
from ...kernels.gpu_programs.ranks import Ranks
from ...kernels.gpu_programs.rows import ProgramGraph
from ...kernels.programs import forest
from ...kernels.programs.forest import first_of_trees, name_by_first, tree_sizes
from ...partition.input.edges import EdgeList
from ...partition.store.manifest import GraphInfo
from ..build.prepare import BuildOptions
from ..engines.operations.forests import EdgeCounts
from ..engines.operations.operations import Calls, Operations
from ..engines.operations.program import Program, ProgramEngine, ProgramResult, ReadRows, Tell
from ..engines.operations.saving import Saving
from ..engines.operations.vectors import Counts
from ..engines.table import components_of_edges
from ..questions.components import ComponentsRecord
from ..results.columns import Column
from ..results.findings import SIZE
from ..results.names import Names
from ..results.result import Option
from ..run.execute import Executor
from .run import Answer


@dataclass(frozen=True)
class ComponentsProgram:
    """The program: one scan of the edges."""

    columns = ("component",)
    weighted = wants_degrees = False
    rows = ReadRows.BY_SOURCE
    scans_once = True
    calls = Calls(kernels=(forest,))

    def held_bytes(self, counts: Counts) -> int:
        return (4 + 4) * counts.vertices  # a forest, and names of trees or another rank's forest

    def run(self, operations: Operations, tell: Tell) -> ProgramResult:
        trees = operations.join()
        return ProgramResult({"component": trees}, operations.edge_counts()._asdict())

    def device_bytes(self, vertices: int, entries: int) -> int:
        return on_device.device_bytes(vertices)

    def compile_on(self, graph: ProgramGraph) -> None:
        on_device.warm_up(graph)

    def run_on(self, graph: ProgramGraph, saving: Saving, tell: Tell) -> ProgramResult:
        edge_counts = EdgeCounts(edges=graph.cut.rows.edges)
        return ProgramResult({"component": on_device.components(graph)}, edge_counts._asdict())

    def exchange_bytes(self, vertices: int) -> int:
        return on_device.exchange_bytes(vertices)

    def run_on_shares(self, graph: ProgramGraph, ranks: Ranks, saving: Saving) -> ProgramResult:
        del saving  # a scan that was cut off begins again
        found = on_device.join_shares(graph, ranks)
        edges, sent = ranks.total([graph.cut.rows.edges, ranks.sent])
        values = {}
        if found is not None:
            with graph.device.use():
                values = {"component": found.get()}
        return ProgramResult(values, EdgeCounts(edges=int(edges), sent=int(sent))._asdict())


@dataclass(frozen=True)
class Components:
    """The question. A scan that was cut off begins again."""

    name = "components"
    step = "scan"
    weighted = False

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {}

    def program(self, names: Names, info: GraphInfo) -> Program:
        return ComponentsProgram()

    def calls(self, weighted: bool) -> Calls:
        return ComponentsProgram.calls

    def held_bytes(self, counts: Counts) -> int:
        return ComponentsProgram().held_bytes(counts)

    def engines_of_edges(
        self, edges: EdgeList, choices: BuildOptions, executor: Executor
    ) -> Sequence[ProgramEngine]:
        return components_of_edges(edges, choices, executor)

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        component = given.values["component"]
        assert isinstance(component, np.ndarray)
        count = name_components(component, names)
        sizes = np.zeros(len(component), np.uint32)
        tree_sizes(component, sizes)
        record = ComponentsRecord(
            components=count,
            largest=int(sizes.max(initial=0)),
            alone=int(np.count_nonzero(sizes == 1)),
            method=method,
            edges_examined=given.record["edges"],
            bytes_read=given.record["read"],
            bytes_sent=given.record["sent"],
        )
        column = Column("component", component, vertices=True, repeats=True)
        group_sizes = Column(SIZE, sizes, missing=0)
        return Answer((column,), {"components": record}, group_sizes=group_sizes)


def name_components(trees: NDArray[np.uint32], names: Names) -> int:
    """Name each vertex's component by its least vertex in the order of user ids. Returns the number
    of components.

    trees: any vertex of the component, the same for all of them; changes.
    """
    least = np.full(len(trees), UNREACHED, np.uint32)
    count = 0
    for number in range(len(names.pieces)):
        _, places = names.piece(number)
        count += first_of_trees(np.array(places), trees, least)
    name_by_first(trees, least)
    return count


def planned(info: GraphInfo) -> ComponentsProgram:
    """Return the program for a plan."""
    return ComponentsProgram()
