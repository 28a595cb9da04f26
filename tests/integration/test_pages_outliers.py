"""A datasource with a row of another century: its page opens where the rows are, and names the row."""

from __future__ import annotations

from datetime import UTC, datetime

from django.test import Client

from controlplane.segments.models import Segment
from tests.support.django_cast import Cast, browsing_as, make_segment, sum_intervals
from tests.support.html import parsed


def test_the_timeline_opens_where_the_rows_are_and_links_to_what_lies_far(cast: Cast) -> None:
    viewer: Client = browsing_as(cast, "viewer")
    page = parsed(viewer.get("/datasources/flights/"))
    assert "data-opens-from" not in page.one("section", data_timeline="").attributes
    assert not page.all("p", data_outliers="")
    first, last = min(s.interval_start for s in cast.segments), max(s.interval_end for s in cast.segments)
    make_segment(cast.datasource, cast.task.pk, datetime(1999, 12, 31, tzinfo=UTC), 0, 1)
    sum_intervals(cast.datasource)
    assert Segment.objects.filter(interval_start__year=1999).exists()
    page = parsed(viewer.get("/datasources/flights/"))
    section = page.one("section", data_timeline="").attributes
    assert datetime.fromisoformat(section["data-opens-from"]) == first
    assert datetime.fromisoformat(section["data-opens-to"]) == last
    told = page.one("p", data_outliers="")
    assert "1 row is far from it" in told.text
    [link] = told.all("a")
    assert link.attributes["href"].startswith("/datasources/flights/segments/?from=1999-12-31T00%3A00%3A00Z")
    listed = parsed(viewer.get(link.attributes["href"])).one("tbody").all("tr")
    assert len(listed) == 1


def test_the_timeline_has_quick_ranges(cast: Cast) -> None:
    """A script moves the window: here stands that the buttons are there."""
    page = parsed(browsing_as(cast, "viewer").get("/datasources/flights/"))
    named = {b.attributes["data-timeline-do"]: b.text for b in page.all("button") if "data-timeline-do" in b.attributes}
    assert {name: named[name] for name in ("hour", "day", "week", "whole")} == {
        "hour": "Last hour",
        "day": "Last day",
        "week": "Last week",
        "whole": "Whole",
    }
