"""A few cases of the fault harness; ``python -m support.fuzz_faults`` runs more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.faulty_calls import library


@pytest.mark.nightly
def test_commands_that_fail_or_are_killed(tmp_path):
    if library() is None:
        pytest.skip("no C compiler")
    line = [sys.executable, "-m", "support.fuzz_faults", str(tmp_path), "41", "0", "4"]
    tests = Path(__file__).parents[2]
    run = subprocess.run(line, cwd=tests, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("right\n") == 4, run.stdout
