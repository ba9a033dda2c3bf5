"""HTML pages of ``report``, read table by table: well-formed, and without references to other
files.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

VOID = {"meta"}
DRAWN = {"rect", "line", "circle", "path"}


class PageReader(HTMLParser):
    """A parser that fails for an element that HTML would not close where XML does."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID | DRAWN, f"<{tag}/> is no element that HTML closes"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


class PageText:
    """A page that was read. text: all text, with the titles of marks. tables: rows of cells, by
    caption. facts: values by the name beside them.
    """

    def __init__(self, data: bytes) -> None:
        source = data.decode()
        reader = PageReader()
        reader.feed(source)
        reader.close()
        assert reader.open == []
        assert source.startswith("<!DOCTYPE html>\n")
        self.root = ElementTree.fromstring(source.removeprefix("<!DOCTYPE html>\n"))
        self._stand_alone(source)
        self.text = " ".join(" ".join(self.one("body").itertext()).split())
        self.tables = {
            table.findtext("caption", ""): [
                ["".join(cell.itertext()).strip() for cell in row if cell.get("class") != "bar"]
                for row in table.findall("tbody/tr")
            ]
            for table in self.root.iter("table")
        }
        self.facts = {
            entry.findtext("dt", ""): " ".join(
                word for dd in entry.iter("dd") for word in dd.itertext()
            )
            for entry in self.root.findall(".//dl/div")
        }
        for head in self.root.iter("th"):
            assert head.get("scope") in ("col", "colgroup", "row")
        for drawing in self.root.iter("svg"):
            named = drawing.find("title") is not None or drawing.get("aria-hidden") == "true"
            assert named or drawing.get("x") is not None  # a mark within another drawing
        ids = [element.get("id") for element in self.root.iter() if element.get("id")]
        assert len(ids) == len(set(ids))

    def one(self, path: str) -> ElementTree.Element:
        element = self.root.find(path)
        assert element is not None, path
        return element

    def _stand_alone(self, source: str) -> None:
        """Check that the page loads nothing and runs nothing."""
        style = self.one("head/style").text or ""
        assert not re.search(r"@import|url\((?!#)", style)
        for element in self.root.iter():
            assert element.tag not in ("script", "link", "img", "iframe", "object", "a", "image")
            assert not {"src", "href", "style"} & set(element.attrib)
            assert not any(key.startswith("on") for key in element.attrib)


def read_page(path: Path) -> PageText:
    return PageText(path.read_bytes())
