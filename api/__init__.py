"""delegraph: questions to graphs that are Parquet edge lists, on one core or many GPUs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .partition.errors import BusyError, DelegraphError, InputError
    from .partition.store.store import open_store
    from .pipeline.api import (
        bench,
        betweenness,
        bfs,
        build,
        closeness,
        components,
        convert,
        eccentricity,
        generate,
        info,
        open,
        pagerank,
        plan,
        report,
        sssp,
        validate,
    )
    from .pipeline.graph import Graph
    from .pipeline.result import Result

_HOME = {
    "bench": ".pipeline.api",
    "betweenness": ".pipeline.api",
    "bfs": ".pipeline.api",
    "build": ".pipeline.api",
    "closeness": ".pipeline.api",
    "components": ".pipeline.api",
    "convert": ".pipeline.api",
    "eccentricity": ".pipeline.api",
    "generate": ".pipeline.api",
    "info": ".pipeline.api",
    "open": ".pipeline.api",
    "pagerank": ".pipeline.api",
    "plan": ".pipeline.api",
    "report": ".pipeline.api",
    "sssp": ".pipeline.api",
    "validate": ".pipeline.api",
    "open_store": ".partition.store.store",
    "BusyError": ".partition.errors",
    "DelegraphError": ".partition.errors",
    "InputError": ".partition.errors",
    "Graph": ".pipeline.graph",
    "Result": ".pipeline.result",
}

__all__ = [
    "BusyError",
    "DelegraphError",
    "Graph",
    "InputError",
    "Result",
    "__version__",
    "bench",
    "betweenness",
    "bfs",
    "build",
    "closeness",
    "components",
    "convert",
    "eccentricity",
    "generate",
    "info",
    "open",
    "open_store",
    "pagerank",
    "plan",
    "report",
    "sssp",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that ``import delegraph`` costs nothing."""
    if name in _HOME:
        return getattr(import_module(_HOME[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
