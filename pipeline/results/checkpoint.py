"""Checkpoints of a run: its state on disk, so that a killed run can resume.

    search.json                     steps done, and the files with their checksums
    distance-00007.npy, parent-00007.npy, supersteps-00007.parquet        of a search at level 7

Each save gives its files new names and syncs them to the disk before it replaces ``search.json``,
which names them. So ``search.json`` names whole files, old or new, whenever the process dies. A
search needs nothing else: its frontier is the set of vertices at distance ``level``. A program
saves its own state (``save_state``) by global id, whichever rank has computed it, so several ranks
can resume from the state that one process has saved, and one process from the state of several
ranks.
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
    """A search saved between two levels. distance, parent: as in found.Found. level: the level of
    the frontier.
    """

    distance: NDArray[np.int32]
    parent: NDArray[np.uint32]
    level: int
    supersteps: SuperstepLog


class Pieces(NamedTuple):
    """An array to save that is made in parts. pieces: yields the parts in order; together they have
    ``length`` elements of ``dtype``.
    """

    dtype: np.dtype
    length: int
    pieces: Iterable[NDArray]

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * self.length


class SavedArray(NamedTuple):
    """An array on disk. Its checksums were right when the checkpoint was loaded."""

    path: Path
    record: FileRecord
    dtype: np.dtype

    def read(self) -> NDArray:
        return read_array(self.path, self.record, Team(1))

    def pieces(self) -> Iterator[tuple[int, NDArray]]:
        """Return an iterator over blocks of elements, each with the index of its first element. The
        iterator raises InputError for damage.
        """
        path, record, values = self.path, self.record, Values(self.dtype)
        return (read_array_block(path, record, values, k) for k in range(len(record.xxh3)))


class State(NamedTuple):
    """The state that a run resumes from, after ``done`` steps. arrays: by name. facts: JSON values.
    supersteps: None if the run has saved none.
    """

    done: int
    arrays: dict[str, SavedArray]
    facts: Any
    supersteps: SuperstepLog | None


class Checkpoint:
    """The checkpoint of one run, in a folder of its own.

    seconds: the time between two saves. search: a text that identifies the run and its input; a
    checkpoint with another text is ignored, as a damaged one is. saving: called before each save.
    loaded: called with the number of steps done when a run resumes. passed: called by a search
    after its levels, with the level and the number of vertices found there. damaged: called with a
    line for the user if the checkpoint is damaged.
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
        """Return the folder, seconds and search from which another process can make a checkpoint
        for this run.
        """
        return self._folder.resolve(), self._seconds, self._search

    def ask_elsewhere(self) -> bool:
        """Return whether the other process that saves this run must save and end. The process that
        waits for the other one calls this function now and then. If the other process has saved,
        ``saving`` is called.
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
        """Save a search at ``level``: its distances, parents and supersteps."""
        self.save_state(level, {"distance": distance, "parent": parent}, None, supersteps)

    def save_state(
        self,
        done: int,
        arrays: Mapping[str, NDArray | Pieces],
        facts: Any = None,
        supersteps: SuperstepLog | None = None,
    ) -> None:
        """Replace the saved state in the folder. No array is copied. Every save has the same
        arrays; pieces are requested array by array, in the order of ``arrays``.

        Raises KeyboardInterrupt after the save if a signal has asked the process to end.
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
        """Return the saved state of this search over a graph with ``vertices`` vertices; None if no
        undamaged state was saved.
        """
        kinds = {"distance": (np.int32, vertices), "parent": (np.uint32, vertices)}
        state = self.load_state(kinds)
        if state is None or state.supersteps is None or len(state.supersteps) != state.done:
            return None
        self.go_on_from(state.done)
        distance, parent = (array.read() for array in state.arrays.values())
        return Saved(distance, parent, state.done, state.supersteps)

    def load_state(self, kinds: Mapping[str, tuple[DTypeLike, int]]) -> State | None:
        """Return the saved state of this run; None if no undamaged state was saved. kinds: the
        dtype and length of each array, by name.
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
        """Verify a checkpoint that another process will resume from, and report damage."""
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
        """Return the content of ``search.json``. Raises ValueError, or another error, if the
        content is damaged.
        """
        document = json.loads((self._folder / _NAME).read_bytes())
        if document.pop("xxh3") != _digest(document):
            raise ValueError(f"{self._folder / _NAME} has changed since it was written")
        return document

    def _file(self, entry: dict) -> tuple[Path, FileRecord]:
        return self._folder / Path(entry["file"]).name, FileRecord.from_json(entry)

    def _look_at(self, entry: dict, dtype: DTypeLike, length: int) -> SavedArray:
        """Return a saved array after reading it once to verify its checksums: a run must resume
        from undamaged state only. Raises ValueError for another length, InputError for damage.
        """
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
