"""A lease of the workers of a cluster, which one command holds at a time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import wait as wait_for
from typing import Any

from ...partition.errors import BusyError
from ..run.cluster import Cluster
from ..run.contact import cluster_errors

_NAME = "delegraph-search"
_LOOK_SECONDS = 1.0


@contextlib.contextmanager
def lease(cluster: Cluster, timeout: float) -> Iterator[None]:
    """Lease the workers for one command. Raises BusyError if another command keeps them for longer
    than ``timeout`` seconds.
    """
    from distributed import Semaphore

    client, contact = cluster.client, cluster.contact
    with cluster_errors():
        semaphore = Semaphore(name=_NAME, scheduler_rpc=client.scheduler, loop=client.loop)
        until = time.monotonic() + timeout
        while not contact.wait(semaphore._acquire(min(timeout, _LOOK_SECONDS)), []):
            if time.monotonic() > until:
                raise BusyError(
                    f"the workers have been busy with another command for {timeout:g} s: run the "
                    "same command again"
                )
            contact.wait(_free_from_the_dead(client.scheduler), [])
        held = semaphore._leases[-1]
        holder = {"client": client.id, "lease": held}
        contact.wait(client.scheduler.set_metadata(keys=[_NAME], value=holder), [])
    try:
        yield
    finally:
        if client.status == "running":  # otherwise the lease is gone with the cluster
            wait_for([contact.call(semaphore._release(held))], _LOOK_SECONDS)
        semaphore.refresh_callback.stop()


async def _free_from_the_dead(scheduler: Any) -> None:
    """Release the lease of a client that has left: the scheduler would keep it for 30 s more."""
    holder = await scheduler.get_metadata(keys=[_NAME], default=None)
    if holder is not None:
        told = await scheduler.events(topic=holder["client"])
        if any(event["action"] == "remove-client" for _, event in told):
            await scheduler.semaphore_release(name=_NAME, lease_id=holder["lease"])
