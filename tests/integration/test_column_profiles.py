"""Profiles of columns over REST and on the page, from real segments; what is expected was counted on paper."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.test import Client

from controlplane.datasources.masking import set_masks
from controlplane.datasources.models import Datasource
from controlplane.query import profiles
from controlplane.query.models import PastQuery
from controlplane.teams.models import AuditEntry
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow
from tests.support.desk import DAY_MS, Desk, batch_of, schema_of
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import Element, parsed
from tests.support.sql import register

HOUR_MS = DAY_MS // 24
ODD = 'Say "a.b"\'s name'
LONG = "ä" * 300
# Two rows on each of three days.
TIMES = [0, HOUR_MS, DAY_MS, DAY_MS + HOUR_MS, 2 * DAY_MS, 2 * DAY_MS + HOUR_MS]
ALL = {"from": "2025-06-01", "to": "2025-07-01"}
REST = "/api/v1/datasources/profiled/profile/"
PAGE = "/datasources/profiled/columns/profile/"


@pytest.fixture
def profiled(cast: Cast, tmp_path: Path, settings: Any) -> Datasource:
    desk = Desk(tmp_path, schema_of())
    settings.DEEP_STORAGE = str(desk.deep)
    columns = {
        "n": pa.array([5, 5, 7, None, -2, 7]),
        "price": pa.array([1.5, float("nan"), None, None, 1.5, float("-inf")]),
        "paid": pa.array([True, True, False, None, True, None]),
        "seen": pa.array([0, None, 1_500, 0, 0, 0], pa.timestamp("ms", "UTC")),
        "tags": pa.array([["a", "b"], ["a"], None, [], ["a", None, "c"], ["b"]]),
        ODD: pa.array(["x", "", "x", LONG, None, "X"]),
        " Sp ace ": pa.array(["s"] * 6),
        "doc": pa.array(['{"k":1}', None, None, None, '{"k":1}', "[2]"], pa.json_()),
    }
    desk.add(batch_of(TIMES, **columns))
    datasource = Datasource.objects.create(name="profiled", team=cast.alpha)
    register(datasource, desk.write())
    desk.index.close()
    return datasource


def answer(client: Client, column: str, **query: str) -> dict[str, Any]:
    response = client.get(REST, {"column": column, **query})
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found


def profile(client: Client, column: str, **query: str) -> dict[str, Any]:
    """The only one of a column with one type."""
    [found] = answer(client, column, **(query or ALL))["profiles"]
    return dict(found)


def facts(found: dict[str, Any]) -> list[Any]:
    return [found[name] for name in ("rows", "nulls", "values", "distinct", "min", "max")]


def top(found: dict[str, Any]) -> list[tuple[Any, int]]:
    return [(one["value"], one["count"]) for one in found["top"]]


def test_numbers_booleans_and_times(clients: dict[str, Client], profiled: Datasource) -> None:
    operator = clients["operator"]
    n = profile(operator, "n")
    assert (facts(n), top(n)) == ([6, 1, 5, 3, -2, 7], [(5, 2), (7, 2), (-2, 1)])
    assert (n["name"], n["type"], n["masked"]) == ("n", "long", "")
    price = profile(operator, "price")
    assert facts(price) == [6, 2, 4, 3, "-Infinity", "NaN"]
    assert top(price) == [(1.5, 2), ("-Infinity", 1), ("NaN", 1)]
    paid = profile(operator, "paid")
    assert (facts(paid), top(paid)) == ([6, 2, 4, 2, False, True], [(True, 3), (False, 1)])
    seen = profile(operator, "seen")
    assert facts(seen) == [6, 1, 5, 2, "1970-01-01T00:00:00Z", "1970-01-01T00:00:01.500000Z"]
    assert facts(profile(operator, "__time"))[:4] == [6, 0, 6, 6]


def test_texts_with_odd_names_and_long_values(clients: dict[str, Client], profiled: Datasource) -> None:
    found = profile(clients["operator"], ODD)
    cut = {"start": LONG[:200], "size_bytes": 600}
    assert facts(found) == [6, 1, 5, 4, "", cut]
    assert top(found) == [("x", 2), ("", 1), ("X", 1), (cut, 1)]
    assert top(profile(clients["operator"], " Sp ace ")) == [("s", 6)]
    assert clients["operator"].get(REST, {"column": "Sp ace"}).status_code == 404
    doc = profile(clients["operator"], "doc")
    assert (facts(doc), top(doc)) == ([6, 3, 3, 2, "[2]", '{"k":1}'], [('{"k":1}', 2), ("[2]", 1)])


def test_lists_are_profiled_by_their_values(clients: dict[str, Client], profiled: Datasource) -> None:
    """One of six lists is null; the seven values that the others have include one null."""
    tags = profile(clients["operator"], "tags")
    assert tags["type"] == "strings"
    assert (facts(tags), top(tags)) == ([6, 1, 6, 3, "a", "c"], [("a", 3), ("b", 2), ("c", 1)])


def test_of_a_sketch_only_nulls_are_counted(
    clients: dict[str, Client], cast: Cast, tmp_path: Path, settings: Any
) -> None:
    schema = schema_of(metrics=[{"type": "thetaSketch", "name": "users", "fieldName": "u"}], rollup=True)
    decoder = JsonDecoder(schema)
    rows = decoder.decode([b'{"t": 1748736000000, "u": "a"}', b'{"t": 1748736000001, "u": "b"}'], MessageWindow()).rows
    decoder.close()
    desk = Desk(tmp_path, schema)
    settings.DEEP_STORAGE = str(desk.deep)
    desk.add(rows)
    register(Datasource.objects.create(name="profiled", team=cast.alpha), desk.write())
    desk.index.close()
    found = profile(clients["operator"], "users")
    assert (facts(found), found["top"]) == ([2, 0, None, None, None, None], [])
    assert "Only its nulls are counted" in page_of(cast, "operator", column="users", read="1").text


def test_each_type_of_a_column_has_a_profile(
    clients: dict[str, Client], cast: Cast, tmp_path: Path, settings: Any
) -> None:
    """The latest first. Rows of the other type are null in it."""
    early, late = Desk(tmp_path, schema_of()), Desk(tmp_path, schema_of())
    settings.DEEP_STORAGE, late.ids = str(early.deep), early.ids
    early.add(batch_of([0, 1], v=pa.array([3, 4])))
    files = early.write()
    late.add(batch_of([DAY_MS], v=pa.array(["three"])))
    register(Datasource.objects.create(name="profiled", team=cast.alpha), [*files, *late.write()])
    for desk in (early, late):
        desk.index.close()
    found = answer(clients["operator"], "v")
    assert [(p["name"], p["type"], facts(p)) for p in found["profiles"]] == [
        ("v", "string", [3, 2, 1, 1, "three", "three"]),
        ("v__long", "long", [3, 1, 2, 2, 3, 4]),
    ]
    assert found["files"] == 2
    assert "Values of another type count as null" in page_of(cast, "operator", column="v", read="1").text


def test_more_values_than_are_shown(clients: dict[str, Client], cast: Cast, tmp_path: Path, settings: Any) -> None:
    """Value n is there n times: the ten most frequent of 40 are 40 to 31, and the number of values is approximate."""
    desk = Desk(tmp_path, schema_of())
    settings.DEEP_STORAGE = str(desk.deep)
    values = [n for n in range(1, 41) for _ in range(n)]
    desk.add(batch_of(range(len(values)), n=pa.array(values)))
    register(Datasource.objects.create(name="profiled", team=cast.alpha), desk.write())
    desk.index.close()
    found = profile(clients["operator"], "n")
    assert top(found) == [(n, n) for n in range(40, 30, -1)]
    assert 30 <= found["distinct"] <= 50
    assert "Distinct (approximate)" in page_of(cast, "operator", column="n", read="1").text


def test_the_default_range_has_the_newest_rows(
    clients: dict[str, Client], profiled: Datasource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ranged() -> list[Any]:
        found = answer(clients["operator"], "n")
        return [found["start"], found["end"], found["files"], found["profiles"][0]["rows"]]

    assert ranged() == ["2025-06-01T00:00:00Z", "2025-06-03T01:01:00Z", 3, 6]
    monkeypatch.setattr(profiles, "DEFAULT_ROWS", 5)
    assert ranged() == ["2025-06-02T00:00:00Z", "2025-06-03T01:01:00Z", 2, 4]
    monkeypatch.setattr(profiles, "DEFAULT_ROWS", 2)
    assert ranged() == ["2025-06-03T00:00:00Z", "2025-06-03T01:01:00Z", 1, 2]
    monkeypatch.setattr(profiles, "DEFAULT_ROWS", 1)  # half of the 61 minutes before the end
    assert ranged() == ["2025-06-03T00:30:00Z", "2025-06-03T01:01:00Z", 1, 1]


def test_a_chosen_range(clients: dict[str, Client], profiled: Datasource) -> None:
    """Half-open, in any time zone, and with one bound."""
    operator = clients["operator"]
    hour = {"from": "2025-06-02T02:00:00+02:00", "to": "2025-06-02T03:00:00+02:00"}
    assert top(profile(operator, "n", **hour)) == [(7, 1)]
    found = answer(operator, "n", **hour)
    assert (found["start"], found["end"], found["files"]) == ("2025-06-02T00:00:00Z", "2025-06-02T01:00:00Z", 1)
    assert facts(profile(operator, "n", **{"from": "2025-06-03"})) == [2, 0, 2, 2, -2, 7]
    assert facts(profile(operator, "n", to="2025-06-02")) == [2, 0, 2, 1, 5, 5]
    assert facts(profile(operator, "n", **{"from": "2031-01-01"})) == [0, 0, 0, 0, None, None]
    for wrong in ({"from": "2025-06-02", "to": "2025-06-02"}, {"from": "soon"}):
        assert operator.get(REST, {"column": "n", **wrong}).status_code == 400
    assert operator.get(REST).status_code == 400


def test_masked_columns_are_not_read(clients: dict[str, Client], profiled: Datasource, cast: Cast) -> None:
    set_masks(user=cast.users["owner"], datasource=profiled, masks={"n": "admin"})
    found = answer(clients["operator"], "n", **ALL)
    assert (found["files"], found["profiles"][0]["masked"]) == (0, "admin")
    assert (facts(found["profiles"][0]), found["profiles"][0]["top"]) == ([0, 0, None, None, None, None], [])
    assert not AuditEntry.objects.filter(action="query").exists()
    assert profile(clients["viewer"], "tags")["masked"] == "operator"
    assert profile(clients["owner"], "n")["max"] == 7
    shown = page_of(cast, "operator", column="n", read="1").text
    assert "masked for you: its values need the role admin" in shown


def test_who_may_not_see_it_finds_nothing(clients: dict[str, Client], profiled: Datasource, cast: Cast) -> None:
    assert clients["outsider"].get(REST, {"column": "n"}).status_code == 404
    assert browsing_as(cast, "outsider").get(PAGE, {"column": "n"}).status_code == 404
    assert clients["operator"].get(REST, {"column": "no"}).status_code == 404
    assert browsing_as(cast, "operator").get(PAGE, {"column": "no"}).status_code == 404


def test_a_profile_is_in_the_audit_trail(clients: dict[str, Client], profiled: Datasource) -> None:
    answer(clients["viewer"], "n")
    entry = AuditEntry.objects.get(action="query")
    assert (entry.username, entry.target_id) == ("viewer", "profiled")
    assert '"n"' in entry.detail["statement"]


def test_a_datasource_without_segments(clients: dict[str, Client], cast: Cast) -> None:
    Datasource.objects.create(name="profiled", team=cast.alpha)
    found = answer(clients["operator"], "__time")
    assert (found["start"], found["end"], found["files"], facts(found["profiles"][0])[:2]) == (None, None, 0, [0, 0])
    assert "No rows in this time range" in page_of(cast, "operator", column="__time", read="1").text


def page_of(cast: Cast, role: str, **query: str) -> Element:
    return parsed(browsing_as(cast, role).get(PAGE, query))


def test_the_page_reads_nothing_before_it_is_there(cast: Cast, profiled: Datasource) -> None:
    page = page_of(cast, "operator", column=ODD)
    part = page.one("div", hx_trigger="load").attributes["hx-get"]
    assert not AuditEntry.objects.filter(action="query").exists()
    shown = parsed(browsing_as(cast, "operator").get(part, headers={"HX-Request": "true"}))
    assert not shown.all("html")
    assert "Rows from 2025-06-01 to 2025-06-03 01:01 (UTC), read from 3 files" in shown.one("p", data_range="").text
    cells = [td.text for td in shown.one("tbody").all("td")]
    assert cells[:2] == ["2", "40.0 %"]
    values = [th.text.strip() for th in shown.one("tbody").all("th")]
    assert values == ["x", "(empty text)", "X", f"{LONG[:200]}… (600 B)"]
    columns = parsed(browsing_as(cast, "operator").get("/datasources/profiled/columns/"))
    assert columns.one(id="part-title").text == "Columns"


def test_a_profile_that_meets_a_limit_offers_shorter_ranges(
    clients: dict[str, Client], cast: Cast, profiled: Datasource, settings: Any
) -> None:
    settings.SQL_TIMEOUT = timedelta(microseconds=1)
    refused = clients["operator"].get(REST, {"column": "n"})
    assert refused.status_code == 400
    assert "Choose a shorter one. The query did not finish within" in refused.json()["detail"]
    page = page_of(cast, "operator", column="n", read="1")
    assert "can't be profiled in this time range" in page.one(id="column-profile").text
    found = {link.text: link.attributes["href"] for link in page.one("p", data_shorter="").all("a")}
    assert list(found) == ["the last day", "the last 6 hours", "the last hour"]
    settings.SQL_TIMEOUT = timedelta(seconds=60)
    shown = parsed(browsing_as(cast, "operator").get(f"{found['the last hour']}&read=1"))
    assert "Rows from 2025-06-03 00:01 to 2025-06-03 01:01 (UTC), read from 1 file." in shown.one(data_range="").text


def test_a_wrong_time_in_the_address_of_the_page(cast: Cast, profiled: Datasource) -> None:
    response = browsing_as(cast, "operator").get(PAGE, {"column": "n", "from": "soon"})
    assert response.status_code == 400
    assert "not an ISO 8601 time" in response.content.decode()


def test_the_newest_range_ends_after_the_newest_row(cast: Cast, profiled: Datasource) -> None:
    start, end = profiles.newest_range(profiled)
    assert (start, end) == (datetime(2025, 6, 1, tzinfo=UTC), datetime(2025, 6, 3, 1, 1, tzinfo=UTC))


def test_a_profile_is_in_the_audit_trail_and_not_in_the_history(
    clients: dict[str, Client], profiled: Datasource
) -> None:
    answer(clients["operator"], "n", **ALL)
    assert AuditEntry.objects.filter(action="query").count() == 1
    assert not PastQuery.objects.exists()
