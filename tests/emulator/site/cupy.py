"""What ``import cupy`` finds in processes that emulate devices."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))

import emulator

sys.modules["cupy"] = emulator.cupy
