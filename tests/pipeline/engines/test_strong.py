"""Strong components against their definition, on every engine on CPUs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import delegraph
from delegraph.kernels import reference
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms import strong
from delegraph.pipeline.algorithms.strong import StrongProgram
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.operations import operations as host
from delegraph.pipeline.ranks.communicator import RankError
from delegraph.pipeline.results.checkpoint import Checkpoint
from support.graphs import SHAPES, edges_of, graphs, store_options
from support.marks import mostly_slow, slow
from support.programs import run_program, stored


def least_of(component: np.ndarray) -> np.ndarray:
    """Return the least vertex of each vertex's component."""
    least = np.full(len(component), len(component))
    np.minimum.at(least, component, np.arange(len(component)))
    return least[component]


def check(store: Store, folder: Path, **how: Any) -> int:
    """Check the components of a store by the definition. Returns the number of rounds."""
    columns, results = run_program(store, StrongProgram(), folder, **how)
    wanted = reference.strong_components(*edges_of(store), store.info.vertices)
    assert (least_of(columns["component"]) == wanted).all()
    return results[0].record["rounds"]


@given(
    graph=graphs(),
    options=store_options(),
    ranks=st.integers(1, 4),
    on_disk=st.booleans(),
    pulled=st.sampled_from([0, 8, 10**9]),
    listed=st.sampled_from([0, 8]),
    at_once=st.sampled_from([1, 1 << 24]),
)
def test_against_the_definition(graph, options, ranks, on_disk, pulled, listed, at_once):
    """pulled: pull never, by default, always. listed: list all that a spread has changed, or few.
    at_once: edges of a call of the kernel.
    """
    src, dst, _, _ = graph
    if not len(src):
        return
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patched:
        patched.setattr(host, "PUSHED_FOR_PULLED", pulled)
        patched.setattr(host, "PUSHED_FOR_SUMMED", pulled)
        patched.setattr(host, "ALL_FOR_LISTED", listed)
        patched.setattr(strong, "_EDGES_AT_ONCE", at_once)
        store = stored(Path(place), src, dst, options)
        ranks = min(ranks, store.info.partitions)
        check(store, Path(place) / "out", ranks=ranks, on_disk=on_disk)
