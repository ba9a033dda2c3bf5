"""The public functions that make edge lists. They load nothing that only graphs need, which would
take longer than a small file.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..partition.disk.memory import as_bytes
from ..partition.disk.outputs import local
from ..partition.disk.urls import AnyPath, named
from .python_side.progress import as_function
from .python_side.public import public
from .run.execute import Executor, Progress
from .run.resources import as_plain, resources_of, usable_threads

if TYPE_CHECKING:
    from ..partition.input.weights import LoopsChoice
    from .build.generate import Kind
    from .interchange.convert import Converted
    from .interchange.delimited import IdType
    from .interchange.delimited import WeightType as ChosenWeightType
    from .interchange.formats import FormatName


@public
def generate(
    kind: Kind,
    output: AnyPath,
    *,
    threads: int | None = None,
    overwrite: bool = False,
    progress: Progress | bool | None = None,
    **recipe: Any,
) -> int:
    """Write a synthetic edge list, and return the number of its rows.

    Args:
        kind: ``"kronecker"``, ``"uniform"``, ``"grid"`` or ``"blocks"``.
        output: the folder to write.
        recipe: the options of ``delegraph generate KIND``, such as ``scale=16, seed=1``.
    """
    from .build.generate import Recipe, generate_edges

    executor = Executor(usable_threads(threads), as_function(progress))
    plain = {name: as_plain(value) for name, value in recipe.items()}
    return generate_edges(Recipe(kind, **plain), local(named(output)), executor, overwrite)


@public
def convert(
    input: AnyPath,
    output: AnyPath,
    *,
    format: FormatName | None = None,
    src: str | None = None,
    dst: str | None = None,
    weight: str | None = None,
    header: bool = True,
    id_type: IdType = "auto",
    weight_type: ChosenWeightType = "auto",
    loops: LoopsChoice = "drop",
    max_unpacked: int | str | None = None,
    memory_limit: int | str | None = None,
    threads: int | None = None,
    overwrite: bool = False,
    progress: Progress | bool | None = None,
) -> Converted:
    """Convert a graph file of another program to a Parquet edge list.

    An output named ``.npz`` makes SciPy's sparse matrix of a store instead, and one named ``.txt``
    makes LDBC Graphalytics' text of a result.

    Args:
        format: the format of a graph file; None tells it by the file's name.
        src, dst, weight: columns; of CSV and TSV by name or number, of SNAP's text by number.
        header: whether the first line of CSV or TSV names the columns.
        id_type, weight_type: ``"auto"`` decides by the beginning of the file.
        loops: ``"keep"`` for an edge list to read with ``loops="keep", weight="weight"``: edges
            without weights get 1, and vertices without edges a self-loop of weight 0.
        max_unpacked: how much a compressed file may unpack to, in bytes or as ``"4GB"``;
            ``"none"`` for any amount.

    Returns:
        The record, and whether the output was there already.
    """
    from .interchange.convert import convert_graph
    from .interchange.delimited import Choices

    choices = Choices(src, dst, weight, header, id_type, weight_type, loops)
    executor = Executor(usable_threads(threads), as_function(progress))
    resources = resources_of(memory_limit=memory_limit)
    most = math.inf if max_unpacked == "none" else as_bytes(max_unpacked)
    return convert_graph(
        named(input), local(named(output)), format, choices, executor, resources, overwrite, most
    )
