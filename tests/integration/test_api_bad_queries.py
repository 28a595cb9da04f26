"""REST endpoints answer bad pages and queries with a clear 4xx in the right form; nothing changes.

Since nothing changes, one test sends many: the message of a failure says which.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from tests.support.bad_input import check_problem, everything, rows_before
from tests.support.django_cast import Cast, spec_for


@pytest.fixture(autouse=True)
def nothing_changes(cast: Cast, clients: dict[str, Client], empty_cache: None) -> Iterator[None]:
    before = rows_before()
    yield
    assert everything() == before


LISTS = [
    "api/v1/tokens/",
    "api/v1/teams/",
    "api/v1/teams/alpha/members/",
    "api/v1/datasources/",
    "api/v1/datasources/flights/segments/",
    "api/v1/datasources/flights/segments/unused/",
    "api/v1/datasources/flights/removals/",
    "api/v1/datasources/flights/quarantine/",
    "api/v1/datasources/flights/events/",
    "api/v1/supervisors/",
    "api/v1/supervisors/flights/versions/",
    "api/v1/tasks/",
    "api/v1/alerts/",
    "api/v1/alerts/history/",
    "api/v1/alerts/rules/",
    "api/v1/alerts/receivers/",
    "api/v1/alerts/silences/",
    "api/v1/sql/history/",
    "api/v1/sql/saved/",
]
BAD_PAGES = [
    "limit=abc",
    "limit=",
    "limit=0",
    "limit=-1",
    "limit=1.5",
    "limit=99999999999999999999999",
    "limit=%00",
    "limit=1&limit=2",
    "cursor=",
    "cursor=%00",
    "cursor=abc",
    "cursor=" + "A" * 3000,
    "cursor=W10",
    "offset=3",
    "nonsense",
]


@pytest.mark.parametrize("path", LISTS)
def test_a_bad_page_is_refused(owner: Client, path: str) -> None:
    for query in BAD_PAGES:
        check_problem(owner.get(f"/{path}?{query}"), f"/{path}", (400,), query)


BAD_QUERIES = (
    "/api/v1/alerts/?state=odd",
    "/api/v1/alerts/?subject=%00",
    "/api/v1/alerts/?rule=0",
    "/api/v1/alerts/?rule=99999999999999999999",
    "/api/v1/alerts/history/?event=odd",
    "/api/v1/alerts/rules/?datasource=%00",
    "/api/v1/alerts/rules/99999999999999999999/",
    "/api/v1/alerts/silences/?ended=perhaps",
    "/api/v1/datasources/?search=%00",
    "/api/v1/datasources/?search=" + "x" * 201,
    "/api/v1/tasks/?status=ODD",
    "/api/v1/tasks/?status=running",
    "/api/v1/tasks/?kind=%00",
    "/api/v1/tasks/?datasource=a%00",
    "/api/v1/tasks/?supervisor=%00",
    "/api/v1/tasks/?search=%00",
    "/api/v1/tasks/?state=RUNNING",
    "/api/v1/supervisors/?state=%00",
    "/api/v1/supervisors/?search=%00",
    "/api/v1/supervisors/?terminated=perhaps",
    "/api/v1/supervisors/?terminated=",
    "/api/v1/datasources/flights/events/?kind=odd",
    "/api/v1/datasources/flights/events/?kind=",
    "/api/v1/datasources/flights/events/?alarm=2",
    *(
        f"/api/v1/datasources/flights/{place}/?{query}"
        for place in ("timeline", "segments")
        for query in (
            "from=yesterday",
            "from=2013-13-01",
            "from=0000-01-01",
            "from=99999-01-01",
            "from=0001-01-01T00:00:00%2B23:00",
            "to=9999-12-31T23:59:59-23:00",
            "to=%00",
            "to=1e400",
            "from=",
        )
    ),
    "/api/v1/datasources/flights/timeline/?from=2014-01-01&to=2013-01-01",
    "/api/v1/datasources/flights/timeline/?from=2013-01-01&to=2013-01-01",
    "/api/v1/datasources/flights/timeline/?width=0",
    "/api/v1/datasources/flights/timeline/?width=-1",
    "/api/v1/datasources/flights/timeline/?width=abc",
    "/api/v1/datasources/flights/timeline/?width=99999999999",
    "/api/v1/datasources/flights/quarantine/99999999999999999999999/",
    "/api/v1/records/",
    "/api/v1/records/?topic=flights-topic&partition=0",
    "/api/v1/records/?topic=flights-topic&partition=0&offset=-1",
    "/api/v1/records/?topic=flights-topic&partition=-1&offset=0",
    "/api/v1/records/?topic=flights-topic&partition=0&offset=abc",
    "/api/v1/records/?topic=flights-topic&partition=99999999999&offset=0",
    f"/api/v1/records/?topic=flights-topic&partition=0&offset={1 << 44}",
    "/api/v1/records/?topic=flights-topic&partition=0&offset=1e3",
    "/api/v1/records/?topic=%00&partition=0&offset=0",
    "/api/v1/records/?topic=flights-topic&partition=0&offset=0&group=%00",
    "/api/v1/records/?topic=" + "x" * 250 + "&partition=0&offset=0",
    "/druid/indexer/v1/tasks?max=abc",
    "/druid/indexer/v1/tasks?max=-1",
    "/druid/indexer/v1/tasks?max=" + "9" * 30,
    "/druid/indexer/v1/tasks?max=%C2%B2",
    "/druid/indexer/v1/tasks?state=odd",
    "/druid/indexer/v1/tasks?state=%00",
    "/druid/indexer/v1/tasks?state=",
    "/druid/indexer/v1/tasks?createdTimeInterval=x",
    "/druid/indexer/v1/tasks?createdTimeInterval=2025-01-01",
    "/druid/indexer/v1/tasks?createdTimeInterval=2025-99-01_2025-01-01",
)


def test_a_bad_query_is_refused(owner: Client) -> None:
    for address in BAD_QUERIES:
        check_problem(owner.get(address), address)


def test_a_bad_query_of_a_submitted_spec_makes_nothing(owner: Client) -> None:
    for query in ("skipRestartIfUnmodified=perhaps", "skipRestartIfUnmodified=", "skip=true"):
        path = f"/api/v1/supervisors/?{query}"
        check_problem(owner.post(path, spec_for("fresh"), content_type="application/json"), path, (400,), query)


def test_a_druid_filter_that_names_nothing_possible_finds_nothing(owner: Client) -> None:
    assert owner.get("/druid/indexer/v1/tasks?datasource=%00").json() == []
