"""Searches of very many levels: a small record, all supersteps in a file, short checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph as package
from delegraph.partition.errors import InputError
from delegraph.pipeline.questions.bfs import BetweenRecord, SuperstepRecord
from delegraph.pipeline.results.checkpoint import Checkpoint
from delegraph.pipeline.results.superstep_log import PACKED, SuperstepLog
from delegraph.pipeline.results.supersteps import (
    Profile,
    read_supersteps,
    shortened,
    write_supersteps,
)
from support.marks import slow

LENGTH = 2500
MOST_BYTES = 10**6


def steps_of(count: int) -> list[SuperstepRecord]:
    """Return supersteps of several ranks, which have the most fields, with numbers as long as they
    come.
    """
    large = 2**40
    return [
        SuperstepRecord(
            level=level,
            direction=dict.fromkeys(("nn", "nd", "dn", "dd"), "pull" if level % 3 else "push"),
            frontier=large,
            found=large + level,
            edges_examined=large,
            bytes_read=large,
            blocks_skipped=large,
            bytes_sent=dict.fromkeys(("delegates", "normals", "control"), large),
            seconds=0.123456789012345 + level,
        )
        for level in range(1, count + 1)
    ]


@pytest.fixture
def path_graph(edge_list) -> Path:
    return edge_list(np.arange(LENGTH), np.arange(1, LENGTH + 1))


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_few_are_listed(count):
    steps = steps_of(count)
    assert shortened(SuperstepLog(steps)) == (steps, None)


def test_many_are_added_up():
    steps = steps_of(1001)
    listed, between = shortened(SuperstepLog(steps))
    assert listed == steps[:100] + steps[-100:]
    assert between is not None
    assert between.keys() == get_type_hints(BetweenRecord).keys()
    assert (between["supersteps"], between["first_level"], between["last_level"]) == (801, 101, 901)
    assert between["directions"]["dn"] == {"pull": 534, "push": 267}
    for key in ("found", "edges_examined", "bytes_read", "blocks_skipped", "seconds"):
        whole = sum(step[key] for step in steps)
        assert sum(step[key] for step in listed) + between[key] == pytest.approx(whole, rel=1e-12)
    assert between["bytes_sent"]["control"] == 801 * 2**40


@pytest.mark.parametrize("count", [1000, slow(333_588)])
def test_a_record_is_small(count):
    listed, between = shortened(SuperstepLog(steps_of(count)))
    assert len(json.dumps([listed, between], indent=1)) < MOST_BYTES * 3 // 4


@pytest.mark.parametrize("count", [0, 1, 3000])
def test_a_file_has_all(tmp_path, count):
    steps = steps_of(count)
    write_supersteps(tmp_path / "steps.parquet", SuperstepLog(steps))
    assert read_supersteps((tmp_path / "steps.parquet").read_bytes()) == steps
    assert [path.name for path in tmp_path.iterdir()] == ["steps.parquet"]


@pytest.mark.parametrize("count", [slow(PACKED), PACKED + 1, slow(3 * PACKED + 7)])
def test_older_ones_are_packed(tmp_path, count):
    """A log of supersteps packs the older ones, also if two engines with different fields wrote
    it.
    """
    steps = steps_of(count)
    for step in steps[:5]:
        step["direction"], step["bytes_sent"] = {"all": "scan"}, {}
    log = SuperstepLog(steps)
    assert log == steps
    assert (len(log), log[0], log[-1], log[count - 5]) == (
        (count, steps[0], steps[-1], steps[count - 5])
    )
    assert (log[3:9], log[-4:], log[-count:2]) == (steps[3:9], steps[-4:], steps[:2])
    write_supersteps(tmp_path / "steps.parquet", log)
    assert read_supersteps((tmp_path / "steps.parquet").read_bytes()) == steps
    with pytest.raises(IndexError):
        log[count]


def test_a_search_of_many_levels(ok, path_graph, tmp_path):
    out, profile = tmp_path / "out", tmp_path / "steps.parquet"
    run = ok("bfs", path_graph, "--source", 0, "-o", out, "--profile", profile, "--json")
    record, size = run.json, (tmp_path / "out.run.json").stat().st_size
    assert size < MOST_BYTES // 4
    assert record["search"] | {"source": 0} == {
        "source": 0,
        "max_depth": None,
        "method": record["search"]["method"],
        "reached": LENGTH + 1,
        "depth": LENGTH,
    }
    between = record["supersteps_between"]
    levels = [step["level"] for step in record["supersteps"]]
    table = pq.read_table(profile)
    assert levels == [*range(1, 101), *range(table.num_rows - 99, table.num_rows + 1)]
    assert between["found"] == between["supersteps"] == table.num_rows - 200
    assert table["level"].to_pylist() == list(range(1, table.num_rows + 1))
    assert sum(table["found"].to_pylist()) == LENGTH
    assert set(table["direction.all"].to_pylist()) <= {"push", "pull", "scan"}
    assert table["seconds"].type == pa.float64()
    assert "level" not in run.err  # no table beside the file

    run = ok("bfs", path_graph, "--source", 0, "-o", out, "--overwrite", "--profile")
    assert f"levels 101 to {table.num_rows - 100:,}: --profile FILE.parquet writes" in run.err
    assert len(run.err.splitlines()) < 250


def test_in_python(path_graph, tmp_path):
    profile = tmp_path / "steps.parquet"
    record = package.bfs(path_graph, 0, output=tmp_path / "out", profile=profile).record
    assert len(record["supersteps"]) == 200
    assert pq.read_metadata(profile).num_rows > LENGTH - 1


def test_of_a_result_that_is_there(ok, delegraph, edge_list, path_graph, tmp_path):
    """A profile of a result that is already there comes from a record with all supersteps, or is
    refused.
    """
    long, few = ("bfs", path_graph, "--source", 0, "-o", tmp_path / "long"), tmp_path / "few"
    profile = tmp_path / "steps.parquet"
    ok(*long)
    run = delegraph(*long, "--profile", profile)
    assert run.code == 2
    assert "search again with --overwrite" in run.err
    assert not profile.exists()
    short = ("bfs", edge_list([0, 1], [1, 2], "few.parquet"), "--source", 0, "-o", few)
    ok(*short)
    ok(*short, "--profile", profile)
    assert pq.read_table(profile)["found"].to_pylist()[:2] == [1, 1]
    ok(*long, "--overwrite", "--profile", profile)  # it replaces its own kind


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("steps.json", "ends with .parquet"),
        ("taken.parquet/steps.parquet", "is not a folder"),
        ("edges.parquet", "is inside"),
        ("taken.parquet", "exists, but delegraph did not write it"),
        ("out.parquet", "is inside"),
        ("read/steps.parquet", "is inside"),
    ],
)
def test_places_that_will_not_do(edge_list, tmp_path, name, why):
    edge_list([0], [1])
    edge_list([0], [1], "read/part.parquet")
    (tmp_path / "taken.parquet").write_text("mine")
    graph = tmp_path / ("read" if name.startswith("read") else "edges.parquet")
    with pytest.raises(InputError, match=why):
        Profile(tmp_path / name, graph, tmp_path / "out.parquet")


def test_a_checkpoint_is_short_and_knows_all(tmp_path):
    count = 20_000
    steps, distance = steps_of(count), np.arange(count, dtype=np.int32)
    one = Checkpoint(tmp_path, 0, "this")
    one.save(distance, distance.astype(np.uint32), count, SuperstepLog(steps))
    assert (tmp_path / "search.json").stat().st_size < 10_000
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 40 * count
    state = one.load(count)
    assert state is not None
    assert state.supersteps == steps


def test_damaged_supersteps_are_noticed(tmp_path):
    distance = np.arange(9, dtype=np.int32)
    one = Checkpoint(tmp_path, 0, "this")
    one.save(distance, distance.astype(np.uint32), 9, SuperstepLog(steps_of(9)))
    (path,) = tmp_path.glob("*.parquet")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert one.load(9) is None
