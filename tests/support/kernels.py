"""Functions that only kernels call, for tests that call them from Python."""

from __future__ import annotations

from typing import Any

from numba import njit


def callable_from_python(function: Any) -> Any:
    """Return a kernel that calls a function of kernels, and returns its result."""

    @njit
    def call(*arguments):
        return function(*arguments)

    return call
