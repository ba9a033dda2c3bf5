"""``delegraph demo``."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import click

from .. import options
from ..command import command
from ..numbers import WholeNumber


@command()
@click.option(
    "--scale",
    type=WholeNumber(1, 30),
    default=16,
    show_default=True,
    help="Size of the Kronecker graph: at most 2^SCALE vertices.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="Folder to keep the files in.  [default: a temporary one, removed afterwards]",
)
@options.debug
def demo(scale: int, output: str | None) -> None:
    """Run the main commands on a generated graph, and show each with its output.

    \b
    delegraph demo --scale 12
    """
    if output is None:
        from ...partition.disk.temporary import TemporaryFolder

        with TemporaryFolder("delegraph-demo-") as folder:
            _run_all(Path(folder), scale)
        return
    try:
        Path(output).mkdir()
    except OSError as error:
        raise click.UsageError(f"{output} cannot be made: {error.strerror}") from error
    _run_all(Path(output), scale)


def _run_all(folder: Path, scale: int) -> None:
    click.echo(f"# in {folder}")
    for line in (
        f"generate kronecker --scale {scale} --edge-factor 16 --seed 1 -o edges",
        "info edges",
        "bfs edges --source {source} -o distances",
        "build edges -o graph.dg",
        "validate graph.dg distances",
        "bfs graph.dg --source {source} -o distances --overwrite",
        "validate graph.dg distances",
        "bench graph.dg --sources 8",
    ):
        typed = line
        if "{source}" in line:
            typed = line.format(source=_first_source(folder / "edges"))
        click.echo(f"\n$ delegraph {typed}")
        sys.stdout.flush()
        done = subprocess.run(
            [sys.executable, "-m", "delegraph", *shlex.split(typed)], cwd=folder, check=False
        )
        if done.returncode:
            sys.exit(done.returncode)
    click.echo("\nThe first rows of distances:")
    import pyarrow.parquet as pq

    rows = pq.read_table(folder / "distances").slice(0, 5).to_pylist()
    for row in rows:
        click.echo("  ".join(f"{name} {value}" for name, value in row.items()))


def _first_source(edges: Path) -> int:
    """A vertex that has an edge: the first row's source."""
    import pyarrow.parquet as pq

    file = sorted(edges.glob("*.parquet"))[0]
    return next(pq.ParquetFile(file).iter_batches(1))["src"][0].as_py()
