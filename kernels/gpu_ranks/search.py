"""A rank of a breadth-first search by several devices, whatever the layout of the store.

Ranks read each other's mail in each other's memory if all of them stand in one machine whose
devices can do that; then a whole search is one launch. Elsewhere a launch ends with a round's mail,
and the host has it sent. A search also takes another launch where distances outgrow a byte, and
where records fill their buffer. The parts that differ with the layout are in delegate_layout.py and
grid_layout.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ..base import arrays
from ..base.arrays import allocate
from ..base.graph import UNREACHED
from ..gpu.device import Device, pack
from ..gpu.graph import Array, DeviceGraph
from ..gpu.peer_memory import Exchange, PeerArrays
from ..gpu.search import (
    DONE,
    LEVELS,
    MORE,
    PUSH_COST,
    SEARCH,
    WIDE_LAUNCH,
    WIDEN,
    WideKernel,
    pack_graph,
    queue_arrays,
    queue_of,
    rest_capacity,
    shared_bytes,
)
from ..gpu.waiting import WaitingLaunches

EXCHANGE, STOPPED = 6, 7  # enum Status, beside those of gpu/search.py
BEGIN, GO_ON, RECEIVE, MEET = range(4)  # enum Stage

_MOST_LEVEL = 0x7FFFFFFF


class Sizes(NamedTuple):
    """Sizes of a rank's numbers and queues.

    own: numbers of vertices that have distances there. numbers: all numbers that the rank knows.
    queued: number of vertices after which its queue takes no more. room: number of vertices that
    the queue has room for.
    """

    own: int
    numbers: int
    queued: int
    room: int


def state(
    sizes: Sizes, offsets: DTypeLike, long_rows: int, control: np.dtype, level: np.dtype
) -> list[arrays.Array]:
    """Return the arrays that a search writes to in any layout, but for ``wide_distance``.

    offsets: type of those of the graph. control, level: see RankLayout.
    """
    return [
        arrays.Array("distance", np.uint8, sizes.own, fill=255),
        arrays.Array("visited", np.uint32, sizes.numbers // 32),
        arrays.Array("visited_before", np.uint32, sizes.numbers // 32),
        *queue_arrays("queue", offsets, sizes.room),
        *queue_arrays("rest", offsets, rest_capacity(long_rows)),
        arrays.Array("control", np.uint8, control.itemsize, fill=0),
        arrays.Array("levels", np.uint8, LEVELS * level.itemsize, fill=0),
    ]


def wide_distance(sizes: Sizes) -> arrays.Array:
    """Return the array of distances of more than a byte, which is made when it is needed."""
    return arrays.Array("distance", np.int32, sizes.own)


class AnyRows(Protocol):
    """The interface of a rank's rows on its device, which DelegateRows and GridRows have."""

    @property
    def graph(self) -> DeviceGraph: ...

    @property
    def rank(self) -> int: ...

    @property
    def ranks(self) -> int: ...

    @property
    def own_numbers(self) -> int: ...

    @property
    def bytes(self) -> int: ...

    def number(self, vertex: int) -> int | None: ...

    def global_ids(self, cupy: Any) -> Array: ...

    def owned_ids(self, cupy: Any) -> Array: ...


class Mail(Protocol):
    """The mail of a rank that the others cannot read: ``begin`` of each search, ``carry`` of each
    round with what the kernel keeps, ``fetch_parents`` at the end, all ranks together.
    """

    def begin(self) -> None: ...

    def carry(self, control: np.void) -> None: ...

    def fetch_parents(self) -> None: ...


class RankLayout(Protocol):
    """A rank's data and work in one layout.

    control, record: types of the facts that the kernel keeps from launch to launch, and of those
    that it tells of a superstep. told: a NamedTuple with a superstep's facts for people. structure:
    the kernel's structure of a rank; Search fills in the arrays that it makes itself. shared:
    arrays that other ranks read, ``parent`` among them.
    """

    kernel: WideKernel
    control: np.dtype
    record: np.dtype
    told: Any
    device: Device
    sizes: Sizes
    structure: np.ndarray
    shared: PeerArrays

    @property
    def rows(self) -> AnyRows: ...

    def connect(self, exchange: Exchange, bases: list[int] | None) -> Mail:
        """Learn from the others what they know, and where their mail stands: in their memory, which
        begins here at ``bases``, or, if ``bases`` is None, in copies that the mail puts here.
        """
        ...


L = TypeVar("L", bound=RankLayout)


class Search(Generic[L]):
    """Searches of one graph by several ranks, one at a time, all of them together.

    Every rank makes one, then all call ``connect``, ``run`` and ``close`` in the same order.
    distance, of the last search: uint8 with 255, or int32 with -1, where unreached, by own number.
    parent: uint32, by all the rank's numbers, global ids, UNREACHED where there is none. Of
    delegates that others own, or found, they say nothing (``DelegateLayout.knows``).
    direct: whether ranks read each other's memory.
    check: raises if another rank is known to have failed. push_cost: the same on all ranks.
    """

    direct: bool

    def __init__(
        self, layout: L, check: Callable[[], None] = lambda: None, push_cost: float = PUSH_COST
    ) -> None:
        self.layout = layout
        self.device, self.rows = layout.device, layout.rows
        self.parent: Array = layout.shared.array("parent")
        self._check = check
        self._records: list[np.ndarray] = []
        graph, sizes = self.rows.graph, layout.sizes
        self._graph = pack_graph(graph)
        offsets = graph.forward.offsets.dtype
        declared = state(sizes, offsets, graph.long_rows, layout.control, layout.record)
        with self.device.use() as cupy:
            self._begun = cupy.cuda.Event()
            self._made = made = allocate(declared, cupy)
            begins = np.zeros(1, layout.control)
            begins["round"] = 1  # what nobody has told yet
            made["control"].set(begins.view(np.uint8))
        self._launches = WaitingLaunches(self.device, check)
        self._ended = self._launches.ended
        self._instance: Any = None  # of the kernel, that is launched next
        self._wide: Array | None = None
        self.distance: Array = made["distance"]
        queue = queue_of(made, "queue")
        layout.structure["search"] = pack(
            SEARCH,
            parent=self.parent,
            visited=[made["visited"].data.ptr, made["visited_before"].data.ptr],
            queue=[queue, queue],
            rest=queue_of(made, "rest"),
            rest_capacity=rest_capacity(graph.long_rows),
            level_capacity=LEVELS,
            enqueue_edges=sizes.queued,
            push_cost=push_cost,
        )
        layout.structure["control"] = made["control"].data.ptr
        layout.structure["levels"] = made["levels"].data.ptr
        layout.structure["stop"] = self._launches.stop

    def connect(self, exchange: Exchange, direct: bool = True) -> None:
        """Learn the facts that the others know, and where their mail stands.

        direct: whether to read each other's memory, if that is possible.
        """
        rank, ranks = self.rows.rank, self.rows.ranks
        bases = self.layout.shared.memory.open(exchange, rank, ranks) if direct else None
        self.direct = bases is not None
        with self.device.use():
            self._mail = self.layout.connect(exchange, bases)
        self.layout.structure["hosted"] = not self.direct
        # A search may begin once all have what they are told with.
        exchange([[] for _ in range(ranks)])

    def warm_up(self) -> None:
        """Compile, or load from the cache, the kernel of a search."""
        self._kernel()

    def align(self) -> None:
        """Have the devices wait for each other, so that the next work begins on all of them at
        once.

        Links between devices that were idle are awake afterwards. Without links, this does nothing.
        """
        if not self.direct:
            return
        self.layout.structure["stage"] = MEET
        self._instance = self._kernel()
        with self.device.use():
            self._start()

    def run(self, source: int | None, max_level: int | None = None) -> None:
        """Search, together with all other ranks. source: this rank's number of the source; None if
        it has none.
        """
        structure = self.layout.structure
        search = structure["search"]
        self._records = []
        self.distance = self._made["distance"]
        search["source"] = UNREACHED if source is None else source
        search["first_level"] = 0
        search["max_level"] = _MOST_LEVEL if max_level is None else min(max_level, _MOST_LEVEL)
        structure["stage"] = BEGIN
        self._instance = self._kernel()
        with self.device.use():
            self._mail.begin()
            self._begun.record()
            while (stage := self._launch()) is not None:
                structure["stage"] = stage
            if not self.direct:
                self._mail.fetch_parents()
                self._ended.record()
                self._ended.synchronize()

    def control(self) -> np.void:
        """Return the state that the kernel keeps, as the last launch left it."""
        return self._made["control"].get().view(self.layout.control)[0]

    def seconds(self) -> float:
        """Return the time on the device from the first launch of the last search to its end."""
        return self.device.cupy.cuda.get_elapsed_time(self._begun, self._ended) / 1e3

    def levels(self) -> list[Any]:
        """Return this rank's work in each superstep of the last search, as its layout tells it."""
        told = self.layout.told
        names = [name for name in told._fields if name not in ("direction", "clocks")]
        return [
            told(
                direction="pull" if record["pulled"] else "push",
                clocks=tuple(record["clocks"].tolist()),
                **{name: int(record[name]) for name in names},
            )
            for record in np.concatenate(self._records)
        ]

    @property
    def peer_bytes(self) -> int:
        """Return the bytes of the arrays that others read: they are on the device beside what its
        pool holds.
        """
        return self.layout.shared.memory.size

    def close(self) -> None:
        self.layout.shared.memory.close()

    def _launch(self) -> int | None:
        """Do one launch, and the work that it leaves to the host. Returns the stage of the next
        launch; None if there is none.
        """
        search = self.layout.structure["search"]
        search["distance"] = self.distance.data.ptr
        self._launches.run(self._start)
        control = self.control()
        status, level = int(control["status"]), int(control["level"])
        if status == EXCHANGE:
            self._mail.carry(control)
            return RECEIVE
        self._keep_records(level - int(search["first_level"][0]))
        if status == DONE:
            return None
        if status == WIDEN:
            self._widen()
        elif status != MORE:
            self._check()
            raise RuntimeError("a rank's search was stopped")
        search["first_level"] = level
        return GO_ON

    def _start(self) -> None:
        blocks = self.device.multiprocessors * WIDE_LAUNCH[1]
        arguments = (self._graph, self.layout.structure)
        self._instance((blocks,), (WIDE_LAUNCH[0],), arguments, shared_mem=shared_bytes())

    def _kernel(self) -> Any:
        graph, deep = self.rows.graph, self.distance is not self._made["distance"]
        return self.layout.kernel.compiled_for(
            self.device, graph.forward.offset_type, graph.tiered, deep
        )

    def _widen(self) -> None:
        """Hold distances of more than a byte from now on."""
        wide = self._wide
        if wide is None:
            declared = wide_distance(self.layout.sizes)
            wide = self._wide = allocate([declared], self.device.cupy)["distance"]
        wide[:] = self._made["distance"]
        self.distance = wide
        self._instance = self._kernel()

    def _keep_records(self, count: int) -> None:
        size = self.layout.record.itemsize
        self._records.append(self._made["levels"][: count * size].get().view(self.layout.record))
