"""Every page names the REST address of what it shows, with a line for curl, and the address answers its reader."""

from __future__ import annotations

import html
import re

import pytest

from tests.support.django_cast import Cast, browsing_as
from tests.support.every_page import all_pages

CURL = re.compile(
    r'id="page-curl"[^>]*>curl -H &quot;Authorization: Bearer \$HEADGATE_TOKEN&quot; (?P<address>[^<]*)</pre>'
)
# Questions and answers on the way to something, which have no address of their own.
WITHOUT = re.compile(
    r"login/|confirm|password/|join/|/switch/|/second-factors/$|/delete/$|acknowledge/|roll-back|account/email/|/remove/"
)
KAFKA = "connections/<str:team>/<str:name>/"  # that of the cast is where nobody listens


def _address(page: str) -> str:
    found = CURL.search(page)
    return html.unescape(found["address"]).strip("'").removeprefix("http://testserver") if found else ""


@pytest.mark.parametrize("role", ["owner", "superuser"])
def test_every_page_has_a_rest_address_that_answers(cast: Cast, role: str) -> None:
    client = browsing_as(cast, role)
    addresses = {route: _address(text) for route, (_, text) in all_pages(cast, client).items()}
    lacking = [route for route, address in addresses.items() if not address and not WITHOUT.search(route)]
    # A query is sent to its address with POST, and a new saved query has nothing to show.
    assert lacking == ["query/", "query/saved/-/new/", "records/"]
    # The parts of a datasource or supervisor have addresses in common: each is asked once.
    statuses = {address: client.get(address).status_code for address in dict.fromkeys(addresses.values()) if address}
    told = {route: statuses[address] for route, address in addresses.items() if address}
    assert len(told) > 40
    assert {route: n for route, n in told.items() if n != 200 and not (n == 503 and route.startswith(KAFKA))} == {}


@pytest.mark.parametrize(
    ("page", "address"),
    [
        ("/datasources/?search=fli", "/api/v1/datasources/?search=fli"),
        ("/supervisors/?search=fli&state=RUNNING", "/api/v1/supervisors/?search=fli&state=RUNNING"),
        ("/connections/?kind=kafka", "/api/v1/connections/?kind=kafka"),
        ("/quarantine/?datasource=flights&show=all", "/api/v1/quarantine/causes/?datasource=flights"),
        ("/quarantine/", "/api/v1/quarantine/causes/?waiting=true"),
        (
            "/datasources/flights/quarantine/?reason=unparseable&from=2013-01-01T00:00",
            "/api/v1/datasources/flights/quarantine/?reason=unparseable&from=2013-01-01T00%3A00%3A00%2B00%3A00",
        ),
        (
            "/datasources/flights/segments/?from=2013-01-01T00:00&to=2013-01-02T00:00",
            "/api/v1/datasources/flights/segments/?from=2013-01-01T00%3A00%3A00%2B00%3A00"
            "&to=2013-01-02T00%3A00%3A00%2B00%3A00",
        ),
        (
            "/datasources/flights/intervals/?from=2013-01-01T00:00&to=2013-01-02T00:00",
            "/api/v1/datasources/flights/timeline/?from=2013-01-01T00%3A00%3A00%2B00%3A00"
            "&to=2013-01-02T00%3A00%3A00%2B00%3A00",
        ),
        ("/supervisors/flights/lag/", "/api/v1/supervisors/flights/lag/series/"),
        (
            "/records/?topic=flights-topic&partition=0&offset=100",
            "/api/v1/records/?topic=flights-topic&partition=0&offset=100",
        ),
    ],
)
def test_a_lists_rest_address_asks_for_what_the_page_shows(cast: Cast, page: str, address: str) -> None:
    client = browsing_as(cast, "owner")
    assert _address(client.get(page).content.decode()) == address
    assert client.get(address).status_code == 200


@pytest.mark.parametrize(
    ("page", "sorts"), [("connections", ("-name", "kind", "-changed")), ("people", ("-name", "email"))]
)
def test_lists_are_sorted_in_the_address(cast: Cast, page: str, sorts: tuple[str, ...]) -> None:
    admin = browsing_as(cast, "superuser")
    for sort in sorts:
        column = sort.removeprefix("-")
        text = admin.get(f"/{page}/?sort={sort}").content.decode()
        head = parsed_head(text, column)
        assert head == ("descending" if sort.startswith("-") else "ascending")
    assert admin.get(f"/{page}/?sort=nothing").status_code == 400


def parsed_head(text: str, column: str) -> str:
    found = re.search(rf'<th scope="col" data-col="{column}"[^>]* aria-sort="(\w+)"', text)
    return found[1] if found else ""


def test_the_chosen_team_is_in_the_rest_address(cast: Cast) -> None:
    client = browsing_as(cast, "owner")
    client.post("/-/team/", {"team": cast.alpha.name})
    for name in ("datasources", "supervisors", "tasks", "connections"):
        assert _address(client.get(f"/{name}/").content.decode()) == f"/api/v1/{name}/?team={cast.alpha.name}"
