"""Resources that a run may use: memory, devices, workers, scratch."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from ...kernels.base.threads import useful_threads
from ...kernels.gpu.device import Device
from ...partition.disk.memory import as_bytes, default_limit
from ...partition.disk.urls import is_remote
from ...partition.errors import InputError
from ...partition.numbers import MOST_SECONDS, check_number, check_whole
from .devices import check_choice, choose_device

if TYPE_CHECKING:
    from distributed import Client

TIMEOUT_SECONDS = 60.0
"""Default time to wait for a cluster that shows no sign of life."""


@dataclass(frozen=True)
class ClusterOptions:
    """The choice of where tasks run: ``workers`` local processes, or an existing cluster. An
    existing cluster is named by its scheduler's address, by the file that the scheduler wrote, or
    by a ``distributed.Client``, which stays open.

    Without any of these choices, tasks run in this process. timeout: seconds without a sign of life
    after which a scheduler, a worker or a rank is given up.
    """

    workers: int | None = None
    scheduler: str | Client | None = None
    scheduler_file: str | None = None
    timeout: float = TIMEOUT_SECONDS

    def __post_init__(self) -> None:
        check_number("the timeout", self.timeout)
        if self.timeout <= 0:
            raise InputError("the timeout must be positive")
        if self.timeout > MOST_SECONDS:
            raise InputError(f"the timeout must be at most {MOST_SECONDS:,} seconds")
        check_whole("workers", self.workers)
        given = [value for value in (self.workers, self.scheduler, self.scheduler_file) if value]
        if len(given) > 1:
            raise InputError("give only one of --workers, --scheduler and --scheduler-file")

    @property
    def any(self) -> bool:
        return bool(self.workers or self.scheduler or self.scheduler_file)

    def absolute(self, path: str | Path) -> str | Path:
        """Return a path that tasks can use: workers may have started in another folder than this
        process.
        """
        return Path(path).absolute() if self.any and not is_remote(path) else path


@dataclass(frozen=True)
class Resources:
    """Resources that a run may use, and whether it resumes an earlier attempt.

    memory_limit: bytes, of the process tree, or of each worker of an existing cluster; None for the
    default. scratch: a folder for files between steps; if given, it is used even if memory would
    do. restart: start over instead of resuming. device: "cpu", "cuda", "cuda:1" and so on, or
    "auto" (devices.py). device_memory_limit: bytes on that device; None for all free bytes.
    """

    memory_limit: int | None = None
    scratch: str | None = None
    restart: bool = False
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    device: str = "auto"
    device_memory_limit: int | None = None

    def __post_init__(self) -> None:
        for limit in (self.memory_limit, self.device_memory_limit):
            if limit is not None and limit < 1:
                raise InputError(f"the memory limit must be positive, not {limit}")
        check_choice(self.device)
        if self.device == "cpu" and self.device_memory_limit is not None:
            raise InputError("a limit of device memory needs a GPU: give --device cuda or auto")
        if self.device.startswith("cuda:") and self.cluster.any:
            raise InputError(
                f"each worker has its own GPU: give --device cuda, not {self.device}, or leave out "
                "--workers and --scheduler"
            )
        if self.scratch is not None and not Path(self.scratch).is_dir():
            raise InputError(f"{self.scratch}: no such folder for scratch files")

    @property
    def limit(self) -> int:
        return self.memory_limit or default_limit()

    def chosen_device(self, notes: list[str] | None = None) -> Device | None:
        """Return this process's device; None for the CPU, or if workers of a cluster do the work.
        notes: as in choose_device.
        """
        if self.cluster.any:
            return None
        return choose_device(self.device, self.device_memory_limit, notes)


class ResourceOptions(TypedDict, total=False):
    """Resources of a run by the names of the commands' options; sizes as bytes or as "4GB"."""

    memory_limit: int | str | None
    device: str
    device_memory_limit: int | str | None
    workers: int | None
    scheduler: str | Client | None
    scheduler_file: str | None
    timeout: float
    scratch: str | None
    restart: bool


def as_plain(value: Any) -> Any:
    """Convert NumPy's numbers to Python's, which records can hold."""
    return value.item() if isinstance(value, np.generic) else value


def resources_of(**given: Unpack[ResourceOptions]) -> Resources:
    """Check the options and return the resources. Raises InputError for an invalid size, device or
    folder, or for options that do not go together.
    """
    options: Any = {name: as_plain(value) for name, value in given.items()}
    cluster: dict[str, Any] = {
        field.name: options[field.name] for field in fields(ClusterOptions) if field.name in options
    }
    return Resources(
        as_bytes(options.get("memory_limit"), "memory_limit"),
        options.get("scratch"),
        options.get("restart", False),
        ClusterOptions(**cluster),
        options.get("device", "auto"),
        as_bytes(options.get("device_memory_limit"), "device_memory_limit"),
    )


def usable_threads(threads: int | None) -> int:
    threads = as_plain(threads)
    check_whole("threads", threads, 1)
    return useful_threads(threads)
