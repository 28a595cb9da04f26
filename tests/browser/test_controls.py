"""Every page of the site: what can be sent or pressed there is in ``control_table``, does what the table says, and axe
finds nothing wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from controlplane.supervisors.models import SpecVersion
from controlplane.supervisors.share_group import group_configuration
from ingestion.specs import parse_supervisor_spec
from tests.browser.conftest import Quiet
from tests.browser.control_table import GROUPS, WITH_A_BROKER, Row
from tests.browser.crawl import Control, Stop, controls, route_of, stops, violations
from tests.browser.site import Site, Visit, make_site, visit_as
from tests.support.django_cast import browsing_as, spec_for
from tests.support.house import House
from tests.support.permission_table import arguments
from tests.support.routes import all_routes

AXE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
ROWS = [row for rows in GROUPS.values() for row in rows]


@pytest.fixture(scope="session")
def axe() -> str:
    """axe-core's script; it is evaluated by the browser, whose policy for scripts of pages does not hold for that."""
    return AXE.read_text()


@pytest.fixture
def site(transactional_db: None, live_server: LiveServer) -> Site:
    return make_site(live_server.url)


@pytest.fixture
def visit(site: Site, page: Page, live_server: LiveServer, quiet: Quiet) -> Visit:
    """The owner's visit, who may do everything. Buttons and links change at once: no colour is caught on its way."""
    page.emulate_media(reduced_motion="reduce")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return visit_as(page, live_server, site.cast.users["owner"], site)


def places(rows: list[Row]) -> set[tuple[str, Control]]:
    return {place for row in rows for place in row.places}


def go(visit: Visit, stop: Stop, live_server: LiveServer) -> None:
    visit_as(visit.page, live_server, visit.site.cast.users.get(stop.role), visit.site)
    visit.open(stop.address)
    if stop.press:
        with visit.page.expect_navigation():  # a click does not wait for the page it leads to
            visit.press(stop.press)


@dataclass
class Seen:
    """What all the pages have: the routes, what can be sent or pressed by route, and by address what axe finds."""

    routes: set[str] = field(default_factory=set)
    controls: set[tuple[str, Control]] = field(default_factory=set)
    faults: dict[str, list[str]] = field(default_factory=dict)


def everything(visit: Visit, live_server: LiveServer, axe: str, **options: Any) -> Seen:
    seen = Seen()
    for stop in stops(visit.site):
        go(visit, stop, live_server)
        seen.routes.add(route_of(visit.page.url))
        if stop.role != "outsider" and not stop.part:  # whose menu has another name; what stands on the whole page
            seen.controls |= {(route, one) for route, here in controls(visit.page).items() for one in here}
        faults = [] if stop.part else violations(visit.page, axe, **options)
        seen.faults |= {f"{stop.address} {stop.press}": faults} if faults else {}
    return seen


def test_every_page_has_what_the_table_says_and_axe_finds_nothing(
    visit: Visit, live_server: LiveServer, quiet: Quiet, axe: str
) -> None:
    quiet.expected.append("status of 404")  # the page that says so
    seen, known = everything(visit, live_server, axe), places(ROWS)
    assert seen.controls - known == set(), "give these a row and a walk in tests/browser/control_table.py"
    assert known - seen.controls == set(), "these are gone, or on no page that is looked at"
    assert _pages_of(visit.site) - seen.routes == set(), "look at these pages in tests/browser/crawl.py"
    assert seen.faults == {}


def test_axe_finds_nothing_wrong_with_the_dark_colours(
    visit: Visit, live_server: LiveServer, quiet: Quiet, axe: str
) -> None:
    quiet.expected.append("status of 404")
    visit.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    assert everything(visit, live_server, axe, runOnly=["color-contrast"]).faults == {}


def _pages_of(site: Site) -> set[str]:
    """The routes that answer GET with a page or a part of one."""
    client = browsing_as(site.cast, "owner")
    found = set()
    for route in all_routes():
        if getattr(route.view, "__module__", "").startswith("frontend."):
            answer = client.get(
                route.path(**{**arguments(site.cast, route.pattern), "number": site.cast.quarantined.pk})
            )
            if answer.status_code == 200 and answer["Content-Type"].startswith("text/html"):
                found.add(route.pattern)
    return found


@pytest.mark.parametrize("group", GROUPS)
def test_every_form_and_button_does_what_it_says(visit: Visit, live_server: LiveServer, group: str) -> None:
    for row in GROUPS[group]:
        visit_as(visit.page, live_server, visit.site.cast.users["owner"], visit.site)
        row.walk(visit)


def test_the_configuration_of_a_group_is_applied(visit: Visit, stack: House) -> None:
    """On the broker, by the one form that is there only when it answers."""
    topic = stack.topic("apply")
    spec = spec_for("flights", topic=topic, groupId=topic, consumerProperties={"bootstrap.servers": stack.bootstrap})
    SpecVersion.objects.filter(supervisor="flights", version=2).delete()
    canonical = parse_supervisor_spec(spec).canonical()
    SpecVersion.objects.create(supervisor=visit.site.supervisor(), version=2, spec=canonical)
    visit.open("/supervisors/flights/share-group/config/")
    assert {c for here in controls(visit.page).values() for c in here} == {c for _, c in places(WITH_A_BROKER)}
    for row in WITH_A_BROKER:
        row.walk(visit)
    assert not group_configuration(visit.site.supervisor()).drifted
