"""Connection of a job's process to its batch; pipeline/batches/process.py is the other end."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import sys
import threading
from typing import Any

from ..pipeline.run.ending import KEEP
from ..pipeline.run.peak import forget_peak


class Batch:
    """The batch that has started this process. When the batch is gone, a job ends as by SIGTERM."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._runs = True
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError), self._socket.makefile("rb") as lines:
            for line in lines:
                self._runs = True
                self._jobs.put(json.loads(line))
        if self._runs:
            os.kill(os.getpid(), signal.SIGTERM)
        self._jobs.put(None)

    def next_job(self) -> bool:
        """Tell the batch that a job is done, and become the next job; return False where there is
        none.
        """
        if KEEP not in os.environ:
            return False
        try:
            forget_peak()
            self._runs = False
            self._socket.sendall(b"done\n")
        except OSError:
            return False
        job = self._jobs.get()
        if job is None:
            return False
        sys.argv[1:] = job["words"]
        _write_to(sys.stderr.fileno(), job["log"], os.O_APPEND)
        _write_to(sys.stdout.fileno(), job["out"], os.O_TRUNC)
        return True


def _write_to(descriptor: int, path: str, flags: int) -> None:
    """Redirect a descriptor to a file. flags: for opening the file."""
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o666)
    os.dup2(opened, descriptor)
    os.close(opened)
