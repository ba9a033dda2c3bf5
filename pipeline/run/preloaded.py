"""Modules that the fork server (fork_server.py) imports once for all workers. An error in this
module, other than ImportError, would end the server.
"""

import atexit
import gc
import os
import shutil
import sys
from contextlib import suppress
from importlib import import_module

from ...kernels.base.threads import bound_thread_starts


def preload(names: list[str], folder: str) -> None:
    """Import the modules. folder: the server's; the server removes it when it ends by itself, after
    its parent process was killed. (Forked workers end without removing it.)
    """
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    bound_thread_starts()  # forked workers inherit this
    sys.modules.setdefault("scipy", None)  # pyright: ignore[reportArgumentType] - see cli/main.py
    for name in names:
        with suppress(Exception):  # a worker that needs the module reports the error
            import_module(name)
    gc.collect()
    gc.freeze()  # else the collector would write to pages that forked processes share


if "DELEGRAPH_PRELOADED" in os.environ:  # only in the server
    preload(os.environ.pop("DELEGRAPH_PRELOADED").split(), os.environ.pop("DELEGRAPH_FOLDER"))
