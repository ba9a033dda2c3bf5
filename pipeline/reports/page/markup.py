"""Elements of a page. Text stays text: ElementTree escapes it and closes every element, so that a
page is HTML and well-formed XML at once.
"""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

Content = Element | str | None
Attribute = str | float | None

_MAY_BE_EMPTY = {"meta", "rect", "line", "circle", "path"}
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
_DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))  # let text read otherwise
_ESCAPES = {code: f"\\x{code:02x}" for code in _CONTROLS} | {
    code: f"\\u{code:04x}" for code in (*_DIRECTIONS, 0xFFFE, 0xFFFF)
}


def tag(name: str, /, *content: Content, **attributes: Attribute) -> Element:
    """Return an element. None is left out; ``class_`` is the attribute class, ``text_anchor``
    text-anchor.

    >>> encode(tag("p", "1 < 2", class_="note"))
    b'<p class="note">1 &lt; 2</p>'
    """
    given = {
        key.rstrip("_").replace("_", "-"): _shown(f"{value:.6g}" if _is_float(value) else value)
        for key, value in attributes.items()
        if value is not None
    }
    made = Element(name, given)
    for part in content:
        if isinstance(part, Element):
            made.append(part)
        elif part is not None and len(made):
            made[-1].tail = (made[-1].tail or "") + _shown(part)
        elif part is not None:
            made.text = (made.text or "") + _shown(part)
    if not (len(made) or made.text or name in _MAY_BE_EMPTY):
        made.text = "\u00a0"  # HTML takes <td/> for the beginning of one
    return made


def encode(root: Element) -> bytes:
    return ElementTree.tostring(root, encoding="unicode").encode()


def _is_float(value: Attribute) -> bool:
    return isinstance(value, float)


def _shown(text: object) -> str:
    """Escape characters that XML cannot hold, or that a reader would not see."""
    return str(text).encode("utf-8", "backslashreplace").decode().translate(_ESCAPES)
