"""Reports of ``bench --json`` with known numbers."""

from __future__ import annotations

RATES = {"min": 1.0, "q1": 2.0, "median": 3.0, "q3": 4.0, "max": 5.5}


def bench_report(**more):
    """Return a report in the form that ``bench --json`` prints."""
    return {
        "graph": {"path": "graphs/kron.dg", "vertices": 1234567, "directed": False},
        "versions": {"delegraph": "0.1.0"},
        "hardware": {"machine": "x86_64", "cores": 2, "memory_bytes": 24 * 10**9},
        "device": "cpu",
        "method": "push-pull",
        "threads": 2,
        "seed": 1,
        "sources": [5, 6, "seven"],
        "preparation_seconds": 12.5,
        "load_seconds": 0.25,
        "compile_seconds": 3.0,
        "search_seconds": {name: value / 1000 for name, value in RATES.items()},
        "gteps": RATES,
        "gteps_harmonic_mean": 2.75,
        "depth": RATES,
        **more,
    }


def scaling_rows():
    """Return the rows of a scaling report for 1, 2 and 4 ranks."""
    exchanged = {
        "bytes_sent": {"delegates": 1000.0, "normals": 3000.0},
        "supersteps": 6.5,
        "held_bytes": 10**9,
        "levels": [],
    }
    return [
        {
            "ranks": ranks,
            "report": bench_report(gteps={name: value * rate for name, value in RATES.items()}),
            "exchanged": exchanged if ranks > 1 else None,
            "efficiency": rate / ranks,
            "notes": [] if ranks < 4 else ["a device would not do"],
        }
        for ranks, rate in ((1, 1), (2, 1.5), (4, 2.5))
    ]
