"""Modules that the fork server (fork_server.py) imports once for all workers. The server would end
where a module raises anything but ImportError.
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
    """Import the modules. folder: of the server, which removes it when the server's parent process
    is killed and the server ends by itself. (Forked workers end elsewhere.)
    """
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    bound_thread_starts()  # of workers, which are forked
    sys.modules.setdefault("scipy", None)  # pyright: ignore[reportArgumentType] - see cli/main.py
    for name in names:
        with suppress(Exception):  # the worker that needs it tells what is wrong
            import_module(name)
    gc.collect()
    gc.freeze()  # or the collector would write to what forked processes share


if "DELEGRAPH_PRELOADED" in os.environ:  # in the server alone
    preload(os.environ.pop("DELEGRAPH_PRELOADED").split(), os.environ.pop("DELEGRAPH_FOLDER"))
