"""delegraph: questions to graphs that are Parquet edge lists, on one core or many GPUs.

``__init__.pyi`` names the same things for type checkers.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._version import __version__ as __version__

_HOMES = {
    ".partition.errors": ("BusyError", "DelegraphError", "InputError"),
    ".pipeline.api": (
        *("bench", "build", "info", "open", "open_store", "plan", "report", "validate"),
    ),
    ".pipeline.edge_lists": ("convert", "generate"),
    ".pipeline.graph": ("Graph",),
    ".pipeline.result": ("Result",),
    ".pipeline.sql_tables": ("register",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that ``import delegraph`` costs nothing."""
    if name == "__all__":
        return __dir__()
    if not name.startswith("_"):
        if name in _HOME:
            return getattr(import_module(_HOME[name], __name__), name)
        if name in _questions():
            return getattr(import_module(".pipeline.functions", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(["__version__", *_HOME, *_questions()])


def _questions() -> list[str]:
    return [*import_module(".pipeline.questions", __name__).QUESTIONS]
