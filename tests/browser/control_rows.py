"""A row of ``control_table``: some controls, where they stand, and the walk that clicks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tests.browser.crawl import Control
from tests.browser.site import Visit

Walk = Callable[[Visit], None]


@dataclass(frozen=True)
class Row:
    """``walk`` clicks every one of these controls and looks at what came of it. ``places``: by route."""

    places: frozenset[tuple[str, Control]]
    walk: Walk

    def and_on(self, page: str, *controls: tuple[str, str]) -> Row:
        """With controls of the page that the first leads to."""
        return replace(self, places=self.places | {(page, Control(*c)) for c in controls})


def places(rows: Iterable[Row]) -> set[tuple[str, Control]]:
    return {place for row in rows for place in row.places}


def row(pages: str | tuple[str, ...], walk: Walk, *controls: tuple[str, str]) -> Row:
    """Some controls, on each of some pages."""
    on = (pages,) if isinstance(pages, str) else pages
    return Row(frozenset((page, Control(*c)) for page in on for c in controls), walk)


def question(pages: tuple[str, ...], route: str, opener: str, label: str, walk: Walk) -> Row:
    """A button that asks first, and the answer."""
    return row(pages, walk, ("", f"{opener}…"), ("", "Cancel"), (f"POST {route}", label))
