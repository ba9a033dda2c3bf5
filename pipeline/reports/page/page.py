"""Parts that every page has: a head, key figures, sections, and a style (style.css)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple
from xml.etree.ElementTree import Element

from ...._version import __version__
from .markup import Content, encode, tag

GENERATOR = "delegraph report"
"""The name by which a page is recognized as one of ours."""


class Figure(NamedTuple):
    """A key figure, one of the few at the top. note: a figure to compare it with."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A section of a page. wide: whether it takes the whole width, where others stand side by
    side.
    """

    title: str
    content: Sequence[Content]
    wide: bool = False


@dataclass(frozen=True)
class Page:
    """A page. kind: the kind of its subject; name: the subject's name. command: the command that
    made the subject, where it is known. answers: the sections that say what was found; they stand
    before everything about the run.

    unknown: facts that are missing, and why. notes: messages of the run to the user.
    """

    kind: str
    name: str
    command: str | None
    figures: Sequence[Figure]
    sections: Sequence[Section | None]
    unknown: Sequence[str] = ()
    notes: Sequence[str] = ()
    answers: Sequence[Section | None] = ()


def render(page: Page) -> bytes:
    """Return the page's bytes. Equal pages have equal bytes."""
    return b"<!DOCTYPE html>\n" + encode(
        tag("html", _head(page), tag("body", *_body(page)), lang="en")
    )


def _head(page: Page) -> Element:
    style = files(__package__ or "").joinpath("style.css").read_text("utf-8")
    sheet = Element("style")
    sheet.text = style  # with its line breaks
    # Nothing is loaded, from anywhere: the browser holds the page to that.
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="generator", content=f"{GENERATOR} {__version__}"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{page.name}: {page.kind}"),
        sheet,
    )


def _body(page: Page) -> Iterator[Content]:
    yield _patterns()
    yield tag(
        "header",
        tag("p", page.kind, class_="kind"),
        tag("h1", page.name),
        tag("pre", tag("code", page.command)) if page.command else None,
    )
    figures = (
        tag(
            "div",
            tag("dt", figure.name),
            tag("dd", tag("strong", figure.value), tag("small", figure.note)),
        )
        for figure in page.figures
    )
    yield tag(
        "main",
        tag("dl", *figures, class_="figures") if page.figures else None,
        _sections(page.answers),
        _told("Not known", page.unknown),
        _told("Notes of the run", page.notes),
        _sections(page.sections),
    )
    yield tag("footer", tag("p", f"Made by delegraph report {__version__}."))


def _told(title: str, lines: Sequence[str]) -> Element | None:
    """Return an aside of a few lines, if there are any."""
    if not lines:
        return None
    items = tag("ul", *(tag("li", line) for line in lines))
    return tag("aside", tag("h2", title), items)


def _sections(sections: Sequence[Section | None]) -> Element | None:
    made = [_section(section) for section in sections if section is not None]
    return tag("div", *made, class_="sections") if made else None


def _section(section: Section) -> Element:
    kind = "wide-section" if section.wide else None
    return tag("section", tag("h2", section.title), *section.content, class_=kind)


def _patterns() -> Element:
    """Return the patterns that tell kinds of marks apart without colour (style.css)."""
    made = (
        _pattern("pull", 6, tag("path", d="M-1 7L7 -1M-1 1L1 -1M5 7L7 5")),
        _pattern("scan", 5, tag("circle", cx=2.5, cy=2.5, r=1.3)),
        _pattern("mixed", 6, tag("path", d="M0 3H6M3 0V6")),
        _pattern("gap", 8, tag("path", d="M-1 -1L9 9")),
    )
    return tag("svg", tag("defs", *made), class_="patterns", aria_hidden="true")


def _pattern(kind: str, side: int, drawn: Element) -> Element:
    ground = tag("rect", class_="ground", width=side, height=side)
    return tag(
        "pattern",
        ground,
        drawn,
        id=f"{kind}-pattern",
        class_=f"{kind}-pattern",
        width=side,
        height=side,
        patternUnits="userSpaceOnUse",
    )
