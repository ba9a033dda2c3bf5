"""``delegraph demo``."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import NamedTuple

import click

from .. import options
from ..command import command

_FOLDER, _EDGES, _PAGE = "delegraph-demo", "roads.parquet", "traffic.html"


class _Step(NamedTuple):
    """A command of the demo, without the name of the program. sentence: what it is for."""

    sentence: str
    line: str


_STEPS = (
    _Step(
        "Which parts of the country can reach each other?",
        f"components {_EDGES} -o parts/",
    ),
    _Step(
        "How many minutes does it take from Ashford's square to every other junction?",
        f"sssp {_EDGES} --source Ashford/Square --weight minutes -o minutes/",
    ),
    _Step(
        "Which junctions does most traffic pass, if trips start at 64 random junctions?",
        f"betweenness {_EDGES} --sources 64 -o traffic/",
    ),
    _Step(
        "The last answer can be drawn as a page, with the roads around these junctions.",
        f"report traffic/ -o {_PAGE} --graph {_EDGES}",
    ),
)

_BROWSER_VARIABLES = "BROWSER", "DISPLAY", "WAYLAND_DISPLAY"
"""Environment variables, one of which is set where a browser can show a window."""

_POSIX_COMPLETION = 'eval "$(_DELEGRAPH_COMPLETE={shell}_source delegraph)"'
_COMPLETION = {
    "bash": ("~/.bashrc", _POSIX_COMPLETION.format(shell="bash")),
    "zsh": ("~/.zshrc", _POSIX_COMPLETION.format(shell="zsh")),
    "fish": ("~/.config/fish/config.fish", "_DELEGRAPH_COMPLETE=fish_source delegraph | source"),
}
"""The start-up file of each shell, and the line in it that turns completion on."""


@command()
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help=f"Folder to make for the files.  [default: {_FOLDER}; if it exists, {_FOLDER}-2 and so "
    "on]",
)
@click.option("--no-open", is_flag=True, help="Do not open the page in a browser.")
@options.debug
def demo(output: str | None, no_open: bool) -> None:
    """Ask three questions about the roads of a made-up country, and draw one answer as a page.

    \b
    delegraph demo
    delegraph demo --no-open -o country/

    Each question is shown in words, then as a command with its output. The files stay in the
    folder. On a terminal with a display, the page opens in a browser.
    """
    from ..country import write_edge_list

    folder = _make_folder(output)
    write_edge_list(folder / _EDGES)
    _tell_country(folder)
    for step in _STEPS:
        click.echo(f"\n{step.sentence}\n$ delegraph {step.line}")
        _run(step.line, folder)
    page = folder.absolute() / _PAGE
    click.echo(f"\nThe page is {page}.\nThe files stay in {folder} until you remove it.")
    if not no_open and sys.stdout.isatty():
        _open_page(page)
    _tell_next()


def _make_folder(output: str | None) -> Path:
    """Make the folder of the demo, and return its path."""
    if output is None:
        names = (f"{_FOLDER}-{number}" if number > 1 else _FOLDER for number in count(1))
        output = next(name for name in names if not os.path.lexists(name))
    try:
        Path(output).mkdir(parents=True)
    except OSError as error:
        raise click.UsageError(
            f"{output} cannot be made: {error.strerror}: name a new folder with -o"
        ) from error
    return Path(output)


def _tell_country(folder: Path) -> None:
    """Print the map, and what the edge list holds."""
    from ..country import MAP, TOWNS, segments

    rows = list(segments())
    junctions = {junction for src, dst, _ in rows for junction in (src, dst)}
    src, dst, minutes = rows[0]
    click.echo(
        f"A made-up country has {len(TOWNS)} towns and {len(junctions):,} junctions.\n\n{MAP}\n"
        f"{_EDGES} has {len(rows):,} rows, one for each piece of street or road between\n"
        f"two junctions. The first row: src {src}, dst {dst}, minutes {minutes}.\n\n"
        f"$ cd {shlex.quote(str(folder))}"
    )


def _run(line: str, folder: Path) -> None:
    """Run a command in the folder. If it fails, leave with its exit code."""
    sys.stdout.flush()
    program = [sys.executable, "-m", "delegraph"]
    done = subprocess.run([*program, *shlex.split(line)], cwd=folder, check=False)
    if done.returncode:
        sys.exit(done.returncode if done.returncode > 0 else 128 - done.returncode)


def _open_page(page: Path) -> None:
    """Open the page in a browser, if there is one that does not take over the terminal."""
    import webbrowser

    if not any(os.environ.get(name) for name in _BROWSER_VARIABLES):
        return
    with contextlib.suppress(webbrowser.Error, OSError):
        browser = webbrowser.get()
        # Browsers that draw in the terminal have exactly this class, and so has that of $BROWSER.
        if type(browser) is not webbrowser.GenericBrowser or os.environ.get("BROWSER"):
            browser.open(page.as_uri())


def _tell_next() -> None:
    """Print the commands for a file of the user, and how to turn completion on."""
    shell = Path(os.environ.get("SHELL", "")).name
    lines = [
        *_activation(shell),
        "delegraph convert FILE.csv -o edges/ --src COLUMN --dst COLUMN",
        "delegraph components edges/ -o parts/",
        "delegraph --help",
    ]
    click.echo("\n".join(["\nNext: try your own file.", *(f"  {line}" for line in lines)]))
    if shell in _COMPLETION:
        file, line = _COMPLETION[shell]
        click.echo(f"For completion by the Tab key, run this or add it to {file}:\n  {line}")


def _activation(shell: str) -> list[str]:
    """Return the command that puts ``delegraph`` on the path of the user's shell, if it is not
    there.
    """
    programs = Path(sys.prefix, "bin")
    word, name = ("source", "activate.fish") if shell == "fish" else (".", "activate")
    folders = os.get_exec_path()
    if "UV" in os.environ and folders[0] == str(programs):
        del folders[0]  # uvx has added it, for this command only
    script = programs / name
    if shutil.which("delegraph", path=os.pathsep.join(folders)) or not script.exists():
        return []
    here = Path.cwd()
    path = script.relative_to(here) if here in script.parents else script
    return [f"{word} {shlex.quote(str(path))}"]
