"""Layers of the timeline: what is not in use, was merged, or came late; by REST, for the drawing, and as a table."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from controlplane.segments import marking
from controlplane.segments.marking import SegmentSelection
from controlplane.segments.models import Replacement, Segment
from controlplane.segments.selectors.layers import layers
from controlplane.segments.selectors.timeline import timeline
from tests.support.django_cast import DAY, STARTED, Cast, browsing_as
from tests.support.html import parsed

REST, PAGE = "/api/v1/datasources/flights/timeline/", "/datasources/flights/"
ALL = "unused,merged,late"


@pytest.fixture
def layered(cast: Cast) -> Cast:
    """Of day 1, which came late, one of two segments is removed; day 2 was merged: when its rows came is not known."""
    first = cast.segments[0]
    marking.mark_unused(cast.datasource, SegmentSelection(ids=frozenset({first.pk})), by="owner", what="one")
    Replacement.objects.create(
        id=uuid.uuid4(),
        datasource=cast.datasource,
        interval_start=DAY + timedelta(days=1),
        interval_end=DAY + timedelta(days=2),
        task_id="compact_1",
        taken=[uuid.uuid4(), uuid.uuid4()],
        made=[cast.segments[2].pk],
        rows_before=300,
        rows_after=300,
        bytes_before=4000,
        bytes_after=3000,
        created_at=STARTED,
    )
    Segment.objects.filter(pk=cast.segments[2].pk).update(task_id="compact_1")
    Segment.objects.filter(pk=cast.segments[3].pk).update(created_at=DAY)
    return cast


def told(client: Client, **query: str) -> dict[str, Any]:
    answer = client.get(REST, {"layers": ALL, **query}).json()
    return {
        layer["name"]: [(m["start"][:10], m["segments"], m["rows"], m["size_bytes"]) for m in layer["marks"]]
        for layer in answer["layers"]
    }


def test_each_says_what_it_has_by_interval(layered: Cast, clients: dict[str, Client]) -> None:
    viewer = clients["viewer"]
    assert told(viewer) == {
        "unused": [("2013-01-01", 1, 500, 5000)],
        "merged": [("2013-01-02", 2, 300, 4000)],
        "late": [("2013-01-01", 1, 400, 4000)],
    }
    assert told(viewer, **{"from": "2013-01-02", "to": "2013-01-03"}) == {
        "unused": [],
        "merged": [("2013-01-02", 2, 300, 4000)],
        "late": [],
    }
    assert viewer.get(REST).json()["layers"] == []
    assert [layer["name"] for layer in viewer.get(REST, {"layers": "late"}).json()["layers"]] == ["late"]
    assert viewer.get(REST, {"layers": "late,odd"}).status_code == 400


def test_the_bars_are_what_they_are_without_layers(layered: Cast) -> None:
    assert timeline(layered.datasource).total_rows == 1000


def test_of_too_many_none_is_shown_and_said_so(layered: Cast, clients: dict[str, Client], monkeypatch: Any) -> None:
    monkeypatch.setitem(layers.__globals__, "MAX_SCANNED", 1)
    by_name = {layer.name: layer for layer in layers(layered.datasource, ["unused", "merged", "late"])}
    assert (by_name["late"].too_many, by_name["late"].marks) == (True, ())
    assert not by_name["unused"].too_many
    monkeypatch.setitem(layers.__globals__, "MAX_MARKS", 0)
    assert {layer.too_many for layer in layers(layered.datasource, ["unused", "merged"])} == {True}
    data = browsing_as(layered, "viewer").get(f"{PAGE}timeline.json", {"layers": ALL}).json()
    assert data["layers"] == {"unused": None, "merged": None, "late": None}
    page = parsed(browsing_as(layered, "viewer").get(f"{PAGE}intervals/", {"layers": ["late", "unused"]}))
    assert "too many" in page.one("tbody").text


def test_the_table_has_a_column_for_each_that_is_asked_for(layered: Cast) -> None:
    page = parsed(browsing_as(layered, "viewer").get(f"{PAGE}intervals/", {"layers": ["late", "unused"]}))
    heads = [th.text for th in page.one("thead").all("th")]
    assert [heads.index(name) - heads.index("Average size") for name in ("Unused", "Late")] == [1, 2]
    place = heads.index("Unused") - 1  # the row's head is no cell
    rows = [[td.text for td in tr.all("td")][place : place + 2] for tr in page.one("tbody").all("tr")]
    assert rows == [["", ""], ["", ""], ["1", "1"]]
    checked = [box.attributes["value"] for box in page.all("input", name="layers") if "checked" in box.attributes]
    assert checked == ["unused", "late"]
    plain = parsed(browsing_as(layered, "viewer").get(f"{PAGE}intervals/"))
    assert "Unused" not in [th.text for th in plain.one("thead").all("th")]
    assert browsing_as(layered, "viewer").get(f"{PAGE}timeline.json", {"layers": "odd"}).status_code == 400
