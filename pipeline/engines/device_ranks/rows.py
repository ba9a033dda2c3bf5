"""A rank's partitions, from a store to its device: read and verified a shard at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....kernels.base.team import Team
from ....kernels.gpu_ranks.delegate_rows import RankRowsMaker
from ....kernels.gpu_ranks.grid_rows import GridRowsMaker
from ....partition.disk.files import read_array_into
from ....partition.store.store import Store


def make_rows(
    store: Store,
    maker: RankRowsMaker | GridRowsMaker,
    names: Sequence[str],
    team: Team,
    check: Callable[[], None],
) -> None:
    """Hand subgraphs of these names over, all offsets before the first targets.

    check: called before each subgraph, and each shard.
    """
    parts = range(maker.rank, store.info.partitions, maker.numbering.ranks)
    places = [(p, name) for name in names for p in parts]
    for p, name in places:
        check()
        maker.count(p, name, store.offsets(p, name, team))
    maker.begin()
    buffer = np.empty(store.largest_shard // 4, np.uint32)
    for p, name in places:
        begin = 0
        for file in store.shards(p, name):
            check()
            record = store.files[file]
            shard = buffer[: record.length(np.uint32)]
            read_array_into(store.path / file, record, shard, team)
            maker.place(p, name, begin, shard)
            begin += len(shard)
        maker.end(p, name)
