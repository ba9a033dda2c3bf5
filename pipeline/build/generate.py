"""Generation of synthetic edge lists on disk (kernels/prepare/generate.py makes the rows)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.gpu import generate as gpu_generate
from ...kernels.gpu.device import Device
from ...kernels.prepare import generate as kernels
from ...partition.disk.outputs import Kind as OutputKind
from ...partition.disk.outputs import (
    check_output,
    check_undamaged,
    facts_of,
    mark,
    nearest_folder,
    read_record,
)
from ...partition.disk.system_errors import parquet_writer, raise_failure, read_metadata
from ...partition.disk.work import begin_work, clean_up
from ...partition.errors import DelegraphError, InputError
from ...partition.input.arrow import as_arrow
from ...partition.numbers import GREATEST, GREATEST_SEED, check_number, check_whole
from ..run.execute import Executor
from ..run.records import GenerateRecord, command_record, encode_record

Kind = Literal["kronecker", "uniform", "grid", "blocks"]
Sizes = Literal["equal", "zipf"]
Columns = tuple[NDArray, NDArray]

CHUNK_ROWS = 1 << 20
FILE_ROWS = 1 << 26
MAX_SCALE = 48
MAX_BLOCKS = 1 << 24
_WHOLE = 1 << 40


@dataclass(frozen=True)
class Recipe:
    """A graph to generate. Its rows depend on these values alone.

    kronecker, uniform: 2^scale vertices, with edge_factor rows for each. grid: height x width
    cells, each joined to its right and lower neighbour, except the share ``drop`` of these edges.
    blocks: a planted partition of vertices with ``degree`` edges on average, of which the share
    ``mixing`` leads to other blocks. sizes: of the blocks; "zipf": the k-th has about 1/k of the
    vertices of the first. truth: whether the rows are the vertices and their blocks, instead of
    edges. weighted: whether there is a column ``weight``, which depends on the two ends of a row
    only.
    """

    kind: Kind
    seed: int = 1
    scale: int = 0
    edge_factor: int = 16
    height: int = 0
    width: int = 0
    drop: float = 0.0
    vertices: int = 0
    blocks: int = 0
    degree: int = 16
    mixing: float = 0.0
    sizes: Sizes = "equal"
    truth: bool = False
    weighted: bool = False

    def __post_init__(self) -> None:
        check_whole("the seed", self.seed, 0, GREATEST_SEED)
        for name in ("scale", "edge_factor", "height", "width", "vertices", "blocks", "degree"):
            check_whole(name, getattr(self, name), -GREATEST)
        check_number("drop", self.drop)
        check_number("mixing", self.mixing)
        if self.kind == "grid":
            self._check_grid()
        elif self.kind == "blocks":
            self._check_blocks()
        elif not 1 <= self.scale <= MAX_SCALE or self.edge_factor < 1:
            raise InputError(
                f"the scale must be 1 to {MAX_SCALE} and the edge factor positive, not "
                f"{self.scale} and {self.edge_factor}"
            )

    def _check_grid(self) -> None:
        if self.height < 1 or self.width < 1:
            raise InputError(
                f"the height and the width must be at least 1, not {self.height} x {self.width}"
            )
        if not 0 <= self.drop < 1:
            raise InputError(
                f"the share to drop must be at least 0 and less than 1, not {self.drop}"
            )
        if self.height * self.width < 2:
            raise InputError("a grid of one cell has no edges")

    def _check_blocks(self) -> None:
        if not 1 <= self.blocks <= MAX_BLOCKS:
            raise InputError(f"the number of blocks must be 1 to {MAX_BLOCKS:,}, not {self.blocks}")
        if not 2 * self.blocks <= self.vertices <= 1 << MAX_SCALE:
            raise InputError(
                f"{self.blocks:,} blocks need {2 * self.blocks:,} to 2^{MAX_SCALE} vertices, not "
                f"{self.vertices}"
            )
        if self.degree < 1:
            raise InputError(f"the degree must be at least 1, not {self.degree}")
        if not 0 <= self.mixing <= 1:
            raise InputError(f"the mixing must be from 0 to 1, not {self.mixing}")
        if self.blocks == 1 and self.mixing:
            raise InputError("no edge can leave the only block: give more blocks, or mixing 0")
        if self.sizes not in ("equal", "zipf"):
            raise InputError(f"the sizes must be equal or zipf, not {self.sizes}")
        if self.truth and self.weighted:
            raise InputError("vertices and their blocks have no weights")

    @property
    def facts(self) -> dict[str, str | int | float]:
        """Return all values that the rows depend on, for this kind of graph."""
        shape = {
            "grid": ("height", "width", "drop"),
            "blocks": ("vertices", "blocks", "degree", "mixing", "sizes"),
        }.get(self.kind, ("scale", "edge_factor"))
        added = [name for name in ("truth", "weighted") if getattr(self, name)]
        return {name: getattr(self, name) for name in ("kind", "seed", *shape, *added)}

    @property
    def candidates(self) -> int:
        """Return the number of rows; for a grid, of possible rows, some of which are left out."""
        if self.kind == "grid":
            return 2 * self.height * self.width
        if self.kind == "blocks":
            return self.vertices if self.truth else self.vertices * self.degree // 2
        return self.edge_factor << self.scale

    @property
    def domain(self) -> int:
        """Return the number that all ids are below."""
        if self.kind == "blocks":
            return self.vertices
        return self.height * self.width if self.kind == "grid" else 1 << self.scale

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.int32 if self.domain <= 2**31 else np.int64)

    @cached_property
    def bounds(self) -> NDArray[np.uint64]:
        """The first place of each block, and the number of vertices. The larger blocks stand
        first, and all have two vertices at least.
        """
        rank = np.arange(1, self.blocks + 1)
        share = _WHOLE // rank if self.sizes == "zipf" else np.ones_like(rank)
        free = self.vertices - 2 * self.blocks
        sizes = 2 + (free * (share / share.sum())).astype(np.int64)
        sizes[: self.vertices - sizes.sum()] += 1  # what rounding has left
        return np.r_[0, np.cumsum(sizes)].astype(np.uint64)

    @property
    def row_bytes(self) -> int:
        return sum(column.bit_width // 8 for column in self.schema.types)

    def columns(self, first: int, last: int) -> tuple[NDArray, ...]:
        """Return the columns of candidates first .. last - 1."""
        if self.truth:
            vertex, block = np.empty(last - first, self.dtype), np.empty(last - first, np.int32)
            seed = np.uint64(self.seed)
            kernels.vertices_of_blocks(first, self.bounds, seed, vertex, block)
            return vertex, block
        src, dst = self.rows(first, last)
        return (src, dst, self.weights(src, dst)) if self.weighted else (src, dst)

    def rows(self, first: int, last: int) -> Columns:
        """Return the ends of the edges of candidates first .. last - 1."""
        src = np.empty(last - first, self.dtype)
        dst = np.empty(last - first, self.dtype)
        seed = np.uint64(self.seed)  # the kernels take all 64 bits
        if self.kind == "kronecker":
            kernels.kronecker(first, self.scale, seed, src, dst)
        elif self.kind == "uniform":
            kernels.uniform(first, self.scale, seed, src, dst)
        elif self.kind == "blocks":
            leave_below = np.uint64(round(self.mixing * 2**32))
            kernels.blocks(first, self.bounds, leave_below, seed, src, dst)
        else:
            keep_below = round((1 - self.drop) * 2**32)
            kept = kernels.grid(first, last, self.height, self.width, keep_below, seed, src, dst)
            src, dst = src[:kept], dst[:kept]
        return src, dst

    def weights(self, src: NDArray, dst: NDArray) -> NDArray[np.int32]:
        """Return the weights of the rows with these ends."""
        weight = np.empty(len(src), np.int32)
        kernels.weights(np.uint64(self.seed), src, dst, weight)
        return weight

    @property
    def output_kind(self) -> OutputKind:
        return "table of blocks" if self.truth else "edge list"

    @property
    def schema(self) -> pa.Schema:
        ids = pa.from_numpy_dtype(self.dtype)
        fields = [("src", ids), ("dst", ids), *([("weight", pa.int32())] * self.weighted)]
        if self.truth:
            fields = [("vertex", ids), ("block", pa.int32())]
        return pa.schema(fields, metadata=mark(self.output_kind, recipe=self.facts))

    def rows_on(self, device: Device, first: int, last: int) -> tuple[Any, Any]:
        """Return the rows of candidates first .. last - 1 as uint32 arrays on a device. Ids must be
        below 2^32 - 1. Raises InputError for blocks, and for a larger scale than GPUs can make.
        """
        if self.kind == "blocks":
            raise InputError("blocks are generated on CPUs only")
        if self.kind == "grid":
            keep_below = round((1 - self.drop) * 2**32)
            return gpu_generate.grid(
                device, first, last, self.height, self.width, keep_below, self.seed
            )
        if self.scale > gpu_generate.MAX_SCALE:
            raise InputError(f"on a GPU the scale must be at most {gpu_generate.MAX_SCALE}")
        make = gpu_generate.kronecker if self.kind == "kronecker" else gpu_generate.uniform
        return make(device, first, last, self.scale, self.seed)


def generate_edges(
    recipe: Recipe, output: str | Path, executor: Executor, overwrite: bool = False
) -> int:
    """Write the recipe's rows as a folder of Parquet files and return their number.

    Without ``overwrite``, an existing output of this recipe is kept.
    """
    started = time.perf_counter()
    there = None if overwrite else rows_there(recipe, output)
    if there is not None:
        return there
    check_output(output, recipe.output_kind, overwrite)
    schema = recipe.schema
    most = recipe.row_bytes * recipe.candidates
    free = shutil.disk_usage(nearest_folder(Path(output))).free
    if most > free:
        raise DelegraphError(
            f"{recipe.candidates:,} rows take up to {most:,} bytes, but only {free:,} are free at "
            f"{output}"
        )
    rows = 0
    with begin_work(output, {}, restart=True) as work:
        for number, first in enumerate(range(0, recipe.candidates, FILE_ROWS)):
            last = min(first + FILE_ROWS, recipe.candidates)
            with parquet_writer(
                work.output / f"part-{number:05}.parquet",
                schema,
                use_dictionary=False,
                compression="snappy",
            ) as writer:
                for columns in _chunks(recipe, first, last, executor):
                    rows += len(columns[0])
                    batch = pa.record_batch([as_arrow(column) for column in columns], schema=schema)
                    writer.write_batch(batch, row_group_size=CHUNK_ROWS)
        if not rows:
            raise InputError(
                "every edge was dropped: give a smaller share to drop, or another seed"
            )
        work.sync()
        record = GenerateRecord(
            **command_record(executor.steps, executor.threads, 0),
            recipe=recipe.facts,
            rows=rows,
            seconds=time.perf_counter() - started,
        )
        work.publish(recipe.output_kind, overwrite, encode_record(record, work.output))
    return rows


def rows_there(recipe: Recipe, output: str | Path) -> int | None:
    """Return the number of rows of the output that is there if it is this recipe's and undamaged;
    otherwise None.
    """
    clean_up(output, {}, None)
    try:
        record = read_record(output)
        files = [read_metadata(path) for path in Path(output).iterdir() if path.is_file()]
        facts = {"recipe": recipe.facts}
        ours = [facts_of(file.metadata, recipe.output_kind) == facts for file in files]
        rows = sum(file.num_rows for file in files)
        if not all(ours) or rows != record["rows"]:
            return None
        check_undamaged(output, record)
        return rows
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise_failure(output, error)
        return None


def _chunks(
    recipe: Recipe, first: int, last: int, executor: Executor
) -> Iterator[tuple[NDArray, ...]]:
    def make(start: int) -> tuple[NDArray, ...]:
        return recipe.columns(start, min(start + CHUNK_ROWS, last))

    starts = list(range(first, last, CHUNK_ROWS))
    at_once = 4 * executor.threads
    for i in range(0, len(starts), at_once):
        yield from executor.step(
            "generate",
            make,
            starts[i : i + at_once],
            at_once * CHUNK_ROWS * recipe.row_bytes,
            total=-(-recipe.candidates // CHUNK_ROWS),
        )
