"""Shortest paths on a device: the definition is reference.shortest_paths, the kernels stand in
cuda/programs/shortest_paths.cu.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..base.graph import UNREACHED
from ..gpu.device import pack
from ..gpu.graph import Array
from ..pieces.relax import Bucket, Rule, next_bucket
from . import rows
from .ranks import Ranks
from .rows import Launch, ProgramGraph, c_name, kernel_of

STATE = np.dtype(
    [
        *((name, "u8") for name in ("edges", "taken", "again")),
        *((name, "f8") for name in ("begin", "width", "limit")),
        *((name, "u4") for name in ("round", "buckets", "bucket_round", "piled", "done")),
    ],
    align=True,
)
CONTROL = np.dtype(
    [
        *((name, "u8") for name in ("arrived", "edges", "taken", "again")),
        ("least", "u8", 2),
        ("queued", "u4", 3),
        ("piled", "u4", 2),
        ("stop", "u4", 2),
        ("state", STATE),
    ],
    align=True,
)
PATHS = np.dtype(
    [
        *((name, "u8") for name in ("distance", "queued_in")),
        *((name, "u8", 2) for name in ("queue", "pile")),
        ("control", "u8"),
        ("most", "f8"),
        ("clocks", "u8"),
        *((name, "u4") for name in ("few", "few_piled", "stays")),
    ],
    align=True,
)
PART = 128  # cuda/programs/queue.cuh

LAUNCH = Launch(1024, 1)
"""One block does small rounds alone: it has all warps that a multiprocessor takes."""

_FEW = 512  # items of a round that one block does
_FEW_PILED = 1 << 14  # vertices of a pile that it looks through
_SOURCE = "programs/shortest_paths.cu"
_FAR = np.float64(np.inf).view(np.uint64)

_LITTLE = 1 << 20  # edges of a bucket of several ranks that are no work: the next one is wider
_AGAIN = 0.25  # as of the kernel


class GpuPaths:
    """Paths from ``source``, a global id, that are no longer than ``most``; run until ``done``.

    width: of the first bucket. saved: distances of an earlier run, float64 (n,) in host memory, and
    where its bucket began: all that is nearer has shortened what it can.
    """

    def __init__(
        self,
        graph: ProgramGraph,
        source: int,
        width: float,
        most: float,
        saved: tuple[np.ndarray, float] | None = None,
    ) -> None:
        self._graph = graph
        self._source = source
        n = graph.cut.vertices
        items = items_of(n, graph.cut.rows.edges)
        with graph.device.use() as cupy:
            self._distance: Array = cupy.full(n, np.inf, np.float64)
            self._queued_in: Array = cupy.zeros(n, np.uint32)
            self._queues: list[Array] = [cupy.empty(items, np.uint64) for _ in range(2)]
            self._piles: list[Array] = [cupy.empty(n, np.uint32) for _ in range(2)]
        begun, pile = 0.0, np.array([source], np.uint32)
        if saved is None:
            self._distance[source] = 0.0
        else:
            distance, begun = saved
            self._distance.set(distance)
            pile = np.flatnonzero(np.isfinite(distance) & (distance >= begun)).astype(np.uint32)
        # All begins in a pile, that of the first, even bucket.
        with graph.device.use():
            self._piles[0][: len(pile)].set(pile)
            self._control = self._control_of(width=width / 2, limit=begun, piled=len(pile))
            self._read()
        self._rows = graph.cut.packed()
        self._paths = pack(
            PATHS,
            distance=self._distance,
            queued_in=self._queued_in,
            queue=[queue.data.ptr for queue in self._queues],
            pile=[pile.data.ptr for pile in self._piles],
            control=self._control,
            most=most,
            clocks=rows.TIME,
            few=_FEW,
            few_piled=_FEW_PILED,
        )

    def _control_of(self, width: float = 0.0, limit: float = 0.0, piled: int = 0) -> Array:
        """width: half of the first bucket's. limit: nothing that is piled is nearer."""
        least = np.float64(limit).view(np.uint64)
        control = pack(CONTROL, least=[least, _FAR], piled=[piled, 0])
        state = control["state"]
        state["width"], state["limit"], state["round"], state["bucket_round"] = width, limit, 1, 1
        return self._graph.device.cupy.asarray(control.view(np.uint8))

    def _read(self) -> None:
        self._now = self._control.get().view(CONTROL)[0]

    @property
    def done(self) -> bool:
        return bool(self._now["state"]["done"])

    @property
    def rounds(self) -> int:
        return int(self._now["state"]["round"]) - 1

    @property
    def buckets(self) -> int:
        return int(self._now["state"]["buckets"])

    @property
    def edges(self) -> int:
        """That were followed."""
        return int(self._now["edges"])

    @property
    def bucket(self) -> tuple[float, float]:
        """Where it begins, and how wide it is."""
        state = self._now["state"]
        return float(state["begin"]), float(state["width"])

    def run(self) -> None:
        """For about rows.TIME."""
        with self._graph.device.use():
            stop = CONTROL.fields["stop"][1]  # pyright: ignore[reportOptionalSubscript]
            self._control[stop : stop + 8] = 0
            self._kernel("shortest_paths")(self._rows, self._graph.weights, self._paths)
            self._read()

    @property
    def distance(self) -> Array:
        """float64 (n,), infinite where unreached, on the device."""
        return self._distance

    def distances(self) -> np.ndarray:
        """float64 (n,), infinite where unreached, in host memory."""
        with self._graph.device.use():
            return self._distance.get()

    def parents(self) -> np.ndarray:
        """uint32 (n,), UNREACHED of the source and where unreached, in host memory: a tree, for
        distances that are done.
        """
        with self._graph.device.use():
            return self.adopt().get()

    def adopt(self) -> Array:
        """The same on the device."""
        graph = self._graph
        with graph.device.use() as cupy:
            parent = cupy.full(graph.cut.vertices, UNREACHED, np.uint32)
            arguments = (self._rows, graph.weights, self._distance, parent)
            self._kernel("adopt_nearer")(*arguments)
            settled = self._settled(parent)
            if bool((settled != cupy.isfinite(self._distance)).any()):
                self._adopt_alike(parent, settled)
            return parent

    def _settled(self, parent: Array) -> Array:
        settled = parent != UNREACHED
        settled[self._source] = True
        return settled

    def _adopt_alike(self, parent: Array, settled: Array) -> None:
        graph = self._graph
        with graph.device.use():
            self._queued_in[...] = settled
            paths, control = self._paths.copy(), self._control_of()
            paths["control"] = control.data.ptr
            self._queue_marked(paths)
            self._kernel("adopt_alike")(self._rows, graph.weights, paths, parent)

    def _queue_marked(self, paths: np.ndarray) -> None:
        """Vertices whose ``queued_in`` is not 0, for round 1."""
        graph, n = self._graph, self._graph.cut.vertices
        name = f"queue_marked<{graph.cut.rows.offset_type}>"
        of = graph.cut.rows.offsets, np.uint32(n), paths
        graph.device.launch(_SOURCE, name, -(-n // 32) * 32, of)

    def _kernel(self, function: str) -> Callable[..., None]:
        return _kernel(self._graph, function)


class SharedPaths(GpuPaths):
    """The same by ranks with a share of the edges each.

    All know the same distances of what is nearer than the bucket's end. Each lets its own edges
    shorten them until nothing in the bucket changes (the round of many launches of one device, with
    no next bucket); then ranks tell each other what did, as often as anything has changed. What is
    farther is one rank's own, until its bucket comes.

    saved: as of GpuPaths, the same on all ranks.
    """

    def __init__(
        self,
        graph: ProgramGraph,
        ranks: Ranks,
        source: int,
        width: float,
        most: float,
        saved: tuple[np.ndarray, float] | None = None,
    ) -> None:
        super().__init__(graph, source, width, most)
        self._ranks = ranks
        self._at_once = -(-graph.cut.vertices // ranks.size)  # told: no more by many than by few
        self._rule = Rule(_LITTLE, _AGAIN, most)
        self._phases = self._followed = 0
        self._over = False
        self._paths["stays"] = 1
        with graph.device.use() as cupy:
            self._told: Array = cupy.full(graph.cut.vertices, np.inf, np.float64)
            begin = 0.0
            if saved is not None:
                distance, begin = saved
                self._distance.set(distance)
                known = self._distance < begin
                self._told[known] = self._distance[known]
        self._bucket = Bucket(begin, width, max(begin + width, float(np.nextafter(begin, np.inf))))
        self._new, self._looked = True, np.zeros(3)

    @property
    def done(self) -> bool:
        return self._over

    @property
    def rounds(self) -> int:
        """After each of which ranks have told each other."""
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
        """What has changed is told, and its edges followed; or the next bucket, where nothing has.
        due: whether this rank wants to save; gives whether any does.
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
        """Vertices whose edges are to be followed here, None where no rank has changed any; and
        whether any rank wants to save.
        """
        cupy, ranks = self._graph.device.cupy, self._ranks
        distance = self._distance
        beyond = float(cupy.where(distance < self._bucket.limit, np.inf, distance).min())
        message = [mine, distance[mine], np.array([beyond, due, *self._looked])]
        came = ranks.tell([message] * ranks.size)
        least, wants, *looked = np.stack([facts for *_, facts in came]).T
        if not any(len(vertices) for vertices, *_ in came):
            self._end_bucket(float(least.min()), [float(some.sum()) for some in looked])
            return None, bool(wants.any())
        # What this rank has found in a bucket it has followed then; not what is there at first.
        queued = [mine] if self._new else [mine[:0]]
        is_news = cupy.less_equal if self._new else cupy.less
        every = [(cupy.asarray(vertices), cupy.asarray(values)) for vertices, values, _ in came]
        for rank, (vertices, values) in enumerate(every):
            if rank != ranks.rank:
                nearer = is_news(values, distance[vertices])
                queued.append(vertices[nearer])
                distance[queued[-1]] = values[nearer]
        for vertices, values in every:  # (Nearer ones of this rank may not be told yet.)
            self._told[vertices] = cupy.minimum(self._told[vertices], values)
        return cupy.concatenate(queued), bool(wants.any())

    def _end_bucket(self, least: float, looked: Sequence[float]) -> None:
        """least: distance beyond it. looked: edges, taken, again, as of Bucket, of all ranks."""
        edges, taken, again = looked
        self._over = least == np.inf
        ended = self._bucket._replace(edges=edges, taken=taken, again=again)
        self._bucket = Bucket(*next_bucket(ended, self._rule, least))
        self._new, self._looked = True, np.zeros(3)

    def _follow(self) -> None:
        """The edges of what is queued, and of what these shorten in the bucket, and so on."""
        graph = self._graph
        control = pack(CONTROL, least=[_FAR, _FAR])
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

    def known(self) -> np.ndarray:
        """Distances that all ranks know together, on rank 0, in host memory: to go on from."""
        with self._graph.device.use() as cupy:
            whole = self._distance.copy()
            self._ranks.fold_whole(whole, cupy.minimum)
            return whole.get() if self._ranks.rank == 0 else np.empty(0)

    def adopt(self) -> Array:
        """As of GpuPaths. A vertex takes what the first rank that has any offers, so that parents
        of one rank's offers lead to such of that rank, or of one before it.
        """
        graph, ranks = self._graph, self._ranks
        with graph.device.use() as cupy:
            parent = cupy.full(graph.cut.vertices, UNREACHED, np.uint32)
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


def warm_up(graph: ProgramGraph) -> None:
    """Compile, or load from the cache, all kernels that paths may come to."""
    for function in ("shortest_paths", "adopt_nearer", "adopt_alike"):
        _kernel(graph, function)
    with graph.device.use():
        graph.device.kernel(_SOURCE, f"queue_marked<{graph.cut.rows.offset_type}>")


def _kernel(graph: ProgramGraph, function: str) -> Callable[..., None]:
    kinds = graph.cut.rows.offset_type, c_name(str(graph.weight_type)), graph.cut.tiered
    return kernel_of(graph.device, _SOURCE, function, kinds, LAUNCH)


def items_of(vertices: int, entries: int) -> int:
    """Of a queue of all vertices, of 8 bytes each."""
    return vertices + entries // PART


def device_bytes(vertices: int, entries: int) -> int:
    """That paths hold beside the graph."""
    distance, parent, queued_in, piles, looking = 8, 4, 4, 2 * 4, 3
    each = distance + parent + queued_in + piles + looking
    return each * vertices + 2 * 8 * items_of(vertices, entries)


def told_bytes(vertices: int) -> int:
    """That a share holds besides: what is told; lists of what has changed, and while they are made,
    of own ones and of all.
    """
    told, lists, making = 8, 2 * (4 + 8), 2 * 8 + 2 + 4
    return (told + lists + making) * vertices
