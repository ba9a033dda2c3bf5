"""The memory that this process holds."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from delegraph.kernels.base.compiled import compile_kernels, u32s
from delegraph.kernels.base.compiled import kernel as declare
from delegraph.partition.disk.memory import return_compiler


def code_bytes() -> int:
    """Return the bytes of the compiler's code that this process holds."""
    found, is_code = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            is_code = " r-xp " in line and "libllvmlite" in line
        elif is_code and line.startswith("Rss:"):
            found += int(line.split()[1]) << 10
    return found


@declare(u32s)
def add_one(values):
    for i in range(values.shape[0]):
        values[i] += np.uint32(1)


def test_the_compiler_is_returned_and_comes_back():
    compile_kernels(add_one)
    assert code_bytes() > 1 << 20
    return_compiler()
    assert code_bytes() < 1 << 20

    @declare(u32s)
    def add_two(values):
        for i in range(values.shape[0]):
            values[i] += np.uint32(2)

    values = np.zeros(3, np.uint32)
    compile_kernels(add_two)
    add_two(values)
    assert values.tolist() == [2, 2, 2]
