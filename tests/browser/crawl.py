"""Every page of the site, in every state that has forms of its own, and what can be sent or pressed there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from urllib.parse import urlsplit

from django.urls import Resolver404, resolve
from playwright.sync_api import Page, expect

from frontend.load.steps import STEPS
from tests.browser.imported import druids_list
from tests.browser.site import CLUSTER, ENDED, OWNERS_SECRET, STORED, Site, address_link, removed_segment
from tests.browser.walks_of_rewinds import a_rewind
from tests.support.alerting import alerting
from tests.support.file_replays import a_record_of_a_file
from tests.support.permission_table import saved_query_of
from tests.support.sql import june_here

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


@dataclass(frozen=True)
class Stop:
    """One page to look at, as one of the cast or as nobody. ``press``: a button of that page which leads to it.

    ``part``: of a page, so that it has no head.
    """

    address: str
    role: str = "owner"
    press: str = ""
    part: bool = False
    fill: tuple[str, str] = ("", "")  # before that, a field's label and what is written into it


def stops(site: Site) -> Iterator[Stop]:
    """Every page, partial ones too, in the states in which it has other forms."""
    yield Stop("/login/", role="")
    yield Stop("/login/again/")
    yield Stop("/login/forgotten/", role="")
    yield Stop("/login/forgotten/MQ/no-such-token/", role="")
    yield Stop("/account/")
    yield Stop(address_link(site.cast.users["owner"], "ann@example.org"))
    yield Stop("/account/app/")
    yield Stop("/account/passkey/")
    yield Stop("/")
    yield Stop("/", role="outsider")
    for address in ("datasources", "supervisors", "tasks", "quarantine", "records", "audit", "teams"):
        yield Stop(f"/{address}/")
    yield Stop("/datasources/?search=nowhere")
    yield Stop("/records/?topic=flights-topic&partition=0&offset=100")
    yield Stop("/records/?topic=flights-topic&partition=0&offset=3")  # two answers
    yield Stop("/records/?topic=flights-topic&key=key&from=2012-12-31T00:00&to=2013-01-02T00:00")
    saved = saved_query_of(site.cast).pk
    for part in (
        "",
        f"?saved={saved}",
        "saved/",
        "saved/-/new/",
        f"saved/{saved}/",
        f"saved/{saved}/delete/",
        "history/",
    ):
        yield Stop(f"/query/{part}")
    yield Stop("/query/saved/?search=nowhere")
    yield Stop("/query/", role="outsider")
    yield Stop("/nowhere/")
    for name in ("flights", STORED):
        yield from _of_datasource(name)
        yield from _of_supervisor(name)
    yield from _of_rewinds(site)
    yield Stop("/quarantine/?datasource=nowhere")
    yield Stop("/quarantine/", role="outsider")
    yield from _of_connections()
    yield from _of_alerts(site)
    record = site.cast.quarantined.pk
    yield Stop(f"/datasources/flights/quarantine/{record}/")
    for form in ("tree", "spec"):
        yield Stop(f"/datasources/flights/quarantine/{record}/?as={form}")
    yield Stop("/datasources/flights/quarantine/?reason=unparseable")
    for button in ("Ingest…", "Produce again…", "Purge…"):
        yield Stop(f"/datasources/flights/quarantine/{record}/", press=button)
    yield Stop(f"/datasources/flights/events/{site.cast.event.pk}/acknowledge/")
    fix = f"/datasources/flights/quarantine/fix/?cause={site.cast.quarantined.cause}"
    yield Stop(fix)
    yield Stop(fix, press="Submit this spec and replay all of this cause…")
    yield from _of_files(site)
    yield from _of_retention()
    yield from _of_segments(site)
    yield from _of_task(site.task.pk)
    yield Stop(f"/tasks/{ENDED}/")
    yield from _of_drafts(site)
    yield Stop("/tasks/", role="outsider")
    yield Stop("/tasks/-/capacity/")
    yield Stop("/supervisors/", role="outsider")
    yield from _of_teams()
    yield Stop("/-/styleguide/", role="superuser")
    for kind, source in (("tasks", site.task.pk), ("supervisors", "flights")):
        yield Stop(f"/{kind}/-/new/")
        yield Stop(f"/{kind}/-/new/?example=offset_range")
        yield Stop(f"/{kind}/-/new/?from={source}")
    yield Stop("/tasks/-/new/?example=index_parallel")
    yield Stop("/supervisors/-/import/")
    yield Stop("/supervisors/-/import/", press="Preview import", fill=("Or its JSON text", druids_list()))
    yield from _of_profiles(site)


def _of_segments(site: Site) -> Iterator[Stop]:
    for named in (site.cast.segments[0].pk, removed_segment(site.cast).pk):
        name = "flights" if named == site.cast.segments[0].pk else STORED
        yield Stop(f"/datasources/{name}/segments/{named}/")
        yield Stop(f"/datasources/{name}/segments/{named}/file/")


def _of_retention() -> Iterator[Stop]:
    yield Stop("/datasources/flights/?layers=small,unused,late")
    yield Stop("/datasources/flights/intervals/?layers=unused&layers=late")
    yield Stop("/datasources/flights/compaction/?rows=1000&skip=P1D")
    yield Stop("/datasources/flights/retention/rules/")
    yield Stop(f"/datasources/{STORED}/retention/rules/")
    yield Stop(f"/datasources/{STORED}/retention/rules/", press="Preview")
    yield Stop("/datasources/flights/retention/mark/?step=mark_unused&scope=everything", press="Preview")
    for step in ("mark_used", "kill"):
        yield Stop(f"/datasources/{STORED}/retention/mark/?step={step}&scope=everything", press="Preview")
    yield Stop("/datasources/flights/delete/")
    yield Stop("/datasources/year/delete/")


def _of_teams() -> Iterator[Stop]:
    parts = (
        "",
        "limits/",
        "about/",
        "leave/confirm/",
        "members/viewer/remove/",
        "tokens/",
        "service-accounts/",
        "service-accounts/loader/",
    )
    for part in (*parts, "service-accounts/loader/delete/"):
        yield Stop(f"/teams/alpha/{part}")
    yield Stop(f"/join/{OWNERS_SECRET}/")
    yield Stop(f"/join/{OWNERS_SECRET}/", role="")
    yield Stop(f"/password/{OWNERS_SECRET}/", role="")
    for part in ("", "-/new/", "viewer/", "viewer/switch/", "guest/", "guest/switch/", "guest/second-factors/"):
        yield Stop(f"/people/{part}", role="superuser")
    for address in (
        "/teams/",
        "/teams/-/new/",
        "/teams/alpha/",
        "/teams/alpha/limits/",
        "/teams/alpha/about/",
        "/teams/vacant/",
        "/teams/vacant/limits/",
        "/teams/vacant/about/",
        "/teams/vacant/delete/confirm/",
    ):
        yield Stop(address, role="superuser")
    for button in ("", "Add a rule", "Preview"):
        yield Stop("/retention/", role="superuser", press=button)
    for address in ("/datasources/flights/transfer/", "/connections/alpha/orders-schemas/transfer/"):
        yield Stop(address, role="superuser")


def _of_alerts(site: Site) -> Iterator[Stop]:
    there = alerting(site.cast)
    for tab in ("", "rules/", "receivers/", "history/", "history/?subject=nowhere", "silences/", "silences/?ended=1"):
        yield Stop(f"/alerts/{tab}")
    for tab in ("", "rules/", "receivers/", "history/", "silences/"):
        yield Stop(f"/alerts/{tab}", role="outsider")
    yield Stop("/alerts/rules/-/new/")
    yield Stop("/alerts/rules/-/new/?kind=quarantined&datasource=flights")
    for kind in ("email", "webhook", "slack"):
        yield Stop(f"/alerts/receivers/-/new/?kind={kind}")
    for place in (f"rules/{there.rule.pk}/", f"receivers/{there.receiver.pk}/"):
        yield Stop(f"/alerts/{place}")
        yield Stop(f"/alerts/{place}delete/")
    yield Stop("/alerts/silences/-/new/?datasource=flights")


def _of_connections() -> Iterator[Stop]:
    yield Stop("/connections/")
    yield Stop("/connections/", role="outsider")
    for kind in ("kafka", "schema_registry"):
        yield Stop(f"/connections/-/new/?kind={kind}")
    for name in (CLUSTER, "orders-schemas"):
        for part in ("", "change/", "confirm/restart/", "confirm/delete/"):
            yield Stop(f"/connections/alpha/{name}/{part}")
    for part in ("topics/", "topics/orders/", "topics/orders/records/", "groups/", "groups/readers/"):
        yield Stop(f"/connections/alpha/{CLUSTER}/{part}")


def _of_files(site: Site) -> Iterator[Stop]:
    """A record of a file in quarantine: there while these pages are looked at."""
    record = a_record_of_a_file(site.cast)
    yield Stop(f"/datasources/flights/quarantine/?cause={record.cause}")
    yield Stop(f"/datasources/flights/quarantine/{record.pk}/", press="Ingest…")
    fix = f"/datasources/flights/quarantine/fix/?cause={record.cause}&task={record.task_id}"
    yield Stop(fix)
    yield Stop(fix, press="Replay all of this cause with this spec…")
    record.delete()


def _of_profiles(site: Site) -> Iterator[Stop]:
    """Of rows that are there, and still are when the lines for curl are pasted."""
    with TemporaryDirectory() as place:
        june_here(site.cast.alpha, Path(place))
    for column in ("n", "tags"):
        yield Stop(f"/datasources/june/columns/profile/?column={column}&read=1")
    yield Stop("/datasources/june/columns/profile/?column=n&from=2030-01-01&read=1")


def _of_datasource(name: str) -> Iterator[Stop]:
    for tab in (
        "",
        "rows/",
        "intervals/",
        "segments/",
        "quarantine/",
        "columns/",
        "progress/",
        "events/",
        "compaction/",
        "retention/",
    ):
        yield Stop(f"/datasources/{name}/{tab}")
    yield Stop(f"/datasources/{name}/rows/table/")
    yield Stop(f"/datasources/{name}/totals/", part=True)


def _of_supervisor(name: str) -> Iterator[Stop]:
    actions = ("resume", "scale", "reset", "terminate") if name == STORED else ("suspend", "handoff")
    tabs = (
        "",
        "lag/",
        "spec/",
        "autoscaler/",
        "backfills/",
        "rewinds/",
        *(() if name == STORED else ("share-group/",)),
    )
    for tab in (*tabs, *(f"confirm/{action}/" for action in actions)):
        yield Stop(f"/supervisors/{name}/{tab}")
    yield Stop(f"/supervisors/{name}/live/", part=True)
    if name != STORED:
        yield Stop(f"/supervisors/{name}/share-group/config/", part=True)
        yield Stop(f"/supervisors/{name}/spec/?version=1&against=2")
        yield Stop(f"/supervisors/{name}/spec/1/confirm/")


def _of_rewinds(site: Site) -> Iterator[Stop]:
    """There while these pages are looked at."""
    rewind = a_rewind(site)
    for question in ("rewind", "undo", "cancel"):
        yield Stop(f"/supervisors/{STORED}/rewinds/?{question}={rewind.pk}")
    rewind.delete()


def _of_drafts(site: Site) -> Iterator[Stop]:
    drafts = (site.draft(), site.draft("flights"))  # before the list, which offers to throw one away
    yield Stop("/load/")
    yield Stop("/load/?supervisor=flights")
    for draft in drafts:
        for step in STEPS:
            yield Stop(f"/load/{draft.pk}/{step.name}/")


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
