"""A store with one change gives the right result, or one line says what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support import fuzz_stores

TESTS = Path(fuzz_stores.__file__).parents[1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_changed_stores(tmp_path, seed):
    fuzz_stores.build_all(tmp_path)
    arguments = [str(tmp_path), str(seed), "0", "150"]
    run = subprocess.run(
        [sys.executable, "-m", "support.fuzz_stores", *arguments],
        cwd=TESTS,
        capture_output=True,
        text=True,
    )
    lines = run.stdout.splitlines()
    assert run.returncode == 0, (lines[-1:], run.stderr)
    ends = [line.partition(":")[0] for line in lines[1::2]]
    assert len(ends) == 150
    wrong = [lines[2 * i] for i, end in enumerate(ends) if end not in ("right", "refused")]
    assert not wrong
    assert set(ends) == {"right", "refused"}
