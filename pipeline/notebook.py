"""HTML for notebooks: facts, a table and a small picture. Colours are the notebook's own, so light
and dark pages both show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_WIDTH, _HEIGHT = 320, 72


class Picture(NamedTuple):
    """Columns. name: what is counted by what. first, last: the ends of the axis. bars: for each
    range its name, and what is counted in it.
    """

    name: str
    first: str
    last: str
    bars: Sequence[tuple[str, int]]


def notebook_html(
    title: str,
    facts: Sequence[tuple[str, str]],
    rows: Sequence[tuple[str, str]] = (),
    picture: Picture | None = None,
) -> str:
    """Return a block of HTML. facts: names and values. rows: a heading and rows below it."""
    told = ", ".join(f"{escape(name)} <b>{escape(value)}</b>" for name, value in facts)
    parts = [f"<b>{escape(title)}</b><br>{told}"]
    if rows:
        head, *body = rows
        cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        lines = "".join(_row(row) for row in body)
        parts.append(f"<table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>")
    if picture and len(picture.bars) > 1:
        parts.append(_svg(picture))
    return f"<div>{''.join(parts)}</div>"


def _row(row: tuple[str, str]) -> str:
    return f"<tr>{''.join(f'<td>{escape(cell.strip())}</td>' for cell in row)}</tr>"


def _svg(picture: Picture) -> str:
    """Return the columns with their numbers as tooltips."""
    bars, name = picture.bars, escape(picture.name)
    most = max(count for _, count in bars) or 1
    width = _WIDTH / len(bars)
    columns = "".join(
        f'<rect x="{i * width:.1f}" width="{max(1, width - 1):.1f}" '
        f'y="{_HEIGHT - _high(count, most)}" height="{_high(count, most)}">'
        f"<title>{escape(label)}: {count:,}</title></rect>"
        for i, (label, count) in enumerate(bars)
    )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" fill="currentColor" fill-opacity="0.6" '
        f'role="img" style="display: block"><title>{name}</title>{columns}</svg>'
        f"<small>{name}: {escape(picture.first)} to {escape(picture.last)}</small>"
    )


def _high(count: int, most: int) -> int:
    return -(-count * _HEIGHT // most)
