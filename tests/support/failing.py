"""System calls that change files, one of which fails."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ["open", "fsync", "replace", "rename", "mkdir", "unlink", "rmdir", "chmod", "scandir"]


class Failing:
    """A context in which one of the calls that change something in ``folder`` fails.

    number: of the call that fails; ``calls`` counts the calls.
    """

    def __init__(self, monkeypatch, folder: Path, number: int, error: int) -> None:
        self._patches = monkeypatch
        self._folder = str(folder)
        self._number, self._error = number, error
        self.calls = 0

    def __enter__(self) -> Failing:
        gc.collect()  # what other tests have left puts folders of its own away
        self._context = self._patches.context()
        patched = self._context.__enter__()
        for name in NAMES:
            patched.setattr(os, name, self._counted(getattr(os, name)))
        return self

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)

    def _counted(self, real: Callable) -> Callable:
        def call(*args: Any, **named: Any) -> Any:
            # An open folder's entries, as rmtree removes them, or a path.
            concerned = "dir_fd" in named or not isinstance(args[0], str | Path)
            if concerned or os.fspath(args[0]).startswith(self._folder):
                self.calls += 1
                if self.calls == self._number:
                    raise OSError(self._error, os.strerror(self._error), str(args[0]))
            return real(*args, **named)

        return call
