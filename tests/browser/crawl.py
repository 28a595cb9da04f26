"""What stands on a page before the browser: what can be sent or pressed, what axe finds, and what does not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from django.urls import Resolver404, resolve
from playwright.sync_api import Page, expect

NARROW, WIDE, HEIGHT = 390, 1400, 1000
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
EVERYWHERE = "every page of those who are logged in"  # and parts that many pages share

# Buttons, whatever looks like one to a screen reader, selects that no form sends, and forms without a button. A form's
# address is read from its attribute: a button called "action" hides the property.
_CONTROLS = """() => {
    const text = (e) => (e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent || e.value || "");
    const send = (form) => !form ? "" : (form.getAttribute("method") || "get").toUpperCase() + " "
        + new URL(form.getAttribute("action") ?? "", location.href).pathname;
    const among = "button, input[type=submit], input[type=button], [role=button], summary, select, form";
    const found = [];
    for (const e of document.querySelectorAll(among)) {
        if (e.tagName === "FORM" ? e.querySelector("button") : e.tagName === "SELECT" && e.form) continue;
        const label = e.tagName === "FORM" ? "" : text(e).replace(/\\s+/g, " ").trim();
        const site = !!e.closest("header.site-bar, .page-rest, .strip-zeros, .meanings, .table-view, [data-copy-text]");
        found.push([site, send(e.tagName === "FORM" ? e : e.form), label]);
    }
    return found;
}"""

# On a narrow screen: tables that are wider than their frames, save of columns that people named, and cells of cards
# whose parts would not stand beside the label together.
_OF_CARDS = """() => {
    const seen = (node) => node.nodeType === Node.ELEMENT_NODE
        ? node.checkVisibility() && getComputedStyle(node).position !== "absolute" : node.textContent.trim();
    const frames = [...document.querySelectorAll(".table-responsive:not(.rows-table)")];
    const cells = [...document.querySelectorAll(".table-cards > tbody > tr > [data-label]")];
    return [
        ...frames.filter((f) => f.scrollWidth > f.clientWidth)
            .map((f) => `scrolls sideways: ${f.querySelector("caption")?.textContent}`),
        ...cells.filter((c) => c.checkVisibility() && [...c.childNodes].filter(seen).length > 1)
            .map((c) => `is in pieces: ${c.dataset.label}`),
    ];
}"""

# Its findings without what it found right, which is most of it; style sheets are no concern of a rule that runs.
_OF_AXE = {"resultTypes": ["violations"], "preload": {"assets": ["media"]}}

# Elements with text of their own by what makes its contrast: its colour and size, and all that lies behind it. Two of
# each, since another element may cover one. The page keeps them, the caller gets their names.
_LOOKS = """() => {
    const grounds = new Map();
    const ground = (e) => {
        if (e === null) return "";
        if (!grounds.has(e)) {
            const s = getComputedStyle(e);
            const own = [s.backgroundColor, s.backgroundImage, s.opacity, s.filter].join(" ");
            const below = ground(e.parentElement);
            grounds.set(e, own === "rgba(0, 0, 0, 0) none 1 none" ? below : `${own} on ${below}`);
        }
        return grounds.get(e);
    };
    const writes = (e) => e.matches("input, select, textarea")
        || [...e.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    window.looks = {};
    for (const e of document.body.querySelectorAll("*")) {
        if (!writes(e) || !e.checkVisibility()) continue;
        const s = getComputedStyle(e);
        const off = e.closest(":disabled, [aria-disabled=true]") !== null;
        const look = [s.color, s.fontSize, s.fontWeight, s.textShadow, off, ground(e)].join(" | ");
        (window.looks[look] ??= []).length < 2 && window.looks[look].push(e);
    }
    return Object.keys(window.looks);
}"""


@dataclass(frozen=True, order=True)
class Control:
    """``sends``: method and route of its form; empty for what is in none. ``label``: as a screen reader says it."""

    sends: str
    label: str


def route_of(address: str) -> str:
    """The route that answers an address, as ``frontend.urls`` writes it; the path where none does."""
    path = urlsplit(address).path
    try:
        return resolve(path).route
    except Resolver404:
        return path


def controls(page: Page) -> dict[str, set[Control]]:
    """What stands on the page before the browser, by route; what every page has under ``EVERYWHERE``."""
    found: dict[str, set[Control]] = {}
    for of_site, sends, label in page.evaluate(_CONTROLS):
        place = EVERYWHERE if of_site else route_of(page.url)
        found.setdefault(place, set()).add(Control(_by_route(sends), label))
    return found


def _by_route(sends: str) -> str:
    method, _, path = sends.partition(" ")
    return f"{method} {route_of(path)}" if path else ""


def violations(page: Page, **options: Any) -> list[str]:
    """What axe, which is on the page, finds wrong with it, each with the elements."""
    found = page.evaluate("async (options) => (await axe.run(document, options)).violations", _OF_AXE | options)
    return _said(found)


def _said(found: Any) -> list[str]:
    return [f"{v['id']}: {[n['html'][:200] for n in v['nodes']][:3]}" for v in found]


@dataclass
class Contrasts:
    """What axe finds wrong with colours. It is not asked again about a text in colours that an earlier page had."""

    seen: set[str] = field(default_factory=set)

    def faults(self, page: Page) -> list[str]:
        fresh = [look for look in page.evaluate(_LOOKS) if look not in self.seen]
        self.seen.update(fresh)
        run = (
            "async ([fresh, options]) => (await axe.run({include: fresh.flatMap((l) => looks[l])}, options)).violations"
        )
        return _said(page.evaluate(run, [fresh, _OF_AXE | {"runOnly": ["color-contrast"]}])) if fresh else []


_CLIPPED = """
() => [...document.querySelectorAll(".table-responsive:has(> .table-cards:not([data-of-records]))")]
  .filter((frame) => frame.clientWidth && frame.scrollWidth > frame.clientWidth + 1)
  .map((frame) => `the table "${frame.getAttribute("aria-label")}" is wider than its frame`)
"""


def cards(page: Page) -> list[str]:
    """What is wrong with the tables of a page that is as narrow as a phone."""
    return sorted(set(page.evaluate(_OF_CARDS)))


def clipped(page: Page) -> list[str]:
    """The tables of a wide page that are cut off by their frame; rows of data may be, whose columns people named."""
    return sorted(set(page.evaluate(_CLIPPED)))


def fits(page: Page, look: Callable[[int], None] | None = None) -> None:
    """No page is wider than a narrow screen, nor than the wide one that it has afterwards. ``look`` gets each width."""
    for width in (NARROW, WIDE):
        page.set_viewport_size({"width": width, "height": HEIGHT})
        # A chart follows a moment later.
        expect(page.locator("html"), f"{page.url} is too wide").to_have_js_property("scrollWidth", width)
        if look is not None:
            look(width)
