"""``delegraph warm-up``."""

from __future__ import annotations

import time

import click

from ...pipeline.questions import QUESTIONS
from .. import options
from ..command import command
from ..progress import shown
from ..talk import talk


@command()
@click.argument("questions", nargs=-1, type=click.Choice(list(QUESTIONS)), metavar="[QUESTION]...")
@options.quiet
@options.debug
def warm_up(questions: tuple[str, ...], quiet: bool) -> None:
    """Compile the code of questions now, so that no later run waits for it.

    \b
    delegraph warm-up
    delegraph warm-up components pagerank

    Without QUESTION, all questions. What is compiled is kept for later runs: on this machine, or in
    an image of a container. An installation on most x86-64 processors has compiled the code of
    usual questions already. Kernels for GPUs are not compiled.
    """
    from ...kernels.base.compiled import count_kernels
    from ...pipeline.warm_up import warm_up

    began = time.monotonic()
    with shown(quiet) as progress:
        warm_up(questions or tuple(QUESTIONS), progress)
    compiled, loaded = count_kernels()
    seconds = time.monotonic() - began
    talk(
        quiet, f"compiled {compiled:,} kernels in {seconds:.0f} s; {loaded:,} were compiled before"
    )
