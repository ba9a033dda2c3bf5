"""What ``import cupy`` finds in processes that emulate devices."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))

from support import emulator

sys.modules["cupy"] = emulator.cupy
