"""Runs of programs on a device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from delegraph.kernels.gpu.device import Device
from delegraph.partition.store.store import Store
from delegraph.pipeline.engines.one_device.program import DeviceProgramEngine
from delegraph.pipeline.engines.one_device.rows import StoreRowsOnDevice
from delegraph.pipeline.engines.operations.program import DeviceProgram
from delegraph.pipeline.results.checkpoint import Checkpoint


class ProgramRun(NamedTuple):
    """A program's result by an engine. columns: by name, in the order that the program gives."""

    columns: dict[str, np.ndarray]
    record: dict[str, Any]
    method: str

    @property
    def values(self) -> np.ndarray:
        """The values of the first column."""
        return next(iter(self.columns.values()))


def engine_of(store: Store, program: DeviceProgram, device: Device) -> DeviceProgramEngine:
    return DeviceProgramEngine(StoreRowsOnDevice(store, None, device, 2), program, device)


def run(
    store: Store, program: DeviceProgram, device: Device, checkpoint: Checkpoint | None = None
) -> ProgramRun:
    engine = engine_of(store, program, device)
    engine.load()
    engine.compile()
    result, method = engine.run(checkpoint, lambda *_: None), engine.method
    engine.close()
    columns = {name: np.asarray(values) for name, values in result.values.items()}
    return ProgramRun(columns, result.record, method)
