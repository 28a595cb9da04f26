"""A team's limits of queries: what each of them stops, who is told, and that others do not wait."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from controlplane.common.fair_queue import FairPlaces, NoPlace
from controlplane.datasources.models import Datasource
from controlplane.query import cancelling, running
from controlplane.query.shared_places import SharedPlace
from controlplane.quotas import services as quotas
from tests.support.django_cast import Cast
from tests.support.sql import june as make_june
from tests.support.sql import problem, result, rows, send

FOREVER = (
    "SELECT count(*) FROM range(100000) a, range(100000) b, range(100000) c, june WHERE a.range + b.range = c.range"
)
HUGE = "SELECT string_agg(s) FROM (SELECT repeat(name, 1000) AS s FROM june, range(100000))"


@pytest.fixture
def june(cast: Cast, tmp_path: Path, settings: Any) -> Datasource:
    return make_june(cast.alpha, tmp_path, settings)


def limit(cast: Cast, **limits: int | None) -> None:
    quotas.set_quota(user=cast.users["superuser"], team=cast.alpha, limits=limits)


def raised(name: str) -> str:
    return f"This is the limit {name} of team alpha. A site administrator can raise it."


def test_time_memory_and_rows_are_the_teams(clients: dict[str, Client], june: Datasource, cast: Cast) -> None:
    operator = clients["operator"]
    limit(cast, sql_seconds=1)
    refusal = problem(operator, FOREVER, 400)
    assert "did not finish within 1 s" in refusal and raised("sql_seconds") in refusal
    limit(cast, sql_mebibytes=64)
    refusal = problem(operator, HUGE, 400)
    assert "memory" in refusal and raised("sql_mebibytes") in refusal
    limit(cast, sql_rows=4)
    answer = result(operator, "SELECT n FROM june ORDER BY n")
    assert (answer["row_count"], answer["truncated"]) == (4, True)
    with pytest.raises(running.BrokenOff, match=r"more than 4 rows\. This is the limit sql_rows of team alpha"):
        list(send(operator, "SELECT n FROM june", format="csv").streaming_content)


def test_a_limit_is_for_datasources_of_its_team(clients: dict[str, Client], june: Datasource, cast: Cast) -> None:
    limit(cast, sql_rows=4)
    assert len(rows(clients["operator"], "FROM range(10)")) == 10
    Datasource.objects.create(name="theirs", team=cast.beta)
    assert len(rows(clients["outsider"], "SELECT r.range FROM range(10) r LEFT JOIN theirs ON true")) == 10
    assert len(rows(clients["superuser"], "SELECT n FROM june LEFT JOIN theirs ON true")) == 4


def test_a_limit_above_the_sites_changes_nothing(
    clients: dict[str, Client], june: Datasource, cast: Cast, settings: Any
) -> None:
    limit(cast, sql_seconds=1_000, sql_mebibytes=900_000)
    settings.SQL_TIMEOUT = settings.SNAPSHOT_LEASE.__class__(seconds=1)
    refusal = problem(clients["operator"], FOREVER, 400)
    assert "within 1 s" in refusal and "Who runs Headgate can raise HEADGATE_SQL_TIMEOUT." in refusal


def test_a_limit_of_zero_lets_nobody_query(clients: dict[str, Client], june: Datasource, cast: Cast) -> None:
    for name in quotas.OF_QUERIES:
        limit(cast, **{name: 0})
        assert raised(name) in problem(clients["owner"], "SELECT 1 FROM june", 403)
        assert rows(clients["owner"], "SELECT 1") == [[1]]


def test_a_team_waits_for_its_own_queries_alone(
    clients: dict[str, Client], june: Datasource, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "WAIT_S", 0.2)
    limit(cast, sql_queries=1)
    first = send(clients["operator"], "SELECT n FROM june")  # it runs until its rows are read
    assert first.status_code == 200
    refusal = problem(clients["owner"], "SELECT 1 FROM june", 503)
    assert "team alpha (1)" in refusal and "A site administrator can raise the limit sql_queries." in refusal
    assert rows(clients["outsider"], "SELECT 1") == [[1]]
    assert b'"row_count": 6' in b"".join(first.streaming_content)
    assert rows(clients["owner"], "SELECT count(*) FROM june") == [[6]]


def test_a_user_has_two_queries_in_all_web_processes(
    clients: dict[str, Client], june: Datasource, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "WAIT_S", 0.2)
    answers = []
    for _ in range(2):  # each of a web process of its own
        monkeypatch.setattr(running, "_slots", FairPlaces(4, 2, 4))
        answers.append(send(clients["operator"], "SELECT n FROM june"))
    monkeypatch.setattr(running, "_slots", FairPlaces(4, 2, 4))
    assert "Other queries are running" in problem(clients["operator"], "SELECT 1", 503)
    assert rows(clients["owner"], "SELECT 1") == [[1]]
    assert b'"row_count": 6' in b"".join(answers[0].streaming_content)
    assert rows(clients["operator"], "SELECT 1") == [[1]]
    assert b'"row_count": 6' in b"".join(answers[1].streaming_content)


def test_a_teams_limit_counts_the_queries_of_all_web_processes(
    clients: dict[str, Client], june: Datasource, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for the team holds no place of the user, and goes on as soon as the other process has ended."""
    limit(cast, sql_queries=1)
    with SharedPlace(60) as other:
        assert other.take({f"team:{cast.alpha.pk}": 1})
        monkeypatch.setattr(running, "WAIT_S", 0.3)
        assert "team alpha (1)" in problem(clients["operator"], "SELECT 1 FROM june", 503)
        assert rows(clients["outsider"], "SELECT 1") == [[1]]
        monkeypatch.setattr(running, "WAIT_S", 10.0)
        leaving = threading.Timer(0.5, other.__exit__, (None, None, None))
        leaving.start()
        assert rows(clients["operator"], "SELECT count(*) FROM june") == [[6]]
        leaving.join()


def test_a_dead_process_holds_a_place_until_its_lease_ends(cast: Cast) -> None:
    group = {f"user:{cast.users['operator'].pk}": 1}
    dead, mine = SharedPlace(0.5), SharedPlace(60)
    assert dead.take(group) and not mine.take(group)
    deadline = time.monotonic() + 20
    while not mine.take(group):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not dead.take(group)
    with mine:
        assert mine.take(group)  # its own place is no other's
    assert dead.take(group)


def test_without_valkey_each_web_process_counts_alone(
    clients: dict[str, Client], june: Datasource, settings: Any
) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    cancelling.client.cache_clear()
    try:
        assert rows(clients["operator"], "SELECT count(*) FROM june") == [[6]]
    finally:
        cancelling.client.cache_clear()


def test_the_limits_of_queries_are_shown(clients: dict[str, Client], cast: Cast) -> None:
    limit(cast, sql_seconds=7)
    answer = clients["owner"].get("/api/v1/teams/alpha/quotas/").json()
    assert answer["sql_seconds"] == {"limit": 7, "used": None}
    assert answer["sql_rows"] == {"limit": None, "used": None}


def test_who_waits_for_a_group_keeps_nobody_else_waiting() -> None:
    """Pure: four places, of which a group has one."""
    places, entered, leave = FairPlaces(4, 3, 4), threading.Event(), threading.Event()

    def hold() -> None:
        with places.place("a", 5) as place:
            place.join({"group": 1}, 5)
            entered.set()
            leave.wait(5)

    def wait() -> bool:
        with places.place("b", 5) as place:
            place.join({"group": 1}, 5)
            return True

    with ThreadPoolExecutor(2) as pool:
        pool.submit(hold)
        assert entered.wait(5)
        waiting = pool.submit(wait)
        with places.place("c", 1) as one, places.place("c", 1):
            one.join({"other": 1}, 1)
            with pytest.raises(NoPlace):
                one.join({"group": 1}, 0.1)
        leave.set()
        assert waiting.result(5)


EXPLODING = [
    "SELECT count(*) FROM range(100000) a, range(100000) b, range(100000) c WHERE a.range + b.range = c.range",
    "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r",
    "WITH RECURSIVE r AS (SELECT 'x' AS s UNION ALL SELECT s || s FROM r) SELECT max(length(s)) FROM r",
    "SELECT length(repeat('x', 10000000000))",
    "SELECT length(repeat(repeat('x', 1000000), 100000))",
    "SELECT length(lpad('x', 2000000000, 'y'))",
    "SELECT len(range(10000000000))",
    "SELECT len([[x + y FOR x IN range(100000)] FOR y IN range(100000)])",
    "SELECT list(a.range) FROM range(1000000000) a",
    "SELECT length(string_agg(repeat('x', 1000000), '')) FROM range(100000)",
    "SELECT count(DISTINCT a.range * b.range) FROM range(100000) a, range(100000) b",
    "SELECT a.range FROM range(10000000000) a ORDER BY md5(a.range::VARCHAR) LIMIT 1 OFFSET 1000000000",
    "SELECT sum(x) OVER (ORDER BY y) FROM (SELECT a.range AS x, a.range % 7 AS y FROM range(10000000000) a) LIMIT 1",
    "SELECT len(list_reduce(range(100000), lambda a, b: a || b)) FROM (SELECT 1)",
]


def test_statements_that_explode_are_ended(clients: dict[str, Client], cast: Cast, settings: Any) -> None:
    """Row 32 of the security checklist: in rows, texts, lists, recursion, sorting, by their time or their memory."""
    settings.SQL_TIMEOUT = settings.SNAPSHOT_LEASE.__class__(seconds=2)
    settings.SQL_MEMORY_BYTES = 64 * 1024 * 1024
    for statement in EXPLODING:
        assert problem(clients["operator"], statement, 400), statement
        assert rows(clients["operator"], "SELECT 1") == [[1]], statement
