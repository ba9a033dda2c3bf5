"""A process that runs one job, or several jobs on the same graph one after another.

The process and the batch share a socket. The batch sends a line for each further job; the process
answers when a job is done. If a job fails, the process ends with the job's exit code. If the batch
closes the socket or is killed, a process that runs a job saves the job's state and ends; a waiting
process ends at once. cli/batched.py has the other end of the socket.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..run.ending import KEEP, LIFELINE

_END_SECONDS = 30.0


class JobProcess:
    """A process that runs jobs. stays: whether it may run several jobs. jobs: the number of jobs it
    has begun. log: the log of the last job.
    """

    def __init__(self, stays: bool) -> None:
        self.stays = stays
        self.jobs = 0
        self.log = Path()
        self._log_from = 0
        self._is_done = False
        self._process: subprocess.Popen[bytes] | None = None
        self._socket, self._theirs = socket.socketpair()

    def begin(self, words: Sequence[str], log: Path) -> None:
        """Run a command. log: receives its events; its printed output goes to a file beside the
        log. Raises OSError if the command cannot begin.
        """
        log.touch()
        self.log, self._log_from, self._is_done = log, log.stat().st_size, False
        out = log.with_suffix(".out")
        if self._process is None:
            self._start(words, log, out)
        else:
            job = {"words": list(words), "log": str(log.absolute()), "out": str(out.absolute())}
            self._socket.sendall(json.dumps(job).encode() + b"\n")
        self.jobs += 1

    def _start(self, words: Sequence[str], log: Path, out: Path) -> None:
        # -P: modules must not be imported from this folder.
        line = [sys.executable, "-P", "-m", "delegraph", *words]
        theirs = self._theirs.fileno()
        told = {LIFELINE: str(theirs)} | ({KEEP: "1"} if self.stays else {})
        with log.open("ab") as events, out.open("wb") as found, self._theirs:
            self._process = subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=found,
                stderr=events,
                start_new_session=True,
                pass_fds=[theirs],
                env={**os.environ, **told},
            )

    def code(self) -> int | None:
        """Return the exit code of the job; None while it runs. If the job is done, the way the
        process ends later does not matter.
        """
        assert self._process is not None
        with contextlib.suppress(OSError):  # no answer yet, or none any more
            self._is_done = self._is_done or bool(self._socket.recv(64, socket.MSG_DONTWAIT))
        return 0 if self._is_done else self._process.poll()

    def is_alive(self) -> bool:
        return self._process is None or self._process.poll() is None

    def last_event(self) -> dict[str, Any]:
        """Return the event by which the job reported its end; an empty dict if there is none."""
        with self.log.open("rb") as file:
            file.seek(max(self._log_from, self.log.stat().st_size - (1 << 16)))
            lines = file.read().splitlines()
        try:
            event = json.loads(lines[-1]) if lines else {}
        except ValueError:
            return {}
        return event if isinstance(event, dict) and event.get("event") == "end" else {}

    def send(self, number: int) -> None:
        """Send a signal to the process; SIGKILL also to its workers."""
        process = self._process
        assert process is not None
        with contextlib.suppress(ProcessLookupError):
            if number == signal.SIGKILL:
                os.killpg(process.pid, number)
            elif process.poll() is None:
                process.send_signal(number)

    def let_go(self) -> None:
        """End a waiting process that has no more jobs."""
        self._close()
        self.end(_END_SECONDS)

    def end(self, seconds: float) -> None:
        """Wait for the end of a process that was told to end, or ends by itself, and kill it after
        ``seconds``. (Its socket stays open while it saves: closing it would act as a second
        signal.)
        """
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(max(0.0, seconds))
            self.send(signal.SIGKILL)
            self._process.wait()
            self.code()
        self._close()

    def _close(self) -> None:
        self._socket.close()
        self._theirs.close()
