"""Every page of the site: what can be sent or pressed there is in ``control_table``, axe finds nothing wrong in either
theme, no page or table is wider than its screen, and its line for curl answers when it is pasted into a shell.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Page

from controlplane.tasks.models import Indexer
from controlplane.teams.models import ApiToken
from tests.browser.conftest import Quiet
from tests.browser.control_rows import places
from tests.browser.control_table import GROUPS
from tests.browser.crawl import (
    EVERYWHERE,
    NARROW,
    Contrasts,
    Control,
    cards,
    clipped,
    controls,
    fits,
    route_of,
    violations,
)
from tests.browser.site import CLUSTER, Site, Visit
from tests.browser.stops import Stop, stops
from tests.support.django_cast import browsing_as
from tests.support.permission_table import arguments
from tests.support.routes import all_routes

NOBODY = f"/connections/alpha/{CLUSTER}/"  # no Kafka answers there
SCREENSHOTS = os.environ.get("HEADGATE_SCREENSHOTS")
# The browser runs it before a page's own; its policy for scripts of pages does not hold for that.
AXE = (Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js").read_text()


@dataclass
class Seen:
    """What all the pages have: the routes, what can be sent or pressed by route, and by address what axe finds."""

    routes: set[str] = field(default_factory=set)
    controls: set[tuple[str, Control]] = field(default_factory=set)
    faults: dict[str, list[str]] = field(default_factory=dict)
    contrasts: Contrasts = field(default_factory=Contrasts)
    lines: dict[tuple[str, str], str] = field(default_factory=dict)  # for curl, by role and address of the page


def test_every_page_has_what_the_table_says_and_axe_finds_nothing(visit: Visit, quiet: Quiet) -> None:
    quiet.expected.append("status of 404")  # the page that says so
    Indexer.objects.filter(task=visit.site.task).update(message="a message " * 30)
    seen, known = everything(visit), places(row for rows in GROUPS.values() for row in rows)
    assert seen.controls - known == set(), "give these a row and a walk in tests/browser/control_table.py"
    assert known - seen.controls == set(), "these are gone, or on no page that is looked at"
    assert _pages_beside(seen.routes, visit.site) == set(), "look at these pages in tests/browser/stops.py"
    assert seen.faults == {}
    assert len(seen.lines) > 50
    assert _refused(visit.site, seen.lines) == {}


def _refused(site: Site, lines: dict[tuple[str, str], str]) -> dict[str, str]:
    """What the lines answer that do not work, by the pages' addresses. Where nobody listens, Kafka can't be shown.

    Each line is pasted once, on however many pages it stands.
    """
    roles = {role for role, _ in lines}
    tokens = {role: ApiToken.objects.create(user=site.cast.users[role], name="paste")[1] for role in roles}
    told = {(role, line): _pasted(line, tokens[role]) for (role, _), line in lines.items()}
    return {
        address: status
        for (role, address), line in lines.items()
        if (status := told[role, line]) != "200" and not (status == "503" and address.startswith(NOBODY))
    }


def _pasted(line: str, token: str) -> str:
    """The status that a shell gets for it."""
    asked = f"{line} --silent --output /dev/null --write-out '%{{http_code}}'"
    environment = {**os.environ, "HEADGATE_TOKEN": token}
    return subprocess.run(["sh", "-c", asked], env=environment, capture_output=True, text=True, check=True).stdout


def everything(visit: Visit) -> Seen:
    """Each page is fetched once, and looked at in both themes and in both widths."""
    seen, role = Seen(), ""
    visit.page.add_init_script(AXE)
    visit.become(role)
    for stop in stops(visit.site):
        if stop.role != role:
            role = stop.role
            visit.become(role)
        _go(visit, stop)
        seen.routes.add(route_of(visit.page.url))
        if not stop.part:
            _look(visit.page, stop, seen)
    return seen


def _go(visit: Visit, stop: Stop) -> None:
    visit.open(stop.address)
    label, text = stop.fill
    if label:
        visit.page.get_by_label(label).fill(text)
    if stop.press:
        with visit.page.expect_navigation():  # a click does not wait for the page it leads to
            visit.press(stop.press)


def _look(page: Page, stop: Stop, seen: Seen) -> None:
    line = page.locator("#page-curl")
    if line.count():
        seen.lines[stop.role, f"{stop.address} {stop.press}"] = line.text_content() or ""
    if stop.role != "outsider":
        mine = stop.role in ("", "owner")  # the menus of others have other names
        here = {(route, one) for route, here in controls(page).items() for one in here}
        seen.controls |= {(route, one) for route, one in here if mine or route != EVERYWHERE}
    faults = _faults(
        page, seen.contrasts, f"{stop.address} {stop.press} {stop.role if stop.role == 'outsider' else ''}"
    )
    seen.faults |= {f"{stop.address} {stop.press}": faults} if faults else {}


def _faults(page: Page, contrasts: Contrasts, name: str) -> list[str]:
    """Of the page in both themes, which differ in colours alone (``test_design_sources``)."""
    faults = violations(page, rules={"color-contrast": {"enabled": False}}) + contrasts.faults(page)

    def look(width: int) -> None:
        faults.extend(cards(page) if width == NARROW else clipped(page))
        _keep(page, name, f"light-{width}")

    fits(page, look)
    page.emulate_media(color_scheme="dark")
    faults += contrasts.faults(page)
    if SCREENSHOTS:
        fits(page, lambda width: _keep(page, name, f"dark-{width}"))
    page.emulate_media(color_scheme="light")
    return faults


def _keep(page: Page, name: str, how: str) -> None:
    """`make screenshots` says where: all of the page, by its address."""
    if SCREENSHOTS:
        words = re.sub(r"[^A-Za-z0-9=.-]+", "_", name).strip("_") or "home"
        page.screenshot(path=Path(SCREENSHOTS) / f"{words[:120]}.{how}.png", full_page=True)


def _pages_beside(seen: set[str], site: Site) -> set[str]:
    """The other routes that answer GET with a page or a part of one."""
    client = browsing_as(site.cast, "owner")
    found = set()
    for route in all_routes():
        if route.pattern not in seen and getattr(route.view, "__module__", "").startswith("frontend."):
            answer = client.get(
                route.path(**{**arguments(site.cast, route.pattern), "number": site.cast.quarantined.pk})
            )
            if answer.status_code == 200 and answer["Content-Type"].startswith("text/html"):
                found.add(route.pattern)
    return found
