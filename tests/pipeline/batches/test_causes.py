"""Causes of what a batch did not do."""

from __future__ import annotations

import pytest

from delegraph.pipeline.batches.causes import MOST_NAMED, describe_exit, failed_needs


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (1, "exit code 1"),
        (75, "exit code 75: something that it needs was not available"),
        (137, "exit code 137: killed, maybe out of memory"),
        (143, "exit code 143: ended by SIGTERM or SIGUSR1"),
        (-9, "killed by SIGKILL, maybe out of memory"),
        (-11, "killed by SIGSEGV"),
        (-99, "killed by signal 99"),
    ],
)
def test_exit_codes_in_words(code, words):
    assert describe_exit(code) == words


def test_failures_behind_a_long_chain():
    chain = {f"job-{i}": [f"job-{i + 1}"] for i in range(20_000)}
    left_out = set(chain) - {"job-19999"}
    assert failed_needs(chain, {"job-19999"}, left_out)["job-0"] == ["job-19999"]


def test_only_a_few_failures_are_named():
    failed = [f"job-{i}" for i in range(100)]
    named = failed_needs({"page": failed}, set(failed), {"page"})["page"]
    assert named == failed[: MOST_NAMED + 1]


def test_a_job_that_needs_one_that_was_not_left_out():
    """The file of jobs may have changed since the batch ran."""
    needs = {"page": ["ranks", "gone"], "ranks": ["store"]}
    assert failed_needs(needs, {"store"}, {"page"}) == {"page": []}
