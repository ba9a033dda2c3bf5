"""What the fork server imports, once for all workers (fork_server.py): it would end where a module
raises anything but ImportError.
"""

import atexit
import gc
import os
import shutil
import sys
from contextlib import suppress
from importlib import import_module

# Where the process that it is of is killed, this one ends by itself. What it forks ends elsewhere.
atexit.register(shutil.rmtree, os.environ["DELEGRAPH_FOLDER"], ignore_errors=True)

sys.modules.setdefault("scipy", None)  # pyright: ignore[reportArgumentType] - as in cli/main.py
for _name in os.environ["DELEGRAPH_PRELOADED"].split():
    with suppress(Exception):  # the worker that needs it tells what is wrong
        import_module(_name)
gc.collect()
gc.freeze()  # or the collector would write to what forked processes share
