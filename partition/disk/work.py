"""Work in progress: a folder beside the output that outlives the process, and its contents.

    .NAME.work/lock                  held by the live run; released when the run dies
    .NAME.work/journal.json          the purpose of the work, and the result of each finished step
    .NAME.work/output/               becomes NAME when the work is done, or holds the file NAME
    .NAME.work/record-DIGEST.json    becomes NAME.run.json right after that
    .NAME.work/replaced/             the old NAME, or a note on which is new while two are swapped
    .NAME.work/scratch/              arrays between steps (or --scratch DIR/NAME-HASH/, with a mark)

For an output in an object store, .NAME-HASH.work/ is in --scratch DIR, or in a folder of the user's
among temporary files, and output/ is uploaded at the end (uploads.py).

Both folders are for their owner alone; folders of other users are refused. The same command finds
them and resumes after the last finished step. Another command is refused, with the difference in
words. A run that succeeds, or that leaves nothing worth keeping, removes them.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import xxhash

from ..errors import DelegraphError, InputError, LimitError, LostScratchError
from .files import file_bytes
from .journal import difference, read_journal, write_journal
from .lock import LOCK, locked
from .outputs import (
    FILES,
    Kind,
    made_folders,
    naming_full_disk,
    publish,
    record_path,
    restore_replaced,
    sync_files,
    write_file,
)
from .private import check_private, is_private, make_private
from .scratch import SCRATCH_NAMES, whole
from .system_errors import FULL, raise_failure, sync_to_disk
from .uploads import clear_remains, publish_result
from .urls import AnyPath, is_remote, url_of

P = ParamSpec("P")
T = TypeVar("T")

_lost: ContextVar[str | None] = ContextVar("lost", default=None)
"""Damage that ended the last attempt, for the notes of the attempt that starts over."""

Step = Mapping[str, Any]
"""The result of a finished step: JSON values."""


class Work:
    """The making of one output; see ``begin_work``."""

    def __init__(self, output: AnyPath, scratch: AnyPath | None, purpose: dict[str, str]) -> None:
        self.path = path = _place_of(output, scratch)
        self.url = url_of(os.fspath(output)) if is_remote(output) else None
        self.name = str(self.url or path)
        self.folder = path.with_name(f".{path.name}.work")
        self.output = self.folder / "output"
        self.scratch = self.folder / "scratch"
        self._place = os.path.realpath(path)
        self._elsewhere = f"{path.name}-{xxhash.xxh3_64_hexdigest(os.fsencode(self._place))}"
        if scratch is not None:
            self.scratch = Path(scratch).absolute() / self._elsewhere
        self.reused: list[str] = []
        self.notes: list[str] = []  # for the user: damage to files of an earlier attempt
        self.disk_bytes = 0  # bytes that the plan expects to write, for a full disk's message
        self._journal = self.folder / "journal.json"
        self._replaced = self.folder / "replaced"
        where = "not given" if scratch is None else os.path.abspath(scratch)
        self._purpose = {**purpose, "--scratch": where}
        self._steps: dict[str, Step] = {}
        self._mark = ""

    @property
    def began(self) -> bool:
        """Return whether any step is finished, which another attempt could reuse."""
        return bool(self._steps)

    def given(self, name: str) -> Step | None:
        """Return the result of a step that this or an earlier attempt finished; None if none
        did.
        """
        return self._steps.get(name)

    def step(self, name: str, run: Callable[[], Step]) -> Step:
        """Return the result of step ``name``. The step runs unless an earlier attempt finished it.

        All files that it leaves must be on the disk when it ends.
        """
        if name in self._steps:
            self.reused.append(name)
            return self._steps[name]
        given = run()
        for folder in (self.output, self.scratch):
            _sync_folders(folder)
        # Through JSON, so that a result is the same if an earlier attempt ran the step.
        self._steps[name] = json.loads(json.dumps(given))
        self._write_journal()
        return self._steps[name]

    def keep(self, name: str) -> None:
        """Keep the scratch folder for the next attempt from now on. name: of the step that its
        files stand for.
        """
        if name not in self._steps:
            self.step(name, dict)

    def is_empty(self) -> bool:
        """Return whether no file was made that another attempt could reuse."""
        places = (self.output, self.scratch)
        files = (path for place in places for path in place.rglob("*") if path.is_file())
        return all(path.name == _MARK for path in files)

    def let_others_begin(self) -> None:
        """Note that this command was refused, not cut off, so that another command may begin."""
        self._write_journal(refused=True)

    def sync(self) -> None:
        """Wait until the output is on the disk."""
        sync_files(self.output)

    def publish(self, kind: Kind, overwrite: bool, record: bytes | None = None) -> None:
        """Make the output appear, and the run's record beside it. Both are whole."""
        self._remove_partial()  # left by killed workers
        if self.url is not None:
            assert record is not None
            publish_result(self.output, self.url, overwrite, record)
            return
        self.sync()
        if record is not None:
            for old_record in self._records():  # left by an attempt that was killed at this point
                old_record.unlink()
            write_file(self.folder / _record_name(record), record)
        new = self.output / self.path.name if kind in FILES else self.output
        publish(new, self.path, kind, overwrite, self._replaced)
        self._publish_record()

    def _publish_record(self) -> None:
        # If the new output is not in the work folder, it has been moved to its path already.
        made = self.output.is_dir() and os.listdir(self.output)
        if not self.path.exists() or made:
            return
        for record in self._records():
            if record.name != _record_name(file_bytes(record)):
                record.unlink()
                self.notes.append(f"{record}: damaged: the output has no run record")
                continue
            os.replace(record, record_path(self.path))
            _sync_folders(self.folder)

    def _records(self) -> list[Path]:
        return [path for path in self.folder.glob("record-*.json") if path.is_file()]

    def needs(self) -> str:
        """Return the start of a message about the disk space that the plan expects to use; empty
        without a plan.
        """
        return f"about {self.disk_bytes:,} bytes are needed, " if self.disk_bytes else ""

    def resume(self, restart: bool) -> None:
        """Take over the work of an earlier attempt, or remove it.

        Raises InputError if the attempt had another purpose, unless ``restart``, or if another user
        may have made the scratch folder.
        """
        restore_replaced(self.output, self.path, self._replaced)
        self._publish_record()
        document = read_journal(self._journal)
        if not document and self._journal.is_file():
            self.notes.append(f"{self._journal}: damaged: all finished steps run again")
        check_private(self.scratch)
        steps = document["steps"] if document else {}
        useful = bool(steps) and not restart and self.output.is_dir()
        is_foreign = useful and document["purpose"] != self._purpose
        if is_foreign and not document.get("refused"):
            raise InputError(
                f"{self.name} holds unfinished work of another command: "
                f"{difference(document['purpose'], self._purpose)}; run that command again, or "
                "start over with --restart"
            )
        if (
            useful
            and not is_foreign
            and self._is_ours(self.scratch, document)
            and self._scratch_is_whole()
        ):
            self._steps, self._mark = steps, document.get("mark", "")
            self._remove_partial()
        else:
            self._begin_anew(document)

    def _scratch_is_whole(self) -> bool:
        """Return whether no array that is left in scratch is damaged. Arrays may be missing."""
        files = (path for names in SCRATCH_NAMES for path in self.scratch.glob(names))
        damaged = next((path for path in files if not whole(path)), None)
        if damaged is not None:
            self.notes.append(f"{damaged}: damaged: all steps run again")
        return damaged is None

    def _begin_anew(self, document: Mapping[str, Any]) -> None:
        """Remove an earlier attempt's files, and make new folders. document: the journal of that
        attempt.
        """
        if document:
            scratch = Path(document["scratch"])
            if scratch.name == self._elsewhere and self._is_ours(scratch, document):
                shutil.rmtree(scratch, ignore_errors=True)
        self._clear()
        try:
            self.output.mkdir()
            if self._is_inside(self.scratch):
                make_private(self.scratch)
                return
            self._mark = secrets.token_hex()
            self._write_journal()  # tells where scratch files are, in case this run is killed
            try:
                self.scratch.parent.mkdir(parents=True, exist_ok=True)
                make_private(self.scratch)
            except OSError as error:
                if error.errno not in FULL:
                    raise_failure(self.scratch, error)
                told = f"{self.scratch.parent} cannot be written: {error.strerror}"
                raise InputError(f"{told}; name another folder with --scratch") from error
            write_file(self.scratch / _MARK, self._marked(self._mark))
        except BaseException:
            self.discard()
            raise

    def _is_inside(self, scratch: Path) -> bool:
        return scratch.parent == self.folder

    def _is_ours(self, scratch: Path, document: Mapping[str, Any]) -> bool:
        """Return whether the scratch folder exists, and was made by the attempt of this journal.

        A journal that was copied with its folder names another output's scratch folder, and a
        forged journal may name any folder.
        """
        if self._is_inside(scratch):
            return is_private(scratch)
        wanted = self._marked(document.get("mark", ""))
        try:
            return is_private(scratch) and (scratch / _MARK).read_bytes() == wanted
        except OSError as error:
            raise_failure(scratch, error)
            return False

    def _marked(self, secret: str) -> bytes:
        """Return the content of the mark in a scratch folder outside the work folder."""
        return os.fsencode(f"{self._place}\n{secret}")

    def _remove_partial(self) -> None:
        """Remove the unfinished files of an earlier attempt that was cut off."""
        for folder in (self.output, self.scratch):
            for path in folder.rglob(".*.partial*"):
                path.unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove everything. Files that cannot be removed now are removed by the next attempt."""
        self._clear()
        self.leave()

    def _clear(self) -> None:
        """Remove all files that this or an earlier attempt has left, except the lock."""
        restore_replaced(self.output, self.path, self._replaced)
        self._publish_record()
        for record in self._records():
            record.unlink()  # before its output
        self._steps = {}
        shutil.rmtree(self.scratch, ignore_errors=True)
        if os.path.lexists(self.scratch):
            self._write_journal()
        else:
            self._journal.unlink(missing_ok=True)
        kept = {LOCK, self._journal.name}
        for entry in self.folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name not in kept:
                entry.unlink()

    def leave(self) -> None:
        """Remove the work folder if only the lock is left in it."""
        with contextlib.suppress(OSError):  # the folder may be gone; the cause is reported
            if os.listdir(self.folder) == [LOCK]:
                shutil.rmtree(self.folder, ignore_errors=True)

    def _write_journal(self, refused: bool = False) -> None:
        document = {
            "refused": refused,
            "purpose": self._purpose,
            "scratch": str(self.scratch),
            "mark": self._mark,
            "steps": self._steps,
        }
        write_journal(self._journal, document)


@contextlib.contextmanager
def begin_work(
    output: AnyPath,
    purpose: dict[str, str],
    *,
    restart: bool = False,
    scratch: AnyPath | None = None,
) -> Iterator[Work]:
    """Begin the work that makes ``output``, and yield it. The output appears when the block calls
    ``publish``.

    purpose: the facts that must be the same for an earlier attempt's steps to be reused, by the
    words that messages use for them. restart: whether to drop such steps. Raises BusyError if a
    live run makes the same output, InputError if a dead run with another purpose left steps behind.
    If the block fails, finished steps are kept for the next attempt, except those of a first
    attempt whose input is bad.
    """
    work = Work(output, scratch, purpose)
    if lost := _lost.get():
        work.notes.append(lost)
        _lost.set(None)

    def naming() -> contextlib.AbstractContextManager[None]:
        return naming_full_disk(work.path, work.needs, lambda: [work.scratch])

    with naming(), made_folders(work.path.parent), locked(work.folder, work.name):
        try:
            work.resume(restart)
        except BaseException:
            work.leave()
            raise
        resumed = work.began
        try:
            with naming():  # inside: discarding would free space before it is reported
                yield work
        except BaseException as error:
            refused = isinstance(error, LimitError)
            bad_input = isinstance(error, InputError) and not refused
            lost = isinstance(error, LostScratchError)
            useless = not work.began or lost or (refused and work.is_empty())
            if useless or (bad_input and not resumed):
                work.discard()
            elif refused and not resumed:
                work.let_others_begin()
            raise
        work.discard()


_MARK = ".delegraph-scratch"  # in scratch outside the work folder: its output, and a secret


def begun_again(command: Callable[P, T]) -> Callable[P, T]:
    """Return the command with one retry: if scratch of an earlier attempt is lost or damaged, the
    command starts over.
    """

    @wraps(command)
    def run(*args: P.args, **options: P.kwargs) -> T:
        try:
            return command(*args, **options)
        except LostScratchError as error:  # begin_work has removed the rest of the scratch
            _lost.set(f"{error.damage}: all steps run again")
            return command(*args, **options)
        finally:
            _lost.set(None)

    return run


def clean_up(output: AnyPath, purpose: dict[str, str], scratch: AnyPath | None) -> None:
    """Remove the work folder of a run that was cut off after its output was whole.

    The folder of a live run, or of a run with another purpose, is left alone.
    """
    if is_remote(output):
        clear_remains(url_of(os.fspath(output)))
    if Work(output, scratch, purpose).folder.is_dir():
        with (
            contextlib.suppress(DelegraphError, OSError),
            begin_work(output, purpose, scratch=scratch),
        ):
            pass


def _place_of(output: AnyPath, scratch: AnyPath | None) -> Path:
    """Return the path of an output; for one in an object store, a path on this machine that stands
    for it.
    """
    if not is_remote(output):
        return Path(output).absolute()
    url = url_of(os.fspath(output))
    name = f"{url.name}-{xxhash.xxh3_64_hexdigest(str(url).encode())}"
    if scratch is not None:
        return Path(scratch).absolute() / name
    folder = Path(tempfile.gettempdir(), f"delegraph-{os.getuid()}")
    make_private(folder)
    return folder / name


def _record_name(record: bytes) -> str:
    return f"record-{xxhash.xxh3_128_hexdigest(record)}.json"


def _sync_folders(folder: Path) -> None:
    for name, _, _ in os.walk(folder):
        sync_to_disk(name)
