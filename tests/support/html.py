"""Reading a page as a user would: its text, its links, its forms."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

_VOID = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"})


@dataclass
class Element:
    """One element with what it holds. ``text`` is all of it, blanks folded."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(self.raw_text.split())

    @property
    def raw_text(self) -> str:
        return "".join(c if isinstance(c, str) else c.raw_text for c in self.children)

    def all(self, tag: str = "", **attributes: str) -> list[Element]:
        """Every element inside, in order; ``data_x`` stands for the attribute ``data-x``, ``class_`` for a class."""
        found: list[Element] = []
        for child in self.children:
            if isinstance(child, Element):
                if child._is(tag, attributes):
                    found.append(child)
                found += child.all(tag, **attributes)
        return found

    def one(self, tag: str = "", **attributes: str) -> Element:
        """The only such element."""
        found = self.all(tag, **attributes)
        assert len(found) == 1, f"{len(found)} elements {tag} {attributes}"
        return found[0]

    def _is(self, tag: str, wanted: dict[str, str]) -> bool:
        if tag and self.tag != tag:
            return False
        for name, value in wanted.items():
            if name == "class_":
                if value not in self.attributes.get("class", "").split():
                    return False
            elif self.attributes.get(name.replace("_", "-")) != value:
                return False
        return True


class _Builder(HTMLParser):
    """Also checks that the elements are closed in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("document", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def parsed(response: Any) -> Element:
    """A response's page; fails when its markup is not closed in order."""
    builder = _Builder()
    builder.feed(response.content.decode())
    builder.close()
    assert builder._open == [builder.root], f"not closed: {builder._open[-1].tag}"
    return builder.root


def counters(page: Element) -> dict[str, str]:
    """The numbers of a report, by name."""
    figures = [(kind, e) for kind in ("figure", "tile") for e in page.all("div", class_=kind)]
    counted = [(kind, e) for kind, e in figures if "data-counter" in e.attributes]
    return {
        e.attributes["data-counter"]: e.one("div", class_=f"{kind}-value").text.lstrip("=+ ") for kind, e in counted
    }
