"""Rows that take too long to read: the page offers less time before the same end."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from controlplane.segments import newest_rows
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import Element, parsed

TABLE = "/datasources/flights/rows/table/"


@pytest.fixture
def viewer(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(newest_rows, "ANSWER_S", 0.001)  # no process starts within that
    return browsing_as(cast, "viewer")


def offered(page: Element) -> dict[str, str]:
    return {link.text: link.attributes["href"] for link in page.one("p", data_shorter="").all("a")}


def test_all_rows(viewer: Client) -> None:
    page = parsed(viewer.get(TABLE))
    assert "ask for a shorter time" in page.one(id="newest-rows").text
    found = offered(page)
    assert list(found) == ["the last 30 days", "the last 7 days", "the last day", "the last 6 hours", "the last hour"]
    assert viewer.get(found["the last hour"]).status_code == 200


def test_of_a_window_only_what_is_shorter(viewer: Client, cast: Cast) -> None:
    day = cast.segments[0].interval_start.replace(hour=0)
    window = {"from": day.isoformat(), "to": (day + timedelta(days=1)).isoformat()}
    found = offered(parsed(viewer.get(TABLE, window)))
    assert list(found) == ["the last 6 hours", "the last hour"]
    until = (day + timedelta(days=1)).strftime("%Y-%m-%dT00%%3A00%%3A00Z")
    assert found["the last hour"] == f"/datasources/flights/rows/?from={day:%Y-%m-%d}T23%3A00%3A00Z&to={until}"
