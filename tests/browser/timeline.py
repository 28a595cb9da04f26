"""Reading and moving the timeline as a user does."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Page, expect

SECTION = "[data-timeline]"
LOAD_MS = 20_000


@dataclass(frozen=True)
class Drawn:
    """What the timeline says it has drawn."""

    bars: int
    rows: int
    segments: int
    intervals: int
    status: str


def drawn(page: Page) -> Drawn:
    """Once it has drawn and nothing is under way."""
    settled = page.locator(f"{SECTION}[data-bars]:not([data-loading])")
    expect(settled).to_be_visible(timeout=LOAD_MS)
    bars, rows, segments, intervals = (
        int(settled.get_attribute(f"data-{name}") or -1) for name in ("bars", "rows", "segments", "intervals")
    )
    return Drawn(bars, rows, segments, intervals, page.locator("[data-timeline-status]").inner_text())


def changed(page: Page, before: Drawn) -> Drawn:
    """After a zoom or a move has ended and its data is there."""
    expect(page.locator("[data-timeline-status]")).not_to_have_text(before.status, timeout=LOAD_MS)
    return drawn(page)


def point_at(page: Page, share: float) -> tuple[float, float]:
    """Move the pointer to a share of the drawing's width, into the bars; returns where that is."""
    box = page.locator("[data-timeline-canvas]").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] * share, box["y"] + box["height"] * 0.6
    page.mouse.move(x, y)
    return x, y
