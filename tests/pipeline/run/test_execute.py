"""Steps of an executor: items that tasks receive, and results that they return."""

from __future__ import annotations

import pytest

from delegraph.pipeline.run.execute import Executor


def test_items_are_given_as_they_are():
    """Items reach tasks unchanged, though some look like keys and tasks of Dask's graphs."""
    items = [("task", 0), 1, "task", (len, [1, 2]), [("task", 1)], None]
    assert Executor(2).step("give", lambda item: item, items) == items
    assert Executor(2).step("give", lambda item: item, []) == []


def test_an_error_of_a_task_is_raised():
    with pytest.raises(ZeroDivisionError):
        Executor(2).step("divide", lambda item: 1 // item, [1, 0, 2])
