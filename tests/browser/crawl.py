"""Every page of the site, in every state that has forms of its own, and what can be sent or pressed there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from django.urls import Resolver404, resolve
from playwright.sync_api import Page, expect

from tests.browser.site import ENDED, STORED, Site

NARROW, WIDE, HEIGHT = 390, 1400, 1000
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
EVERYWHERE = "every page of those who are logged in"

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
        const site = !!e.closest("header.site-bar");
        found.push([site, send(e.tagName === "FORM" ? e : e.form), label]);
    }
    return found;
}"""

# Its findings without what it found right, which is most of it; style sheets are no concern of a rule that runs.
_OF_AXE = {"resultTypes": ["violations"], "preload": {"assets": ["media"]}}


@dataclass(frozen=True, order=True)
class Control:
    """``sends``: method and route of its form; empty for what is in none. ``label``: as a screen reader says it."""

    sends: str
    label: str


@dataclass(frozen=True)
class Stop:
    """One page to look at, as one of the cast or as nobody. ``press``: a button of that page which leads to it.

    ``part``: of a page, so that it has no head.
    """

    address: str
    role: str = "owner"
    press: str = ""
    part: bool = False


def stops(site: Site) -> Iterator[Stop]:
    """Every page, partial ones too, in the states in which it has other forms."""
    yield Stop("/login/", role="")
    for address in ("datasources", "supervisors", "tasks", "records", "audit", "teams"):
        yield Stop(f"/{address}/")
    yield Stop("/datasources/?search=nowhere")
    yield Stop("/records/?topic=flights-topic&partition=0&offset=100")
    yield Stop("/records/?topic=flights-topic&partition=0&offset=3")  # two answers
    yield Stop("/nowhere/")
    for name in ("flights", STORED):
        yield from _of_datasource(name)
        yield from _of_supervisor(name)
    record = site.cast.quarantined.pk
    yield Stop(f"/datasources/flights/quarantine/{record}/")
    yield Stop("/datasources/flights/quarantine/?reason=unparseable")
    for button in ("Ingest…", "Produce again…", "Purge…"):
        yield Stop(f"/datasources/flights/quarantine/{record}/", press=button)
    yield from _of_task(site.task.pk)
    yield Stop(f"/tasks/{ENDED}/")
    yield Stop("/tasks/", role="outsider")
    yield Stop("/supervisors/", role="outsider")
    for kind, source in (("tasks", site.task.pk), ("supervisors", "flights")):
        yield Stop(f"/{kind}/-/new/")
        yield Stop(f"/{kind}/-/new/?example=offset_range")
        yield Stop(f"/{kind}/-/new/?from={source}")


def _of_datasource(name: str) -> Iterator[Stop]:
    for tab in ("", "intervals/", "segments/", "quarantine/", "columns/", "progress/", "events/"):
        yield Stop(f"/datasources/{name}/{tab}")
    yield Stop(f"/datasources/{name}/totals/", part=True)


def _of_supervisor(name: str) -> Iterator[Stop]:
    actions = ("resume", "scale", "reset", "terminate") if name == STORED else ("suspend", "handoff")
    tabs = ("", "lag/", "spec/", *(() if name == STORED else ("share-group/",)))
    for tab in (*tabs, *(f"confirm/{action}/" for action in actions)):
        yield Stop(f"/supervisors/{name}/{tab}")
    yield Stop(f"/supervisors/{name}/live/", part=True)
    if name != STORED:
        yield Stop(f"/supervisors/{name}/share-group/config/", part=True)


def _of_task(task: str) -> Iterator[Stop]:
    for page in ("", "errors/", "errors/?kind=faulty", "confirm/stop/", "confirm/finish/"):
        yield Stop(f"/tasks/{task}/{page}")
    for part in ("live/", "log/"):
        yield Stop(f"/tasks/{task}/{part}", part=True)


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
    return [f"{v['id']}: {[n['html'][:200] for n in v['nodes']][:3]}" for v in found]


def fits(page: Page) -> None:
    """No page is wider than a narrow screen, nor than the wide one that it has afterwards."""
    for width in (NARROW, WIDE):
        page.set_viewport_size({"width": width, "height": HEIGHT})
        # A chart follows a moment later.
        expect(page.locator("html"), f"{page.url} is too wide").to_have_js_property("scrollWidth", width)
