"""Shortest paths by ranks with a share of the edges each. All ranks know the same distances of
vertices that are nearer than the bucket's end. A rank has its own distances of farther vertices,
until their bucket comes. The kernels are cuda/programs/shared_paths.cu, and those of one device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..base.arrays import Array as Declared
from ..base.graph import UNREACHED
from ..gpu.device import pack
from ..gpu.graph import Array
from ..programs.relax import Bucket, Rule, next_bucket
from .meeting import MEETING, SAID, Meeting, open_meeting
from .ranks import Ranks
from .rows import ProgramGraph
from .shortest_paths import CONTROL, FAR_BITS, GpuPaths, kernel
from .shortest_paths import warm_up as warm_up_paths

HEARD = np.dtype(
    [("met", "u8"), ("said", "u8", SAID), ("news", "u8"), ("told", "u4", 2), ("stopped", "u4")],
    align=True,
)
SHARED = np.dtype(
    [
        *((name, "u8") for name in ("distance", "news", "heard")),
        ("meeting", MEETING),
        ("vertices", "u4"),
    ],
    align=True,
)

_SOURCE = "programs/shared_paths.cu"

_LITTLE = 1 << 20  # edges of a bucket of several ranks that are no work: the next one is wider
_AGAIN = 0.25  # as of the kernel


class _Asked(NamedTuple):
    """The arguments of GpuPaths."""

    source: int
    width: float
    most: float
    saved: tuple[np.ndarray, float] | None


class SharedPaths(GpuPaths, ABC):
    """Shortest paths found by several ranks. saved: as for GpuPaths, the same on all ranks."""

    def __init__(self, graph: ProgramGraph, ranks: Ranks, asked: _Asked) -> None:
        super().__init__(graph, *asked)
        self._ranks = ranks

    @abstractmethod
    def step(self, due: bool) -> bool:
        """Do some rounds. due: whether this rank wants to save. Returns whether any rank wants to
        save.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the paths. All ranks call this together."""

    def known(self) -> np.ndarray:
        """Return the distances that all ranks know together, on rank 0, in host memory. A run can
        go on from them.
        """
        with self._graph.device.use() as cupy:
            whole = self._distance.copy()
            self._ranks.fold_whole(whole, cupy.minimum)
            return whole.get() if self._ranks.rank == 0 else np.empty(0)

    def adopt(self) -> Array:
        """Give parents to vertices, as GpuPaths does. A vertex takes the parent that the first rank
        with an offer has for it, so that parents from one rank's offers lead to parents from offers
        of that rank, or of one before it.
        """
        graph, ranks = self._graph, self._ranks
        with graph.device.use() as cupy:
            parent = cupy.full(graph.vertices, UNREACHED, np.uint32)
            self._kernel("adopt_nearer")(self._rows, graph.weights, self._distance, parent)
            ranks.fold_whole(parent, cupy.minimum)
            settled = self._settled(parent)
            while bool((settled != cupy.isfinite(self._distance)).any()):
                offered = parent.copy()
                self._adopt_alike(offered, settled)
                mine = cupy.flatnonzero(offered != parent).astype(np.uint32)
                came = ranks.tell([[mine, offered[mine]]] * ranks.size)
                if not any(len(vertices) for vertices, _ in came):
                    break
                for vertices, parents in reversed(came):  # the first rank's stay
                    parent[cupy.asarray(vertices)] = cupy.asarray(parents)
                settled = self._settled(parent)
            return parent


def shared_paths(
    graph: ProgramGraph,
    ranks: Ranks,
    source: int,
    width: float,
    most: float,
    saved: tuple[np.ndarray, float] | None = None,
) -> SharedPaths:
    """Open paths of ranks: in the ranks' memory where they can read each other's, else by
    messages.
    """
    n, asked = graph.vertices, _Asked(source, width, most, saved)
    declared = [Declared("distance", np.float64, n), Declared("news", np.uint32, 2 * n)]
    meeting = open_meeting(ranks, declared)
    if meeting is None:
        return _PathsByMessages(graph, ranks, asked)
    try:
        return _PathsInMemory(graph, ranks, meeting, asked)
    except BaseException:
        meeting.close()
        raise


class _PathsInMemory(SharedPaths):
    """Paths of ranks that read each other's queues of changed vertices and each other's distances
    in memory. Many rounds are one launch, as for one device.
    """

    def __init__(self, graph: ProgramGraph, ranks: Ranks, meeting: Meeting, asked: _Asked) -> None:
        super().__init__(graph, ranks, asked)
        self._meeting = meeting
        with graph.device.use() as cupy:
            whole = meeting.array("distance")
            whole[:] = self._distance
            self._distance = whole
            self._paths["distance"] = whole.data.ptr
            self._heard: Array = cupy.zeros(HEARD.itemsize, np.uint8)
        self._news = 0
        self._tables = meeting.table("distance"), meeting.table("news")
        self._shared = pack(
            SHARED,
            distance=self._tables[0],
            news=self._tables[1],
            heard=self._heard,
            meeting=meeting.packed(),
            vertices=graph.vertices,
        )
        ranks.total([])  # all distances are written

    def step(self, due: bool) -> bool:
        self.run()
        ranks, before = self._ranks, self._news
        with self._graph.device.use():
            self._news = int(self._heard.get().view(HEARD)[0]["news"])
        ranks.sent += (self._news - before) * (4 + 8) * (ranks.size - 1)
        (wants,) = ranks.total([due])
        return wants > 0

    def _launch(self) -> None:
        launch, weights = _kernel(self._graph), self._graph.weights
        self._meeting.run(lambda: launch(self._rows, weights, self._paths, self._shared))

    def close(self) -> None:
        self._meeting.close()


class _PathsByMessages(SharedPaths):
    """Paths of ranks that send messages. Each rank lets its own edges shorten distances until
    nothing in the bucket changes (the rounds of one device, with no next bucket). Then ranks tell
    each other which distances have changed, and repeat both steps as long as any do.
    """

    def __init__(self, graph: ProgramGraph, ranks: Ranks, asked: _Asked) -> None:
        super().__init__(graph, ranks, asked)
        _, width, most, saved = asked
        self._at_once = -(-graph.vertices // ranks.size)  # told: no more by many than by few
        self._rule = Rule(_LITTLE, _AGAIN, most)
        self._phases = self._followed = 0
        self._over = False
        self._paths["stays"] = 1
        with graph.device.use() as cupy:
            self._told: Array = cupy.full(graph.vertices, np.inf, np.float64)
            begin = 0.0
            if saved is not None:
                begin = saved[1]
                known = self._distance < begin
                self._told[known] = self._distance[known]
        self._bucket = Bucket(begin, width, max(begin + width, float(np.nextafter(begin, np.inf))))
        self._new, self._looked = True, np.zeros(3)

    @property
    def done(self) -> bool:
        return self._over

    @property
    def rounds(self) -> int:
        """Return the number of rounds, after each of which ranks have told each other."""
        return self._phases

    @property
    def buckets(self) -> int:
        return self._bucket.number

    @property
    def edges(self) -> int:
        return self._followed

    @property
    def bucket(self) -> tuple[float, float]:
        return self._bucket.begin, self._bucket.width

    def step(self, due: bool) -> bool:
        """Tell which distances have changed, and follow the edges of these vertices. If no distance
        has changed, begin the next bucket.
        """
        self._phases += 1
        with self._graph.device.use() as cupy:
            distance = self._distance
            mine = cupy.flatnonzero((distance < self._told) & (distance < self._bucket.limit))
            queued, wants = self._tell(mine[: self._at_once].astype(np.uint32), due)
            if queued is not None:
                self._new = self._new and len(mine) > self._at_once
                self._queued_in.fill(0)
                self._queued_in[queued] = 1
                self._follow()
        return wants

    def _tell(self, mine: Array, due: bool) -> tuple[Array | None, bool]:
        """Tell the other ranks of the vertices ``mine``. Returns the vertices whose edges are to be
        followed here, or None if no rank has changed any; and whether any rank wants to save.
        """
        cupy, ranks = self._graph.device.cupy, self._ranks
        distance = self._distance
        beyond = float(cupy.where(distance < self._bucket.limit, np.inf, distance).min())
        message = [mine, distance[mine], np.array([beyond, due, *self._looked])]
        came = ranks.tell([message] * ranks.size)
        least, wants, *looked = np.stack([facts for *_, facts in came]).T
        if not any(len(vertices) for vertices, *_ in came):
            self._end_bucket(float(least.min()), [float(counts.sum()) for counts in looked])
            return None, bool(wants.any())
        # What this rank has found in a bucket it has followed then; not what is there at first.
        queued = [mine] if self._new else [mine[:0]]
        is_news = cupy.less_equal if self._new else cupy.less
        changes = [(cupy.asarray(vertices), cupy.asarray(values)) for vertices, values, _ in came]
        for rank, (vertices, values) in enumerate(changes):
            if rank != ranks.rank:
                nearer = is_news(values, distance[vertices])
                queued.append(vertices[nearer])
                distance[queued[-1]] = values[nearer]
        for vertices, values in changes:  # (Nearer ones of this rank may not be told yet.)
            self._told[vertices] = cupy.minimum(self._told[vertices], values)
        return cupy.concatenate(queued), bool(wants.any())

    def _end_bucket(self, least: float, looked: Sequence[float]) -> None:
        """End the bucket, and choose the next one. least: the least distance beyond the bucket.
        looked: edges, taken, again, as in Bucket, over all ranks.
        """
        edges, taken, again = looked
        self._over = least == np.inf
        ended = self._bucket._replace(edges=edges, taken=taken, again=again)
        self._bucket = Bucket(*next_bucket(ended, self._rule, least))
        self._new, self._looked = True, np.zeros(3)

    def _follow(self) -> None:
        """Follow the edges of the queued vertices, then the edges of vertices in the bucket whose
        distances these shorten, and so on.
        """
        graph = self._graph
        control = pack(CONTROL, least=[FAR_BITS, FAR_BITS])
        state = control["state"]
        state["begin"], state["limit"] = self._bucket.begin, self._bucket.limit
        state["round"] = state["bucket_round"] = 1
        self._control = graph.device.cupy.asarray(control.view(np.uint8))
        self._paths["control"] = self._control.data.ptr
        self._queue_marked(self._paths)
        self._now = control[0]
        while not self._now["state"]["done"]:
            self.run()
        self._looked += [float(self._now[name]) for name in ("edges", "taken", "again")]
        self._followed += int(self._now["edges"])

    def close(self) -> None:
        """Do nothing: this rank holds no memory of others."""


def warm_up(graph: ProgramGraph) -> None:
    """Compile, or load from the cache, all kernels that paths may come to."""
    warm_up_paths(graph, alone=False)
    _kernel(graph)


def _kernel(graph: ProgramGraph) -> Callable[..., None]:
    return kernel(graph, "shared_paths", _SOURCE)


def exchange_bytes(vertices: int) -> int:
    """Return the bytes that a share holds besides. Paths by messages take more than paths in
    memory: they hold what is told, lists of what has changed, and, while the lists are made, lists
    of own vertices and of all.
    """
    told, lists, making = 8, 2 * (4 + 8), 2 * 8 + 2 + 4
    return (told + lists + making) * vertices
