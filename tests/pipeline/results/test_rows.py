"""Rows of pairs of vertices."""

import numpy as np
import pyarrow as pa
import pytest

from delegraph.kernels.base.team import Team
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.results import rows as result_rows
from delegraph.pipeline.results.columns import Column
from delegraph.pipeline.results.result import ResultInfo, open_result, write_result
from delegraph.pipeline.results.rows import PairRows, Pairs
from delegraph.pipeline.results.store_names import StoreNames
from delegraph.pipeline.run.execute import Executor
from support.programs import stored

INFO = ResultInfo("bfs-each", "a graph", False, {}, "1")
IDS = {"integers": range(50, 90), "strings": [f"v{i:03}" * 9 for i in range(40)]}


def pair_rows(tmp_path, ids, count):
    """Return rows of ``count`` random pairs, many of which repeat, with distances from -1 (null)
    on, and their table.
    """
    ids = list(ids)
    names = StoreNames(stored(tmp_path, ids[:-1], ids[1:], BuildOptions(order="random")), Team(2))
    vertex, places = names.piece(0)
    place_of = dict(zip(vertex.to_pylist(), places.tolist(), strict=True))
    rng = np.random.default_rng(count)
    first, second = rng.choice(ids, count).tolist(), rng.choice(ids[:2], count).tolist()
    distance = rng.integers(-1, 9, count).astype(np.int32)
    at = [np.array([place_of[one] for one in ends], np.uint32) for ends in (first, second)]
    columns = [Column("distance", distance, missing=-1)]
    told = [None if hops < 0 else hops for hops in distance.tolist()]
    wanted = {"source": first, "vertex": second, "distance": told}
    return PairRows(names, ("source", "vertex"), Pairs(*at), columns), wanted


@pytest.mark.parametrize("piece", [7, 1 << 20])
@pytest.mark.parametrize("count", [0, 1, 100])
@pytest.mark.parametrize("kind", IDS)
def test_pairs_are_written(tmp_path, monkeypatch, kind, count, piece):
    """Rows keep their order, in one piece or in several, whose ids are decoded a few at a time."""
    monkeypatch.setattr(result_rows, "ROW_GROUP", piece)
    monkeypatch.setattr(result_rows, "PARENT_BYTES", 100)
    rows, wanted = pair_rows(tmp_path, IDS[kind], count)
    assert sum(rows.pieces) == count
    (tmp_path / "out").mkdir()
    write_result(tmp_path / "out", rows, INFO, Executor(2))
    result = open_result(tmp_path / "out")
    assert result.columns == ("source", "vertex", "distance")
    assert (result.rows, result.info) == (count, INFO)
    table = pa.Table.from_batches(result.batches(1 << 20), rows.schema)
    assert table.to_pydict() == wanted
