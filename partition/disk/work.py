"""Work in progress: a folder beside the output that outlives the process, and what is in it.

    .NAME.work/lock            held by the live run; a dead one has let go of it
    .NAME.work/journal.json    what is being made, and what each finished step gave
    .NAME.work/output/         becomes NAME when the work is done
    .NAME.work/record.json     becomes NAME.run.json right after that
    .NAME.work/replaced/       what stood at NAME, for the moment in between
    .NAME.work/scratch/        arrays between steps (or --scratch DIR/NAME-HASH/, with a mark)

The same command finds the folder and goes on after the last finished step. Another one is
refused, with the difference in words. A run that ends well, or with nothing worth keeping,
removes the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import xxhash

from ..errors import DelegraphError, InputError, LimitError
from .outputs import (
    AnyPath,
    Kind,
    naming_full_disk,
    publish,
    record_path,
    restore_replaced,
    sync_files,
    write_file,
)

Step = Mapping[str, Any]
"""What a finished step gave: values that JSON holds."""


class Work:
    """An output in the making; see ``begin_work``."""

    def __init__(self, path: Path, scratch: AnyPath | None, purpose: dict[str, str]) -> None:
        self.path = path
        self.folder = path.with_name(f".{path.name}.work")
        self.output = self.folder / "output"
        self.scratch = self.folder / "scratch"
        self._place = os.path.realpath(path)
        self._elsewhere = f"{path.name}-{xxhash.xxh3_64_hexdigest(self._place.encode())}"
        if scratch is not None:
            self.scratch = Path(scratch).absolute() / self._elsewhere
        self.reused: list[str] = []
        self.disk_bytes = 0  # that the plan expects to write, for the message of a full disk
        self._journal = self.folder / "journal.json"
        self._record = self.folder / "record.json"
        self._replaced = self.folder / "replaced"
        where = "not given" if scratch is None else os.path.abspath(scratch)
        self._purpose = {**purpose, "--scratch": where}
        self._steps: dict[str, Step] = {}

    @property
    def began(self) -> bool:
        """Whether a step is finished that another attempt could reuse."""
        return bool(self._steps)

    def given(self, name: str) -> Step | None:
        """What a step gave to an earlier attempt, if it was finished."""
        return self._steps.get(name)

    def step(self, name: str, run: Callable[[], Step]) -> Step:
        """What step ``name`` gave; it runs unless an earlier attempt has finished it.

        All files that it leaves must be on the disk when it ends.
        """
        if name in self._steps:
            self.reused.append(name)
            return self._steps[name]
        given = run()
        for folder in (self.output, self.scratch):
            _sync_folders(folder)
        # Through JSON either way: what a step gives does not depend on who ran it.
        self._steps[name] = json.loads(json.dumps(given))
        self._write_journal()
        return self._steps[name]

    def keep(self, name: str) -> None:
        """Keep the scratch folder for the next attempt from now on; ``name`` says what is there."""
        if name not in self._steps:
            self.step(name, dict)

    def sync(self) -> None:
        """Wait until the output is on the disk."""
        sync_files(self.output)

    def publish(self, kind: Kind, overwrite: bool, record: bytes | None = None) -> None:
        """Let the output appear, and the run's record beside it: both are whole."""
        self.sync()
        if record is not None:
            write_file(self._record, record)
        publish(self.output, self.path, kind, overwrite, self._replaced)
        self._publish_record()

    def _publish_record(self) -> None:
        # Where the folder that becomes the output is missing, it has become the output.
        if self._record.is_file() and self.path.is_dir() and not self.output.is_dir():
            os.replace(self._record, record_path(self.path))
            _sync_folders(self.folder)

    def needs(self) -> str:
        """How much disk the plan expects to use, for a message; nothing without a plan."""
        return f"about {self.disk_bytes:,} bytes are needed, " if self.disk_bytes else ""

    def resume(self, restart: bool) -> None:
        """Take over what an earlier attempt has left, or clear it away.

        InputError if it had another purpose, unless ``restart``.
        """
        restore_replaced(self.path, self._replaced)
        self._publish_record()
        document = _read_journal(self._journal)
        steps = document["steps"] if document else {}
        useful = bool(steps) and not restart and self.output.is_dir()
        if useful and document["purpose"] != self._purpose:
            raise InputError(
                f"{self.path} was begun by another command and cut off: "
                f"{difference(document['purpose'], self._purpose)}; run that one again, or "
                "start over with --restart"
            )
        if useful and self.scratch.is_dir():
            self._steps = steps
            self._remove_partial()
        else:
            if document:
                self._remove_elsewhere(Path(document["scratch"]))
            self._clear()
        for place in (self.output, self.scratch):
            place.mkdir(parents=True, exist_ok=True)
        if self.scratch.parent != self.folder and not self._steps:
            write_file(self.scratch / _MARK, self._place.encode())
            self._write_journal()  # where the scratch files are, should this run be killed

    def _remove_elsewhere(self, scratch: Path) -> None:
        """Remove what an earlier attempt has left in a folder that its journal names.

        Only if that is our own: a journal that was copied along with its folder names another
        output's scratch, and one that was tampered with names anything.
        """
        with contextlib.suppress(OSError):
            if (
                scratch.name == self._elsewhere
                and scratch.lstat().st_uid == os.geteuid()
                and (scratch / _MARK).read_bytes() == self._place.encode()
            ):
                shutil.rmtree(scratch, ignore_errors=True)

    def _remove_partial(self) -> None:
        """Remove the files that were being written when the earlier attempt was cut off."""
        for folder in (self.output, self.scratch):
            for path in folder.rglob(".*.partial*"):
                path.unlink(missing_ok=True)

    def discard(self) -> None:
        self._publish_record()
        self._record.unlink(missing_ok=True)  # before the output that it is of
        shutil.rmtree(self.scratch, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _clear(self) -> None:
        self._record.unlink(missing_ok=True)
        shutil.rmtree(self.scratch, ignore_errors=True)
        for entry in self.folder.iterdir():
            if entry.name == _LOCK:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def _write_journal(self) -> None:
        document = {
            "purpose": self._purpose,
            "scratch": str(self.scratch),
            "steps": self._steps,
        }
        encoded = json.dumps({**document, "xxh3": _digest(document)}, indent=1).encode()
        write_file(self._journal, encoded)


def _read_journal(path: Path) -> dict[str, Any]:
    """What an earlier attempt wrote; empty where there is nothing whole."""
    try:
        document = json.loads(path.read_bytes())
        return document if document.pop("xxh3") == _digest(document) else {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _digest(document: Mapping[str, Any]) -> str:
    return xxhash.xxh3_64_hexdigest(json.dumps(document, sort_keys=True).encode())


def difference(theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """What differs between two purposes, in words.

    >>> difference({"--order": "none", "input": "a"}, {"--order": "degree", "input": "a"})
    '--order was none, now degree'
    """
    return ", ".join(
        f"{key} was {theirs.get(key, 'not given')}, now {ours.get(key, 'not given')}"
        for key in {**theirs, **ours}
        if theirs.get(key) != ours.get(key)
    )


@contextlib.contextmanager
def begin_work(
    output: AnyPath,
    purpose: dict[str, str],
    *,
    restart: bool = False,
    scratch: AnyPath | None = None,
) -> Iterator[Work]:
    """The work that makes ``output``, which appears when the block calls ``publish``.

    purpose: what has to be the same for an earlier attempt's steps to be of use, in the user's
    words. restart: throw such steps away. Raises DelegraphError if a live run makes the same
    output, InputError if a dead one with another purpose left steps behind. If the block fails,
    finished steps are kept for the next attempt; but nothing of a first one whose input is bad.
    """
    work = Work(Path(output).absolute(), scratch, purpose)
    with naming_full_disk(work.path, work.needs, lambda: [work.scratch]), _locked(work):
        work.resume(restart)
        resumed = work.began
        try:
            yield work
        except BaseException as error:
            bad_input = isinstance(error, InputError) and not isinstance(error, LimitError)
            if not work.began or (bad_input and not resumed):
                work.discard()
            raise
        work.discard()


_LOCK = "lock"
_MARK = ".delegraph-scratch"  # in scratch that stands elsewhere: the output that it is of


@contextlib.contextmanager
def _locked(work: Work) -> Iterator[None]:
    folder, path = work.folder, work.path
    if folder.is_dir() and not (folder / _LOCK).is_file() and any(folder.iterdir()):
        raise InputError(f"{folder} is in the way and not of our making: remove or rename it")
    try:
        folder.mkdir(exist_ok=True)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A run that has just ended may have removed the folder after we opened its lock.
            current = os.stat(folder / _LOCK).st_ino == os.fstat(lock).st_ino
        except OSError:
            current = False
        if not current:
            raise DelegraphError(
                f"another run is writing {path} at this moment: wait for it, or name another output"
            )
        yield
    finally:
        os.close(lock)


def clean_up(output: AnyPath, purpose: dict[str, str], scratch: AnyPath | None) -> None:
    """Remove what a run left that was cut off when its output was whole already.

    What belongs to a live run, or to one with another purpose, is left alone.
    """
    if Path(output).absolute().with_name(f".{Path(output).name}.work").is_dir():
        with (
            contextlib.suppress(DelegraphError, OSError),
            begin_work(output, purpose, scratch=scratch),
        ):
            pass


def _sync_folders(folder: Path) -> None:
    for name, _, _ in os.walk(folder):
        descriptor = os.open(name, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
