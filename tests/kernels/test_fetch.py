"""Copies of arrays from a device to host memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from delegraph.kernels.gpu import device as on_device

AT_A_TIME = on_device._FETCHED
COUNTS = (0, 1, AT_A_TIME - 1, AT_A_TIME, AT_A_TIME + 1, 3 * AT_A_TIME + 5)


def check_arrays_are_fetched(number: int) -> None:
    device = on_device.open_device(number)
    for count in COUNTS:
        for dtype in (np.uint8, np.int32, np.uint64):
            values = np.random.default_rng(count).integers(0, 200, count).astype(dtype)
            with device.use() as cupy:
                there = cupy.asarray(values)
            found = device.fetch(there)
            assert found.dtype == dtype
            assert np.array_equal(found, values)
    two = np.arange(4 * AT_A_TIME, dtype=np.uint16).reshape(4, -1)
    with device.use() as cupy:
        there = cupy.asarray(two)
    assert np.array_equal(device.fetch(there), two)


def check_threads_fetch_at_the_same_time(number: int) -> None:
    device = on_device.open_device(number)
    arrays = [np.full(2 * AT_A_TIME + i, i, np.int32) for i in range(6)]
    with device.use() as cupy:
        there = [cupy.asarray(one) for one in arrays]
    with ThreadPoolExecutor(len(arrays)) as pool:
        for found, wanted in zip(pool.map(device.fetch, there), arrays, strict=True):
            assert np.array_equal(found, wanted)


CHECKS = (check_arrays_are_fetched, check_threads_fetch_at_the_same_time)


@pytest.mark.parametrize("check", CHECKS)
def test_fetch(device, check):
    check(device.number)


@pytest.mark.parametrize("check", CHECKS)
def test_emulated_fetch(emulated, check):
    check(emulated[0].number)
