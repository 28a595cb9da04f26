"""The timeline's table of the window that stands in its address, as the drawing is zoomed to it."""

from __future__ import annotations

import html
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.test import Client

from tests.integration.test_pages_datasources import FLIGHTS, rows_of
from tests.support.django_cast import DAY, Cast, browsing_as, make_segment
from tests.support.html import parsed

WINDOW = {"from": "2013-01-02T12:00:00Z", "to": "2013-01-04T00:00:00Z"}


@pytest.fixture
def viewer(cast: Cast) -> Client:
    return browsing_as(cast, "viewer")


def test_the_intervals_of_a_window_as_a_table(viewer: Client, cast: Cast) -> None:
    make_segment(cast.datasource, cast.task.pk, DAY + timedelta(days=1), 7, 5)
    page = parsed(viewer.get(f"{FLIGHTS}intervals/", {**WINDOW, "sort": "from", "layers": "late"}))
    assert [[*r[:4], r[6]] for r in rows_of(page)] == [
        ["2013-01-02 12:00", "2013-01-03", "305", "2", "2"],
        ["2013-01-03", "2013-01-04", "300", "1", "1"],
    ]
    assert "From 2013-01-02 12:00 to 2013-01-04" in page.one("main").text
    sorts = [a.attributes["href"] for a in page.one("thead").all("a")]
    assert sorts
    assert all("from=2013-01-02T12%3A00%3A00Z&to=2013-01-04" in href for href in sorts)
    kept = {field.attributes["name"]: field.attributes["value"] for field in page.all("input", type="hidden")}
    assert {**WINDOW, "sort": "from"}.items() <= kept.items()
    [whole] = [a.attributes["href"] for a in page.all("a") if a.text == "Show all intervals"]
    assert len(rows_of(parsed(viewer.get(f"{FLIGHTS}intervals/{whole}")))) == 3


def test_a_window_without_intervals_leads_back_to_the_whole(viewer: Client) -> None:
    page = parsed(viewer.get(f"{FLIGHTS}intervals/", {"from": "2020-01-01"}))
    assert "From 2020-01-01 on" in page.one("main").text
    assert "No segments are in use in this time" in page.one("main").text
    assert [a.text for a in page.all("a") if a.text == "Show all intervals"]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"from": "yesterday"}, "from is not an ISO 8601 time"),
        ({"from": "2013-01-02", "to": "2013-01-01"}, "must be before"),
        ({"to": "0001-01-01T00:00:00+14:00"}, "to is not an ISO 8601 time"),
    ],
)
def test_the_table_of_a_window_that_is_none_says_what_the_drawing_says(
    viewer: Client, query: dict[str, str], told: str
) -> None:
    answer = viewer.get(f"{FLIGHTS}intervals/", query)
    assert answer.status_code == 400
    detail = viewer.get(f"{FLIGHTS}timeline.json", query).json()["detail"]
    assert told in detail
    assert detail in html.unescape(answer.content.decode())


def test_the_table_of_the_timeline_is_of_the_window_in_the_address(viewer: Client) -> None:
    def tables(query: dict[str, str]) -> set[str]:
        section = parsed(viewer.get(FLIGHTS, query)).one("section", data_timeline="")
        return {a.attributes["href"] for a in section.all("a") if "as a table" in a.text.lower()}

    assert tables({}) == {f"{FLIGHTS}intervals/"}
    assert tables(WINDOW) == {f"{FLIGHTS}intervals/?{urlencode(WINDOW)}"}
