"""Druid's SQL over HTTP, in process: the tables of a cluster, rights and masks, formats, cancelling, and errors.

What statements mean is in ``tests/golden/test_druid_sql.py``.
"""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from controlplane.api.druid import system_tables
from controlplane.common.errors import NotFound
from controlplane.datasources.masking import set_masks
from controlplane.datasources.models import Datasource
from controlplane.query import cancelling
from controlplane.segments.models import Segment
from controlplane.teams.models import AuditEntry
from tests.support.django_cast import PASSWORD, Cast
from tests.support.druid_sql import cases, on_cluster
from tests.support.sql import ADDRESS as SQL
from tests.support.sql import druid_rollup, druid_rows
from tests.support.waiting import wait_for

ADDRESS = "/druid/v2/sql"
CLUSTER = [case for case in cases() if on_cluster(case)]
# Why Headgate's answer is another one, or has more rows.
DIFFERS = {
    "SELECT COUNT(*) > 0 AS exists_ FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = 'nothing'": (
        "A count of no rows is one row, as for other tables. Druid gives none here."
    ),
    "SELECT SCHEMA_NAME FROM INFORMATION_SCHEMA.SCHEMATA ORDER BY 1": "There are no lookups and no views.",
    "SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'druid'": "The cast has one more.",
    'SELECT "supervisor_id", "source", "state", "detailed_state", "type", "suspended" = 1 AS "suspended" FROM '
    'sys.supervisors ORDER BY "supervisor_id"': "The cast has a supervisor.",
}
FOREVER = (
    "SELECT COUNT(*) FROM wiki a, wiki b, wiki c, wiki d, wiki e WHERE a.delta + b.delta + c.delta = d.delta * e.ms"
)


@pytest.fixture
def wiki(cast: Cast, tmp_path: Path, settings: Any) -> Datasource:
    """The rows that the recorded Druid had."""
    return druid_rows(cast.alpha, tmp_path, settings)


def send(client: Client, query: str, address: str = ADDRESS, **body: Any) -> Any:
    return client.post(address, json.dumps({"query": query, **body}), content_type="application/json")


def text_of(response: Any) -> str:
    content: bytes = b"".join(response.streaming_content) if response.streaming else response.content
    return content.decode()


def answer(client: Client, query: str, **body: Any) -> Any:
    response = send(client, query, **body)
    text = text_of(response)
    assert response.status_code == 200, text
    return json.loads(text)


def error(client: Client, query: str, status: int = 400, **body: Any) -> dict[str, Any]:
    response = send(client, query, **body)
    assert response.status_code == status, text_of(response)
    found: dict[str, Any] = json.loads(text_of(response))
    return found


def run_sql(client: Client, query: str) -> Any:
    return json.loads(text_of(client.post(SQL, json.dumps({"query": query}), content_type="application/json")))


def test_tables_of_the_cluster_are_druids(clients: dict[str, Client], wiki: Datasource) -> None:
    assert set(DIFFERS) <= {case["body"]["query"] for case in CLUSTER}
    others = {}
    for case in CLUSTER:
        found = answer(clients["operator"], **case["body"])
        if found != case["answer"]:
            others[case["body"]["query"]] = found
    assert sorted(others) == sorted(DIFFERS)
    assert others["SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'druid'"] == [
        {"TABLE_NAME": "flights"},
        {"TABLE_NAME": "wiki"},
    ]


def test_tables_of_the_cluster_have_what_the_user_may_see(clients: dict[str, Client], wiki: Datasource) -> None:
    for name in ("sys.segments", "sys.supervisors", "sys.tasks", "sys.servers"):
        assert answer(clients["outsider"], f"SELECT * FROM {name}") == []
    seen = answer(clients["outsider"], "SELECT DISTINCT TABLE_SCHEMA FROM INFORMATION_SCHEMA.COLUMNS ORDER BY 1")
    assert seen == [{"TABLE_SCHEMA": "INFORMATION_SCHEMA"}, {"TABLE_SCHEMA": "sys"}]
    segments = answer(clients["viewer"], "SELECT segment_id, num_rows FROM sys.segments WHERE datasource = 'wiki'")
    assert {s["segment_id"] for s in segments} == {s.identifier for s in Segment.objects.filter(datasource=wiki)}
    assert sum(s["num_rows"] for s in segments) == 300


def test_a_table_of_the_cluster_has_a_limit(
    clients: dict[str, Client], wiki: Datasource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_tables, "MAX_ROWS", 2)
    assert "has more than 2 rows" in error(clients["viewer"], "SELECT * FROM sys.segments")["errorMessage"]
    assert "There is no table sys.nothing" in error(clients["viewer"], "SELECT * FROM sys.nothing")["errorMessage"]


def test_rights_masks_and_the_audit_trail_are_those_of_sql(
    clients: dict[str, Client], wiki: Datasource, cast: Cast
) -> None:
    """Row 32 of the security checklist."""
    Datasource.objects.create(name="theirs", team=cast.beta)
    for client, name in (("operator", "theirs"), ("operator", "beta.theirs"), ("outsider", "wiki")):
        found = error(clients[client], f"SELECT * FROM {name}")
        assert "There is no datasource" in found["errorMessage"]
        assert found["context"] == {"sourceType": "sql"}
    set_masks(user=cast.users["owner"], datasource=wiki, masks={"country": "admin", "tags": "admin"})
    masked = "SELECT COUNT(country) AS a, COUNT(tags) AS b, COUNT(page) AS p FROM druid.wiki WHERE country IS NULL"
    response = send(clients["operator"], masked)
    assert json.loads(text_of(response)) == [{"a": 0, "b": 0, "p": 300}]
    assert response["X-Headgate-Masked"] == "wiki.country, wiki.tags"
    assert answer(clients["operator"], "SELECT tags, COUNT(*) AS c FROM wiki GROUP BY 1") == [{"tags": None, "c": 300}]
    assert answer(clients["viewer"], "SELECT MAX(page) AS p, MAX(delta) AS d FROM wiki") == [{"p": None, "d": 149}]
    entry = AuditEntry.objects.filter(action="query").latest("id")
    assert "MAX(delta)" in str(entry.detail)


def test_stored_sketches_are_read(clients: dict[str, Client], cast: Cast, tmp_path: Path, settings: Any) -> None:
    """By Druid's functions and by ours; a user who may not see them reads none."""
    druid_rollup(cast.alpha, tmp_path, settings)
    asked = (
        "SELECT APPROX_COUNT_DISTINCT_DS_HLL(pages_hll) AS h, APPROX_COUNT_DISTINCT_DS_THETA(pages_theta) AS t, "
        "APPROX_QUANTILE_DS(deltas, 0.5) AS q FROM wiki_rollup WHERE country = 'FR'"
    )
    [case] = [case for case in cases() if case["body"]["query"] == asked]
    assert answer(clients["operator"], asked) == case["answer"] == [{"h": 10, "t": 10, "q": -6.0}]
    everyone = asked.removesuffix(" WHERE country = 'FR'")
    assert answer(clients["viewer"], everyone) == [{"h": 0, "t": 0, "q": "NaN"}]
    ours = "SELECT sketch_distinct(list(pages_hll), 'hll'), sketch_quantile(list(deltas), 0), {} FROM wiki_rollup"
    columns = {"hll": "sketch_rank(list(deltas), -1)", "wrong": "sketch_distinct(list(pages_hll), 'theta')"}
    columns |= {"kind": "sketch_distinct(list(deltas), 'x')", "text": "sketch_quantile([encode('no sketch')], 0.5)"}
    found = {name: run_sql(clients["operator"], ours.format(column)) for name, column in columns.items()}
    [row] = found.pop("hll")["rows"]
    assert row == [pytest.approx(20, abs=1e-3), -150.0, 0.5]
    assert {name: problem["detail"] for name, problem in found.items()} == {
        "wrong": "Invalid Input Error: A value is no theta sketch.",
        "kind": "Invalid Input Error: sketch_distinct takes the kind 'hll' or 'theta'.",
        "text": "Invalid Input Error: A value is no quantiles sketch.",
    }


def test_only_the_files_of_the_time_range_are_read(clients: dict[str, Client], wiki: Datasource) -> None:
    """The files of other days are gone, and nothing notices."""
    for segment in Segment.objects.filter(datasource=wiki).order_by("interval_start")[1:]:
        segment.path = f"gone/{segment.pk}"
        segment.save()
    for where in (
        "__time < TIMESTAMP '2025-06-02 00:00:00'",
        "__time < MILLIS_TO_TIMESTAMP(1748822400000)",
        "TIME_IN_INTERVAL(__time, '2025-06-01/P1D')",
        "CAST(__time AS TIMESTAMP) < TIME_PARSE('2025-06-02')",
    ):
        assert answer(clients["viewer"], f"SELECT COUNT(*) AS c FROM wiki WHERE {where}") == [{"c": 110}]
    assert "can't be read" in error(clients["viewer"], "SELECT MAX(delta) FROM wiki", 503)["errorMessage"]


def test_headers_and_addresses(clients: dict[str, Client], wiki: Datasource) -> None:
    body = {"context": {"sqlQueryId": "mine", "unknown": {"x": 1}}, "header": True}
    response = send(clients["viewer"], "SELECT 1 AS one;", f"{ADDRESS}/", **body)
    assert json.loads(text_of(response)) == [{"one": None}, {"one": 1}]
    assert response["X-Druid-SQL-Query-Id"] == "mine"
    assert response["X-Druid-SQL-Header-Included"] == "yes"
    assert response["Content-Type"] == "application/json"
    lists = {"context": {"sqlStringifyArrays": False}}
    assert answer(clients["viewer"], "SELECT ARRAY[1, 2] AS a", **lists) == [{"a": [1, 2]}]


def test_a_password_is_enough(client: Client, wiki: Datasource, cast: Cast) -> None:
    login = base64.b64encode(f"{cast.users['viewer'].username}:{PASSWORD}".encode()).decode()
    headers = {"Authorization": f"Basic {login}"}
    response = client.post(ADDRESS, '{"query": "SELECT 1"}', content_type="application/json", headers=headers)
    assert text_of(response) == '[{"EXPR$0":1}]\n'
    assert send(client, "SELECT 1").status_code == 401


def test_a_query_is_cancelled_by_its_id(clients: dict[str, Client], wiki: Datasource, cast: Cast) -> None:
    assert clients["operator"].delete(f"{ADDRESS}/slow").status_code == 404
    cancelling.register(cast.users["operator"], "waits", 60)
    assert clients["owner"].delete(f"{ADDRESS}/waits").status_code == 404
    assert clients["operator"].delete(f"{ADDRESS}/waits").status_code == 202
    assert cancelling.is_cancelled(cast.users["operator"], "waits")

    def cancel() -> bool:
        try:
            cancelling.cancel(cast.users["operator"], "slow")
        except NotFound:
            return False
        return True

    with ThreadPoolExecutor(1) as pool:
        cancelled = pool.submit(wait_for, "the query", cancel)
        response = send(clients["operator"], FOREVER, context={"sqlQueryId": "slow"})
        cancelled.result()
    assert response.status_code == 409
    assert response.json()["errorMessage"] == "The query was cancelled."


def test_a_query_has_its_own_timeout(clients: dict[str, Client], wiki: Datasource) -> None:
    found = error(clients["operator"], FOREVER, context={"timeout": 300})
    assert "did not finish within 0.3 s" in found["errorMessage"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"context": {"sqlTimeZone": "Mars/Base"}}, "is not a time zone's name"),
        ({"context": {"sqlTimeZone": 5}}, "context.sqlTimeZone must be a text"),
        ({"context": {"sqlQueryId": "x" * 201}}, "more than 200 characters"),
        ({"context": {"sqlOuterLimit": -1}}, "context.sqlOuterLimit must be a whole number"),
        ({"context": {"timeout": "soon"}}, "context.timeout must be a whole number"),
        ({"typesHeader": True}, "must be true for headers of types"),
        ({"resultFormat": "xml"}, "xml"),
        (
            {"parameters": [{"type": "BIGINT", "value": 1}]},
            "The statement has 0 parameters (?), and the request has 1.",
        ),
        ({"parameters": [{"type": "BIGINT", "value": {}}]}, "must be a text, a number"),
        ({"nonsense": 1}, "unknown field"),
    ],
)
def test_a_bad_body_says_what_is_wrong(clients: dict[str, Client], cast: Cast, body: dict[str, Any], said: str) -> None:
    found = error(clients["viewer"], "SELECT 1", **body)
    assert said in found["errorMessage"]
    assert (found["error"], found["errorCode"], found["category"]) == (
        "druidException",
        "invalidInput",
        "INVALID_INPUT",
    )
