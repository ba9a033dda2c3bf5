"""Searching a store on the workers of a Dask cluster, a rank each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ....partition.disk.memory import GROWTH_BYTES, format_bytes, resident_bytes
from ....partition.errors import InputError, LimitError
from ....partition.store.store import Store
from ...ranks.on_workers import Done, lease, run_on_workers, stop, workers_of
from ...results.found import Found
from ...results.store_names import StoreNames
from ...run.cluster import Cluster, open_cluster
from ...run.devices import has_device_each
from ...run.plan import check_space
from ...run.records import graph_record
from ...run.resources import Resources
from ..bytes import writing_bytes
from ..ranks.result import gather, saved_bytes
from ..search_run import Searched, SearchRun
from .job import SearchJob


def search_on_ranks(store: Store, names: StoreNames, run: SearchRun) -> Searched:
    """As search_store, by as many ranks as the cluster has workers and the store partitions.

    Raises InputError for more local workers than partitions, LimitError where a rank's share does
    not fit, DelegraphError naming the rank where one fails.
    """
    info, resources, options = store.info, run.resources, run.options
    with run.clock.phase("load"):
        source = run.find(names)
    check_space([(run.work.scratch, saved_bytes(info))])
    with (
        tempfile.TemporaryDirectory(dir=run.work.scratch, ignore_cleanup_errors=True) as folder,
        open_workers(store, resources, options.threads, options.timeout_seconds) as there,
        run.clock.phase("search"),
    ):
        cluster, workers, device = there
        search = SearchJob(
            store.path.resolve(),
            source,
            options.max_depth,
            Path(folder).resolve(),
            options.timeout_seconds,
            device,
            resources.device_memory_limit,
        )
        room = partial(check_room, run.limit, cluster)
        try:
            ended: list[Done] = run.executor.step(
                "search", lambda _: run_on_workers(cluster.client, workers, search, room), [None]
            )
        except BaseException:  # Ctrl-C comes here, not to the thread that waits for the ranks
            stop(cluster.client, workers)
            raise
        done = ended[0]
        run.notes.extend(done.notes)
        attempt = done.job
        assert isinstance(attempt, SearchJob)
        need = run.held() + 8 * info.vertices
        arrays = run.executor.step("gather", lambda _: gather(store, attempt.place), [None], need)
    writing = partial(writing_bytes, store)
    return Searched(
        *(names, Found(*arrays[0], done.results[0]), graph_record(store)),
        *(info.layout, "push-pull, streamed" if attempt.on_disk else "push-pull", writing),
        device=done.devices,
        ranks=len(done.results),
    )


class Workers(NamedTuple):
    """Of a cluster: the addresses of those that get a rank, and the device they may search on."""

    cluster: Cluster
    addresses: list[str]
    device: str


@contextmanager
def open_workers(
    store: Store, resources: Resources, threads: int, timeout: float
) -> Iterator[Workers]:
    """As many workers as the store has partitions, for one command. InputError: they cannot."""
    partitions, asked = store.info.partitions, resources.cluster.workers or 0
    if asked > partitions:
        raise InputError(
            f"{store.path} has {partitions} partition{'s'[: partitions > 1]} for {asked} "
            f"workers: build it again with --partitions {asked} or more"
        )
    device = resources.device
    devices = asked > 0 and has_device_each(device, asked)
    if asked and not devices:
        device = "cpu"
    with (
        open_cluster(resources.cluster, threads, devices) as cluster,
        lease(cluster.client, timeout),
    ):
        yield Workers(cluster, workers_of(cluster.client)[:partitions], device)


def check_room(
    limit: int, cluster: Cluster, ranks: int, baseline: int, needs: Sequence[int]
) -> int:
    """The first of several ways that fits. needs: bytes that each takes on a rank.

    Raises LimitError, with the least limit that would do, if none does.
    """
    here = resident_bytes() + GROWTH_BYTES

    def held(need: int) -> int:
        each = baseline + need + GROWTH_BYTES
        return here + ranks * each if cluster.local else each

    for way, need in enumerate(needs):
        if held(need) <= limit:
            return way
    need = min(needs)
    wanted = format_bytes(held(need)).replace(" ", "")
    of_each = "" if cluster.local else " of each worker"
    raise LimitError(
        f"the memory limit{of_each} of {format_bytes(limit)} is too small: each of "
        f"{ranks} ranks holds up to {format_bytes(need)}, beside Python and libraries; give "
        f"--memory-limit {wanted} or more"
    )
