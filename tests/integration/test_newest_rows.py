"""The newest rows of a datasource: over REST and on the page, by role, from real segments in a folder and on S3."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.test import Client

from controlplane.datasources.models import Datasource
from controlplane.segments import newest_rows
from controlplane.segments.models import Segment
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.specs.messages.protocol import SegmentFile
from tests.support.desk import DAY_MS, JUNE_MS, Desk, batch_of, schema_of
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed
from tests.support.s3 import CREDENTIALS, s3_server
from tests.support.sql import register

DAYS = 3
REST = "/api/v1/datasources/rows-of-june/rows/"
PAGE = "/datasources/rows-of-june/rows/"


@pytest.fixture
def files(tmp_path: Path, settings: Any) -> list[SegmentFile]:
    """A segment a day with one row each, the latest first."""
    desk = Desk(tmp_path, schema_of())
    settings.DEEP_STORAGE = str(desk.deep)
    names = pa.array([f"<b>{n}</b>" for n in range(DAYS)])
    desk.add(batch_of([day * DAY_MS for day in range(DAYS)], n=pa.array(range(DAYS)), name=names))
    files = desk.write()
    desk.index.close()
    return sorted(files, key=lambda f: f.max_time, reverse=True)


@pytest.fixture
def segments(cast: Cast, files: list[SegmentFile]) -> list[Segment]:
    datasource = Datasource.objects.create(name="rows-of-june", team=cast.alpha)
    return register(datasource, files)


def cells(answer: Any, name: str) -> list[Any]:
    place = [c["name"] for c in answer["columns"]].index(name)
    return [row[place] for row in answer["rows"]]


def test_operators_see_rows_and_viewers_no_texts(clients: dict[str, Client], segments: list[Segment]) -> None:
    answer = clients["operator"].get(REST, {"limit": 2}).json()
    assert answer["columns"][0] == {"name": "__time", "type": "timestamp", "types": ["timestamp"]}
    assert (cells(answer, "n"), cells(answer, "name")) == ([2, 1], ["<b>2</b>", "<b>1</b>"])
    assert (answer["masked"], answer["problems"], answer["certain_after"]) == (False, [], None)
    masked = clients["viewer"].get(REST, {"limit": 2}).json()
    assert (cells(masked, "n"), cells(masked, "name")) == ([2, 1], [{"masked": True}] * 2)
    assert masked["masked"] is True
    assert clients["outsider"].get(REST).status_code == 404


def test_the_page_shows_what_is_stored_and_names_files_that_are_gone(
    cast: Cast, segments: list[Segment], settings: Any
) -> None:
    gone = Path(settings.DEEP_STORAGE) / segments[0].path
    gone.unlink()
    operator = browsing_as(cast, "operator")
    assert parsed(operator.get(PAGE)).one("div", hx_trigger="load").attributes["hx-get"] == f"{PAGE}table/"
    page = parsed(operator.get(f"{PAGE}table/"))
    assert [td.text for td in page.one("tbody").all("td")[:3]] == ["2025-06-02T00:00:00.000Z", "1", "<b>1</b>"]
    assert segments[0].path in page.one(id="newest-rows").one("div", class_="alert-warning").text
    viewer = browsing_as(cast, "viewer").get(f"{PAGE}table/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in viewer
    assert "masked" in viewer
    assert "&lt;b&gt;" not in viewer


def test_a_window_and_what_is_wrong_with_one(clients: dict[str, Client], segments: list[Segment]) -> None:
    start = datetime.fromtimestamp(JUNE_MS / 1000, UTC) + timedelta(days=1)
    window = {"from": start.isoformat(), "to": (start + timedelta(days=1)).isoformat()}
    assert cells(clients["operator"].get(REST, window).json(), "n") == [1]
    assert clients["operator"].get(REST, {"from": "2031-01-01"}).json()["rows"] == []
    assert clients["operator"].get(REST, {"from": window["to"], "to": window["from"]}).status_code == 400
    assert clients["operator"].get(REST, {"limit": 0}).status_code == 400
    assert clients["operator"].get(REST, {"limit": 501}).status_code == 400


def test_more_segments_than_are_read_are_no_secret(
    clients: dict[str, Client], segments: list[Segment], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest_rows, "MAX_FILES", 2)
    answer = clients["operator"].get(REST).json()
    assert cells(answer, "n") == [2, 1]
    assert answer["certain_after"] == "2025-06-01T00:00:00Z"
    assert clients["operator"].get(REST, {"limit": 2}).json()["certain_after"] is None


@pytest.mark.usefixtures("cold_processes")
def test_rows_are_read_from_an_object_storage(
    clients: dict[str, Client],
    segments: list[Segment],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with s3_server(tmp_path) as server:
        remote = open_deep_storage(server.location("deep"))
        for segment in segments:
            remote.put(Path(settings.DEEP_STORAGE) / segment.path, segment.path)
        settings.DEEP_STORAGE = server.location("deep")
        assert cells(clients["operator"].get(REST).json(), "n") == [2, 1, 0]
        remote.delete(segments[1].path)
        answer = clients["operator"].get(REST).json()
        assert cells(answer, "n") == [2, 0]
        assert answer["problems"] == [{"path": segments[1].path, "problem": "does not exist"}]
        settings.DEEP_STORAGE = "s3://"
        assert clients["operator"].get(REST).status_code == 503
