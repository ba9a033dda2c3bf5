"""Checkpoints of a run: what it has found so far, on disk, so that a killed one goes on.

    search.json                     steps done, and the files with their checksums
    distance-00007.npy, parent-00007.npy, supersteps-00007.parquet        of a search at level 7

The files get names of their own and are on the disk before ``search.json``, which is replaced
as a whole, names them: whenever the process dies, it names whole files, old ones or new ones.
All else that a search needs follows from these: its frontier are the vertices at distance
``level``. A program saves what it goes on from (``save_state``): by global id, whoever has worked
on it, so several ranks go on from what one process has saved, and the other way round.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import DTypeLike, NDArray

from ...kernels.base.team import Team
from ...partition.disk.files import (
    ArrayWriter,
    FileRecord,
    Values,
    read_array,
    read_array_block,
    read_verified,
    record_of,
    verify_file,
)
from ...partition.disk.outputs import naming_full_disk, write_file
from ...partition.disk.system_errors import raise_failure, sync_to_disk
from ...partition.errors import InputError
from ..run import ending
from .superstep_log import SuperstepLog
from .supersteps import read_supersteps, write_supersteps

_FORMAT = "delegraph checkpoint 4"
_NAME = "search.json"


class Saved(NamedTuple):
    """A search saved between two levels; arrays as in superstep.Found, ``level`` of the
    frontier.
    """

    distance: NDArray[np.int32]
    parent: NDArray[np.uint32]
    level: int
    supersteps: SuperstepLog


class Pieces(NamedTuple):
    """An array to save of which ``pieces`` gives one part after another."""

    dtype: np.dtype
    length: int
    pieces: Iterable[NDArray]

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * self.length


class SavedArray(NamedTuple):
    """An array on disk that was whole when it was checked."""

    path: Path
    record: FileRecord
    dtype: np.dtype

    def read(self) -> NDArray:
        return read_array(self.path, self.record, Team(1))

    def pieces(self) -> Iterator[tuple[int, NDArray]]:
        """Yield blocks of elements, each with the index of its first element. Raises InputError for
        damage.
        """
        path, record, values = self.path, self.record, Values(self.dtype)
        return (read_array_block(path, record, values, k) for k in range(len(record.xxh3)))


class State(NamedTuple):
    """The state that a run resumes from, after ``done`` steps. arrays: by name. facts: values that
    JSON holds.
    """

    done: int
    arrays: dict[str, SavedArray]
    facts: Any
    supersteps: SuperstepLog | None


class Checkpoint:
    """The checkpoint of one run in a folder, which holds nothing else.

    seconds: how often to save. search: says what is run, and over what; a checkpoint of
    another run is ignored, as a damaged one is. saving: called before each save.
    loaded: called with the steps that are done where a run goes on. passed: called by a search
    after its levels, with the level and the vertices found there. damaged: called with a line for
    the user where a checkpoint is not as it was written.
    """

    def __init__(
        self,
        folder: Path,
        seconds: float,
        search: str = "",
        saving: Callable[[], None] = lambda: None,
        loaded: Callable[[int], None] = lambda level: None,
        passed: Callable[[int, int], None] = lambda level, found: None,
        damaged: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._folder = folder
        self._seconds = seconds
        self._search = search
        self._saving = saving
        self._loaded = loaded
        self.passed = passed
        self._damaged = damaged
        self._last = time.monotonic()

    @property
    def place(self) -> tuple[Path, float, str]:
        """Return the folder, seconds and search of a checkpoint by which another process saves this
        run.
        """
        return self._folder.resolve(), self._seconds, self._search

    def ask_elsewhere(self) -> bool:
        """Return whether the other process that saves here has to save and end. Called now and then
        meanwhile.
        """
        if (self._folder / _NAME).exists():
            self._saving()
        return ending.asked()

    def due(self) -> bool:
        """Return whether to save now: the time has come, or the process has to end."""
        return ending.asked() or time.monotonic() - self._last >= self._seconds

    def wait_anew(self) -> None:
        """Let ``seconds`` pass before a save is due, as after one."""
        self._last = time.monotonic()

    def save(
        self,
        distance: NDArray[np.int32],
        parent: NDArray[np.uint32],
        level: int,
        supersteps: SuperstepLog,
    ) -> None:
        """Save a search."""
        self.save_state(level, {"distance": distance, "parent": parent}, None, supersteps)

    def save_state(
        self,
        done: int,
        arrays: Mapping[str, NDArray | Pieces],
        facts: Any = None,
        supersteps: SuperstepLog | None = None,
    ) -> None:
        """Replace the folder's content. Copies no array. Every save has the same arrays, and pieces
        are asked for in the order of their arrays.

        Raises KeyboardInterrupt afterwards where a signal has asked for an end.
        """
        self._saving()
        self._folder.mkdir(exist_ok=True)
        names = {name: f"{name}-{done:05}.npy" for name in arrays}
        needed = sum(array.nbytes for array in arrays.values())
        with naming_full_disk(self._folder, lambda: f"{needed:,} bytes are needed, "):
            records = {name: self._write(names[name], array) for name, array in arrays.items()}
            if supersteps is not None:
                names["supersteps"] = f"supersteps-{done:05}.parquet"
                write_supersteps(self._folder / names["supersteps"], supersteps)
                records["supersteps"] = record_of(self._folder / names["supersteps"])
            document = {
                "format": _FORMAT,
                "search": self._search,
                "done": done,
                "facts": facts,
                "files": {name: {"file": names[name], **records[name].to_json()} for name in names},
            }
            document["xxh3"] = _digest(document)
            self._sync()
            write_file(self._folder / _NAME, json.dumps(document).encode())
        self._remove_all_but(*names.values())
        self.wait_anew()
        ending.end_if_asked()

    def _write(self, name: str, values: NDArray | Pieces) -> FileRecord:
        partial = self._folder / f"{name}.partial"
        with ArrayWriter(partial, values.dtype) as file:
            for piece in values.pieces if isinstance(values, Pieces) else [values]:
                file.append(piece)
            record = file.finish()
        os.replace(partial, self._folder / name)
        return record

    def _sync(self) -> None:
        """Wait until the names in the folder are on the disk."""
        sync_to_disk(self._folder)

    def load(self, vertices: int) -> Saved | None:
        """Return the saved state of this search of a graph with so many vertices; None if nothing
        whole was saved.
        """
        kinds = {"distance": (np.int32, vertices), "parent": (np.uint32, vertices)}
        state = self.load_state(kinds)
        if state is None or state.supersteps is None or len(state.supersteps) != state.done:
            return None
        self.go_on_from(state.done)
        distance, parent = (array.read() for array in state.arrays.values())
        return Saved(distance, parent, state.done, state.supersteps)

    def load_state(self, kinds: Mapping[str, tuple[DTypeLike, int]]) -> State | None:
        """Return the saved state of this run, with arrays of these types and lengths; None if
        nothing whole was saved.
        """
        if not (self._folder / _NAME).exists():
            return None
        try:
            document = self._document()
            if (document["format"], document["search"]) != (_FORMAT, self._search):
                return None
            done, files = document["done"], document["files"]
            if type(done) is not int:
                return None
            supersteps = None
            if "supersteps" in files:
                path, record = self._file(files["supersteps"])
                supersteps = read_supersteps(read_verified(path, record, Team(1)).data)
            arrays = {name: self._look_at(files[name], *kind) for name, kind in kinds.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, InputError) as error:
            self._tell_damage(error)
            return None
        return State(done, arrays, document["facts"], supersteps)

    def _tell_damage(self, error: Exception) -> None:
        raise_failure(self._folder, error)
        self._damaged(f"the checkpoint is damaged ({error}): the search starts from the beginning")

    def look(self) -> None:
        """Report damage to a checkpoint that another process will resume from."""
        if not (self._folder / _NAME).exists():
            return
        try:
            document = self._document()
            for entry in document["files"].values():
                verify_file(*self._file(entry), Team(1))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, InputError) as error:
            self._tell_damage(error)

    def go_on_from(self, done: int) -> None:
        """Report that the run resumes from the loaded state."""
        self._loaded(done)

    def _document(self) -> dict[str, Any]:
        """Return the content of ``search.json``. Raises ValueError and other errors where it is
        damaged.
        """
        document = json.loads((self._folder / _NAME).read_bytes())
        if document.pop("xxh3") != _digest(document):
            raise ValueError(f"{self._folder / _NAME} has changed since it was written")
        return document

    def _file(self, entry: dict) -> tuple[Path, FileRecord]:
        return self._folder / Path(entry["file"]).name, FileRecord.from_json(entry)

    def _look_at(self, entry: dict, dtype: DTypeLike, length: int) -> SavedArray:
        """Read the whole checkpoint once: a run may resume from whole state alone."""
        path, record = self._file(entry)
        if record.length(dtype) != length:
            raise ValueError(f"{path}: it belongs to another graph")
        array = SavedArray(path, record, np.dtype(dtype))
        for _ in array.pieces():
            pass
        return array

    def clear(self) -> None:
        """Remove the saved state: the search is done."""
        (self._folder / _NAME).unlink(missing_ok=True)
        self._remove_all_but()

    def _remove_all_but(self, *names: str) -> None:
        """Remove older arrays, and files that a killed save left behind."""
        for pattern in ("*.npy*", "*.parquet*", ".*.partial*"):
            for path in self._folder.glob(pattern):
                if path.name not in names:
                    path.unlink(missing_ok=True)


def _digest(document: dict[str, Any]) -> str:
    return xxhash.xxh3_64_hexdigest(json.dumps(document, sort_keys=True).encode())
