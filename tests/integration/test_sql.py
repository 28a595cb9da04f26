"""SQL over HTTP, in process, from real segments: rows, rights, masks, limits and formats."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.test import Client

from controlplane.common.processes import passed_environment
from controlplane.common.ready_process import ReadyProcess
from controlplane.datasources.masking import set_masks
from controlplane.datasources.models import Datasource
from controlplane.query import cancelling, limits, running
from controlplane.segments.models import Segment
from controlplane.teams.models import AuditEntry
from ingestion.segments.deep_storage import open_deep_storage
from tests.support.django_cast import Cast
from tests.support.s3 import CREDENTIALS, s3_server
from tests.support.sql import ADDRESS, problem, result, rows, send
from tests.support.sql import june as make_june
from tests.support.waiting import wait_for

FOREVER = "SELECT count(*) FROM range(100000) a, range(100000) b, range(100000) c WHERE a.range + b.range = c.range"
HUGE = (
    "SELECT sum(length(s)) FROM (SELECT string_agg(repeat('x', 1000), '') AS s FROM range(2000000) GROUP BY range % 7)"
)


@pytest.fixture
def june(cast: Cast, tmp_path: Path, settings: Any) -> Iterator[Datasource]:
    yield make_june(cast.alpha, tmp_path, settings)
    wait_for("the end of all queries", lambda: processes() == [])


def processes() -> list[psutil.Process]:
    """Those of queries that run now: forks of the one that waits."""
    waiting = running.ready_process.pid
    return [] if waiting is None else psutil.Process(waiting).children()


def test_rows_are_those_of_the_segments(clients: dict[str, Client], june: Datasource) -> None:
    operator = clients["operator"]
    assert rows(operator, "SELECT n, name FROM june ORDER BY n LIMIT 2") == [[0, "name-0"], [1, "name-1"]]
    assert rows(operator, "SELECT tag, sum(n) FROM june, unnest(tags) AS u(tag) GROUP BY tag HAVING count(*) > 1") == [
        ["a", 15]
    ]
    assert rows(operator, "SELECT __time FROM june WHERE n = 1") == [["2025-06-01T12:00:00Z"]]
    joined = "WITH j AS (SELECT * FROM alpha.june) SELECT count(*) FROM j JOIN alpha.june AS k USING (n)"
    assert rows(operator, joined) == [[6]]
    answer = result(operator, "SELECT n, name FROM june WHERE false")
    assert (answer["rows"], answer["row_count"], answer["truncated"], answer["masked"]) == ([], 0, False, {})
    assert answer["columns"] == [{"name": "n", "type": "BIGINT"}, {"name": "name", "type": "VARCHAR"}]


def test_files_are_chosen_by_the_times_in_where(clients: dict[str, Client], june: Datasource) -> None:
    operator = clients["operator"]

    def files(where: str) -> list[int]:
        answer = result(operator, f"EXPLAIN SELECT n FROM june WHERE {where}")
        return [answer["tables"][0][name] for name in ("files", "rows")]

    assert files("true") == [3, 6]
    assert files("__time >= '2025-06-02'") == [2, 4]
    assert files("__time >= TIMESTAMP '2025-06-02' AND __time < DATE '2025-06-03' AND n > 0") == [1, 2]
    assert files("'2025-06-02' > june.__time") == [1, 2]
    assert files("__time BETWEEN '2025-06-01 12:00:00' AND '2025-06-01 13:00:00'") == [1, 2]
    assert files("__time = '2025-06-03T12:00:00Z'") == [1, 2]
    assert files("__time > now()") == [0, 0]
    assert files("__time > '2025-06-03' AND __time < '2025-06-02'") == [0, 0]
    assert files("__time > '2025-06-03' OR n = 0") == [3, 6]
    assert files("NOT __time > '2025-06-02'") == [3, 6]
    assert files("__time > 'no time'") == [3, 6]
    assert rows(operator, "SELECT n FROM june WHERE __time >= '2025-06-03' ORDER BY n") == [[4], [5]]
    assert rows(operator, "SELECT count(*), max(name) FROM june WHERE __time > now()") == [[0, None]]


def test_explain_analyze_says_what_was_read(clients: dict[str, Client], june: Datasource) -> None:
    answer = result(clients["operator"], "EXPLAIN ANALYZE SELECT max(n) FROM june WHERE __time < '2025-06-02'")
    assert (answer["tables"][0]["files"], answer["plan"]["rows_read"]) == (1, 2)
    assert answer["tables"][0]["end"] == "2025-06-02T00:00:00Z"
    assert ".parquet" not in str(answer)


def test_other_teams_datasources_are_not_found(clients: dict[str, Client], june: Datasource, cast: Cast) -> None:
    """Row 32 of the security checklist. By any name; also one that a deleted datasource had."""
    Datasource.objects.create(name="theirs", team=cast.beta)
    for name in ("theirs", "beta.theirs", "beta.june", "no.june", "nothing", "pg_tables", "duckdb_settings"):
        assert "There is no datasource" in problem(clients["operator"], f"SELECT * FROM {name}", 404)
    assert "There is no datasource" in problem(clients["outsider"], "SELECT * FROM june", 404)
    assert "There is no datasource" in problem(clients["operator"], "SELECT * FROM information_schema.tables", 404)
    assert "There is no datasource" in problem(clients["operator"], "SELECT * FROM '/etc/passwd'", 404)
    assert "There is no datasource" in problem(clients["operator"], "SELECT (SELECT 1 FROM theirs)", 404)
    hidden_system = "SELECT * FROM (WITH duckdb_settings AS (SELECT 1) SELECT 1), duckdb_settings"
    assert "duckdb_settings does not exist" in problem(clients["operator"], hidden_system, 400)


def test_masked_columns_are_null_wherever_they_are_used(
    clients: dict[str, Client], june: Datasource, cast: Cast
) -> None:
    """Row 32 of the security checklist."""
    set_masks(user=cast.users["owner"], datasource=june, masks={"name": "admin"})
    operator = clients["operator"]
    assert rows(operator, "SELECT name FROM june") == [[None]] * 6
    assert rows(operator, "SELECT count(*) FROM june WHERE name = 'name-1'") == [[0]]
    assert rows(operator, "SELECT count(name), max(name), min(length(name)) FROM june") == [[0, None, None]]
    assert rows(operator, "SELECT count(*) FROM june a JOIN june b ON a.name = b.name") == [[0]]
    assert rows(operator, "SELECT n FROM june ORDER BY name, n DESC LIMIT 1") == [[5]]
    assert rows(operator, "SELECT june.name, CAST(june.name AS INT) FROM june LIMIT 1") == [[None, None]]
    assert "name-1" not in str(rows(operator, "SELECT june FROM june"))
    assert result(operator, "SELECT 1 FROM june")["masked"] == {"june.name": "admin"}
    assert "name-1" not in str(result(operator, "EXPLAIN ANALYZE SELECT * FROM june WHERE name LIKE 'name%'"))
    assert "name-" in problem(clients["owner"], "SELECT CAST(name AS INT) FROM june", 400)
    assert rows(clients["owner"], "SELECT n FROM june WHERE name = 'name-1'") == [[1]]


def test_viewers_see_no_texts(clients: dict[str, Client], june: Datasource) -> None:
    """The newest rows hide them, too."""
    answer = result(clients["viewer"], "SELECT sum(n), max(__time), count(name), count(tags) FROM june")
    assert answer["rows"] == [[15, "2025-06-03T12:00:00Z", 0, 0]]
    assert answer["masked"] == {"june.name": "operator", "june.tags": "operator"}


def test_every_format_has_the_same_rows(clients: dict[str, Client], june: Datasource) -> None:
    query = "SELECT n, name, tags, __time FROM june ORDER BY n"

    def content(form: str) -> bytes:
        response = send(clients["operator"], query, format=form)
        assert response.status_code == 200
        return b"".join(response.streaming_content)

    table = pa.ipc.open_stream(content("arrow")).read_all()
    assert table["n"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert pq.read_table(io.BytesIO(content("parquet"))).to_pylist() == table.to_pylist()
    lines = list(csv.reader(io.StringIO(content("csv").decode())))
    assert lines[:2] == [["n", "name", "tags", "__time"], ["0", "name-0", '["a", "t0"]', "2025-06-01T00:00:00Z"]]
    assert len(lines) == 7


def test_rows_are_read_from_an_object_storage(
    clients: dict[str, Client], june: Datasource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """DuckDB knows these files by numbers."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    remote_process = ReadyProcess(running.MODULE, passed_environment())
    monkeypatch.setattr(running, "ready_process", remote_process)
    with s3_server(tmp_path) as server:
        remote = open_deep_storage(server.location("deep"))
        paths = list(Segment.objects.filter(datasource=june).order_by("min_time").values_list("path", flat=True))
        for path in paths:
            remote.put(Path(settings.DEEP_STORAGE) / path, path)
        settings.DEEP_STORAGE = server.location("deep")
        query = "SELECT sum(n), max(name) FROM june WHERE __time >= '2025-06-02'"
        assert rows(clients["operator"], query) == [[14, "name-5"]]
        remote.delete(paths[0])
        assert rows(clients["operator"], query) == [[14, "name-5"]]
        assert paths[0] not in problem(clients["operator"], "SELECT sum(n) FROM june", 503)
    remote_process.stop()


def test_odd_statements_are_answered(clients: dict[str, Client], june: Datasource) -> None:
    operator = clients["operator"]
    assert rows(operator, " select 1, 1 ; ") == [[1, 1]]
    assert rows(operator, "VALUES ('ä', 'a\nb', '\"')") == [["ä", "a\nb", '"']]
    assert result(operator, "explain values (1)")["tables"] == []
    assert len(rows(operator, "FROM june")) == 6
    assert rows(operator, 'SELECT 1 AS "weird ""name"" ✓"') == [[1]]
    for form in ("csv", "arrow", "parquet"):
        assert b"".join(send(operator, "SELECT 1, 1, NULL", format=form).streaming_content)
    for odd in (
        "SELECT '\ud800'",
        "SELECT '\0'",
        "",
        "   ",
        ";",
        "SELECT 1 FROM",
        "(" * 1000,
        "SELECT " + "1+" * 5000 + "1",
    ):
        assert send(operator, odd).status_code == 400, odd[:20]


def test_odd_values_in_json(clients: dict[str, Client], june: Datasource) -> None:
    odd = (
        "SELECT 'NaN'::DOUBLE, '-inf'::DOUBLE, sum(n), DATE '2026-01-01', 'a'::BLOB, NULL, [1.5], {'a': true} FROM june"
    )
    assert rows(clients["operator"], odd) == [["NaN", "-Infinity", 15, "2026-01-01", "YQ==", None, [1.5], {"a": True}]]


def test_what_is_wrong_is_said_and_where(clients: dict[str, Client], june: Datasource) -> None:
    response = send(clients["operator"], "SELECT nme FROM june")
    assert response.status_code == 400
    assert 'Candidate bindings: "name"' in response.json()["detail"]
    assert [e["pointer"] for e in response.json()["errors"]] == ["/query"]
    assert len(problem(clients["operator"], "SELECT CAST(repeat('x', 1000000) AS INT)", 400)) < 2_100
    assert len(rows(clients["operator"], "SELECT repeat('x', 1000000)")[0][0]) == 1_000_000
    assert "Only SELECT" in problem(clients["operator"], "COPY june TO '/tmp/x'", 400)
    assert send(clients["operator"], "SELECT 1", format="xml").status_code == 400
    assert send(clients["operator"], "SELECT 1", query_id="a b").status_code == 400


def test_a_query_ends_when_its_time_is_over(clients: dict[str, Client], june: Datasource, settings: Any) -> None:
    """Row 32 of the security checklist."""
    settings.SQL_TIMEOUT = settings.SNAPSHOT_LEASE.__class__(seconds=1)
    assert "did not finish within 1 s" in problem(clients["operator"], FOREVER, 400)


def test_no_query_runs_longer_than_its_files_stay(settings: Any) -> None:
    """The deletion waits a lease after a segment becomes unused, so a query needs no lease of its own."""
    settings.SQL_TIMEOUT = 3 * settings.SNAPSHOT_LEASE
    assert limits.site_limits().seconds.amount == settings.SNAPSHOT_LEASE.total_seconds()


def test_a_query_that_needs_too_much_memory_harms_nobody(
    clients: dict[str, Client], june: Datasource, settings: Any
) -> None:
    """Row 32 of the security checklist."""
    settings.SQL_MEMORY_BYTES = 64 * 1024 * 1024
    assert "memory" in problem(clients["operator"], HUGE, 400)
    assert rows(clients["operator"], "SELECT 1") == [[1]]


def test_a_result_with_too_many_rows_says_so(
    clients: dict[str, Client], june: Datasource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_ROWS", 4)
    answer = result(clients["operator"], "SELECT n FROM june ORDER BY n")
    assert (answer["rows"], answer["truncated"]) == ([[0], [1], [2], [3]], True)
    response = send(clients["operator"], "SELECT n FROM june", format="csv")
    with pytest.raises(running.BrokenOff, match="more than 4 rows"):
        list(response.streaming_content)


def test_an_answer_that_nobody_reads_ends_its_process(clients: dict[str, Client], june: Datasource) -> None:
    response = send(clients["operator"], "SELECT a.range FROM range(1000000) a, june")
    assert len(processes()) == 1
    response.close()
    wait_for("the end of all queries", lambda: processes() == [])


def test_a_file_that_is_gone_is_no_fault_of_the_statement(
    clients: dict[str, Client], june: Datasource, settings: Any
) -> None:
    file = next(Path(settings.DEEP_STORAGE).rglob("*.parquet"))
    for content in (b"", b"PAR1", file.read_bytes()[:-100]):
        file.write_bytes(content)
        assert ".parquet" not in problem(clients["operator"], "SELECT sum(n) FROM june", 503)
    file.unlink()
    assert ".parquet" not in problem(clients["operator"], "SELECT sum(n) FROM june", 503)


def test_each_datasource_has_the_query_in_its_trail(clients: dict[str, Client], june: Datasource) -> None:
    query = "SELECT count(*) FROM june a, june b"
    rows(clients["operator"], query)
    entry = AuditEntry.objects.get(action="query")
    assert (entry.team, entry.target_id, entry.username) == (june.team, "june", "operator")
    assert entry.detail["statement"] == query


def test_a_query_is_cancelled(clients: dict[str, Client], june: Datasource, cast: Cast) -> None:
    def cancel() -> None:
        wait_for("the query", lambda: len(processes()) == 1)
        cancelling.cancel(cast.users["operator"], "mine")

    with ThreadPoolExecutor(1) as pool:
        cancelled = pool.submit(cancel)
        response = send(clients["operator"], FOREVER, query_id="mine")
        cancelled.result()
    assert (response.status_code, response.json()["detail"]) == (409, "The query was cancelled.")


def test_only_its_user_cancels_a_query(clients: dict[str, Client], june: Datasource, cast: Cast) -> None:
    cancelling.register(cast.users["operator"], "mine", 60)
    assert clients["owner"].delete(f"{ADDRESS}mine/").status_code == 404
    assert send(clients["operator"], "SELECT 1", query_id="mine").status_code == 409
    assert clients["operator"].delete(f"{ADDRESS}mine/").status_code == 204
    assert cancelling.is_cancelled(cast.users["operator"], "mine")
    cancelling.forget(cast.users["operator"], "mine")
    assert clients["operator"].delete(f"{ADDRESS}mine/").status_code == 404
