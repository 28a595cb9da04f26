"""Settings of compaction that are tried out: what they would merge, by REST and page, and that nothing is changed."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from controlplane.compaction.models import ConfigChange, Configured
from controlplane.teams.models import AuditEntry
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed

REST, PAGE = "/api/v1/datasources/flights/compaction/", "/datasources/flights/compaction/"


def segments(told: dict[str, Any]) -> tuple[int, ...]:
    return (*(told[part]["segments"] for part in ("awaiting", "compacted", "skipped")), told["becoming"])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # The cast's day 1 has segments of 500 and 400 rows; days 2 and 3 have one of 300 each.
        ({}, (2, 2, 0, 1)),
        ({"max_rows_per_segment": 1002}, (2, 2, 0, 1)),
        ({"max_rows_per_segment": 1000}, (0, 4, 0, 0)),
        ({"max_rows_per_segment": 600}, (0, 4, 0, 0)),
        ({"skip_offset_from_latest": "P1D"}, (2, 1, 1, 1)),
        ({"skip_offset_from_latest": "P3D"}, (0, 0, 4, 0)),
    ],
)
def test_what_settings_would_leave(
    cast: Cast, clients: dict[str, Client], settings: dict[str, Any], expected: tuple[int, ...]
) -> None:
    told = clients["viewer"].get(REST, settings).json()
    assert segments(told) == expected
    assert (told["health"]["code"], bool(told["health"]["action"])) == ("off", True)
    assert not Configured.objects.exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"max_rows_per_segment": 0},
        {"max_rows_per_segment": 2**31},
        {"skip_offset_from_latest": "a day"},
        {"skip_offset_from_latest": "P1M"},
        {"skip_offset_from_latest": "P99999D"},
        {"skip_offset_from_latest": "P99999999999999D"},
        {"other": 1},
    ],
)
def test_settings_that_are_no_good_are_refused(
    cast: Cast, clients: dict[str, Client], settings: dict[str, Any]
) -> None:
    assert clients["viewer"].get(REST, settings).status_code == 400


def test_the_page_tries_and_then_applies_what_was_tried(cast: Cast) -> None:
    operator = browsing_as(cast, "operator")
    page = parsed(operator.get(PAGE, {"rows": "600", "skip": "P1D"}))
    rows = [[td.text for td in tr.all("td")] for tr in page.one("table", data_simulated="").one("tbody").all("tr")]
    assert [row[:2] for row in rows] == [["2", "0"], ["1", "0"], ["2", "3"], ["0", "1"]]
    assert "must be an ISO 8601 duration" in parsed(operator.get(PAGE, {"skip": "P1M"})).text
    assert "must be an ISO 8601 duration" in parsed(operator.get(PAGE, {"skip": "P99999999999999D"})).text
    assert not parsed(browsing_as(cast, "viewer").get(PAGE, {"rows": "600"})).all(
        "form", method="post", action=f"{PAGE}apply/"
    )
    assert operator.post(f"{PAGE}apply/", {"rows": "600", "skip": "P1D"})["Location"] == PAGE
    assert Configured.objects.get().document == {
        "dataSource": "flights",
        "maxRowsPerSegment": 600,
        "skipOffsetFromLatest": "P1D",
    }
    assert ConfigChange.objects.get().author == "operator"
    assert AuditEntry.objects.filter(action="set_compaction").count() == 1
    assert operator.post(f"{PAGE}apply/", {"rows": "600"}).status_code == 400


def test_other_settings_are_kept(cast: Cast) -> None:
    before = {"dataSource": "flights", "taskPriority": 30, "tuningConfig": {"partitionsSpec": {"type": "dynamic"}}}
    Configured.objects.create(
        datasource=cast.datasource, enabled=True, document=before, updated_at=cast.task.created_at
    )
    browsing_as(cast, "owner").post(f"{PAGE}apply/", {"rows": "700", "skip": "PT0S"})
    kept = Configured.objects.get().document
    assert (kept["taskPriority"], kept["maxRowsPerSegment"]) == (30, 700)
