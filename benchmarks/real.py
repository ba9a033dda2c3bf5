"""Real graphs for benchmarks: Parquet edge lists of a folder that is not in the repository."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("../shared/data"),
        help="folder of real graphs: NAME.parquet and real/NAME.parquet, columns src and dst",
    )


def real_graphs(folder: Path) -> dict[str, Path]:
    """Where each stands, by name. Says so if there are none."""
    files = [*sorted(folder.glob("*.parquet")), *sorted(folder.glob("real/*.parquet"))]
    if not files:
        print(f"no real graphs: {folder} has no Parquet files (--data)")
    return {file.stem: file for file in files}


def scale_of(name: str) -> str | None:
    """The scale of a generated graph that is named kronN; None for any other name."""
    found = re.fullmatch(r"kron(\d+)", name)
    return found and found[1]


def asked_for(
    options: argparse.Namespace, generated: str, known: Callable[[str], object]
) -> Iterator[tuple[str, Path | None]]:
    """Names of ``--graphs``, by default the generated ones and all real ones, and where each is;
    None for one to generate. Says so of one that is neither known nor there.
    """
    found = real_graphs(options.data)
    for name in (options.graphs or ",".join([generated, *found])).split(","):
        if name in found or known(name):
            yield name, found.get(name)
        else:
            print(f"{name}: skipped, it is not in {options.data}")
