"""A scaling benchmark that loses workers on the way ends with the rows that were measured."""

from __future__ import annotations

from typing import Any

import pytest

from delegraph.partition.errors import InputError
from delegraph.pipeline.bench import across
from delegraph.pipeline.ranks.jobs import Room
from delegraph.pipeline.ranks.on_workers import Done

WORKERS = ["a", "b", "c", "d"]


@pytest.fixture
def scale(monkeypatch):
    """Return a function that measures jobs by several numbers of ranks, where dying workers are
    lost at first use.
    """

    def measure(runs: list[int], dying: set[str]) -> list[across.Scaled[str]]:
        def run(cluster: Any, workers: list[str], job: Any, check_room: Any) -> Done:
            remaining = [worker for worker in workers if worker not in dying]
            notes = ["started again"] if remaining != workers else []
            return Done(job, [None] * len(remaining), notes, None, remaining)

        monkeypatch.setattr(across, "run_on_workers", run)
        jobs: Any = [(ranks, "a job") for ranks in runs]
        cluster: Any = None
        return across.scale(
            cluster, WORKERS, jobs, lambda *_: Room(0), lambda run: ("a report", 1.0), None
        )

    return measure


@pytest.mark.parametrize(
    ("runs", "dying", "ranks"),
    [
        ([0], set(), [4]),
        ([0], {"b"}, [3]),
        ([1, 2, 4], set(), [1, 2, 4]),
        ([1, 2, 4], {"b"}, [1, 1]),
        ([1, 2, 3], {"d"}, [1, 2, 3]),
        ([1, 2, 3], {"b"}, [1, 1, 3]),
    ],
)
def test_who_is_left_is_measured(scale, runs, dying, ranks):
    rows = scale(runs, dying)
    assert [row.ranks for row in rows] == ranks
    notes = [note for row in rows for note in row.notes]
    assert ("started again" in notes) == ("b" in dying)
    missing = [note for note in notes if "not measured" in note]
    assert missing == ["4 and more ranks are not measured: only 3 workers are left"] * (
        len(rows) < len(runs)
    )


def test_more_ranks_than_workers_are_refused(scale):
    with pytest.raises(InputError, match="8 ranks need 8 workers, but there are only 4"):
        scale([1, 8], set())
