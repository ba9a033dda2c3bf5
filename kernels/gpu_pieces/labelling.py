"""Functions of labels that are on a device (cuda/pieces/labels.cu)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..base.graph import UNREACHED
from ..gpu.device import Device
from ..gpu.graph import Array

_SOURCE = "pieces/labels.cu"
FUNCTIONS = ("mark_labels", "least_by_label", "add_by_label")

_NONE = np.uint64(0)  # no array


class DeviceLabelling:
    """The functions of labels that are on a device: Labelling of pipeline/algorithms/labelling.py
    describes them.
    """

    def __init__(self, device: Device) -> None:
        self._device = device

    def put(self, values: np.ndarray) -> Array:
        with self._device.use() as cupy:
            return cupy.asarray(values)

    def fetch(self, values: Array) -> np.ndarray:
        with self._device.use():
            return values.get()

    def identity(self, count: int) -> Array:
        with self._device.use() as cupy:
            return cupy.arange(count, dtype=np.uint32)

    def windows(self, count: int) -> Iterator[slice]:
        yield slice(0, count)

    def numbered(self, label: Array) -> tuple[Array, int]:
        count = len(label)
        with self._device.use() as cupy:
            marks = cupy.zeros(_most(label) + 1, np.uint32)
            self._device.launch(_SOURCE, "mark_labels", count, (label, np.uint32(count), marks))
            number = cupy.cumsum(marks, dtype=np.uint32)
            labels = int(number[-1])
            number -= np.uint32(1)
            return number[label], labels

    def least_of_each(self, label: Array, values: Array | None, labels: int) -> Array:
        count = len(label)
        with self._device.use() as cupy:
            least = cupy.full(labels, UNREACHED, np.uint32)
            arguments = label, _NONE if values is None else values, np.uint32(count), least
            self._device.launch(_SOURCE, "least_by_label", count, arguments)
            return least

    def named_by_least(self, label: Array) -> Array:
        with self._device.use():
            return self.least_of_each(label, None, _most(label) + 1)[label]

    def sums(self, label: Array, values: Array | None, labels: int) -> Array:
        count = len(label)
        with self._device.use() as cupy:
            sums = cupy.zeros(labels, np.uint64)
            arguments = label, _NONE if values is None else values, np.uint32(count), sums
            self._device.launch(_SOURCE, "add_by_label", -(-count // 32) * 32, arguments)
            return sums


def _most(label: Array) -> int:
    return int(label.max()) if len(label) else 0


def warm_up(device: Device) -> None:
    """Compile, or load from the cache, all kernels."""
    for function in FUNCTIONS:
        device.kernel(_SOURCE, function)
