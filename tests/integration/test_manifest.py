"""A datasource's files for others: full addresses as of one moment, and lines that open them, run as they are given."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from controlplane.datasources.models import Datasource
from controlplane.feed.manifest import SPARK_RUNTIME, open_snippets, root_address, trino_properties
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.segments.columns import assign_column_ids
from controlplane.segments.models import Segment
from controlplane.teams.models import ApiToken
from ingestion.specs.messages.column_ids import ColumnsRequest
from ingestion.specs.messages.protocol import SegmentFile
from tests.support.desk import DAY_MS, Desk, batch_of, schema_of
from tests.support.django_cast import STARTED, Cast, make_segment
from tests.support.publishes import make_source, request, send, start
from tests.support.sql import register

ONE = "/api/v1/datasources/flights/manifest/"


def names(results: list[dict[str, Any]]) -> list[str]:
    return [r["id"] for r in results]


def test_pages_keep_to_one_moment(clients: dict[str, Client], cast: Cast) -> None:
    everything = [str(s.pk) for s in reversed(cast.segments)]
    first = clients["viewer"].get(ONE, {"limit": 2}).json()
    late = make_segment(cast.datasource, "t", STARTED, 0, 5)
    Segment.objects.filter(pk=late.pk).update(created_at=timezone.now(), interval_start=cast.segments[0].interval_start)
    second = clients["viewer"].get(first["next"]).json()
    assert names(first["results"]) + names(second["results"]) == everything
    assert (second["as_of"], second["next"]) == (first["as_of"], None)
    again = clients["viewer"].get(ONE, {"as_of": timezone.now().isoformat()}).json()
    assert len(again["results"]) == len(everything) + 1


@pytest.mark.django_db(transaction=True)
def test_what_was_published_is_there_at_once_whatever_else_is_open(clients: dict[str, Client]) -> None:
    """Whoever counts after a task's success counts all of it; a database's dump, or a shell, holds nothing back."""
    make_receipt_partitions()
    source = make_source("opened")
    Datasource.objects.filter(name="opened").update(team=Datasource.objects.get(name="flights").team)
    epochs = [start(source, number) for number in range(2)]
    with closing(connection.copy()) as other, other.cursor() as beside:
        beside.execute("BEGIN; SELECT count(*) FROM segments_segment; UPDATE teams_team SET name = name")
        send(request(epochs[0], {0: [(0, 10)]}))
        assert [one["rows"] for one in read(clients)] == [10]
        beside.execute("ROLLBACK; BEGIN; SELECT 1 FROM publishing_indexerfence WHERE number = 1 FOR UPDATE")
        send(request(epochs[0], {0: [(10, 15)]}))
        assert [one["rows"] for one in read(clients)] == [10], "a publish has begun that may be of an earlier time"
        beside.execute("COMMIT")
        assert sorted(one["rows"] for one in read(clients)) == [5, 10]


def read(clients: dict[str, Client]) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = clients["viewer"].get(ONE.replace("flights", "opened")).json()["results"]
    return results


def test_each_file_is_told_with_its_address_and_columns(
    clients: dict[str, Client], cast: Cast, settings: Any, tmp_path: Path
) -> None:
    settings.DEEP_STORAGE = str(tmp_path)
    segment = cast.segments[-1]
    first = clients["viewer"].get(ONE, {"limit": 1}).json()["results"][0]
    assert first["address"] == f"file://{tmp_path}/{segment.path}"
    assert (first["rows"], first["size_bytes"]) == (segment.rows, segment.size_bytes)
    assert first["columns"] == segment.columns
    lines = b"".join(_streamed(clients["viewer"].get(f"{ONE}addresses/")))
    assert lines.decode().splitlines() == [f"file://{tmp_path}/{s.path}" for s in reversed(cast.segments)]


def _streamed(answer: Any) -> Iterator[bytes]:
    yield from answer


@pytest.mark.parametrize(
    ("location", "address"),
    [
        ("s3://bucket/deep/?endpoint_override=http://127.0.0.1:9&region=us-east-1", "s3://bucket/deep"),
        ("S3://bucket", "s3://bucket"),
        ("file:///var/a%20b/", "file:///var/a b"),
        ("abfs://container@account.example/deep", "abfs://container@account.example/deep"),
    ],
)
def test_an_address_has_nothing_that_only_our_clients_need(settings: Any, location: str, address: str) -> None:
    settings.DEEP_STORAGE = location
    assert root_address() == address


@pytest.mark.parametrize(
    "query", [{"as_of": "2100-01-01T00:00:00Z"}, {"as_of": "x"}, {"from": "2020-01-02", "to": "2020-01-01"}]
)
def test_what_makes_no_sense_is_refused(clients: dict[str, Client], query: dict[str, str]) -> None:
    assert clients["viewer"].get(ONE, query).status_code == 400


@pytest.fixture
def stored(transactional_db: None, tmp_path: Path, settings: Any, cast: Cast) -> list[SegmentFile]:
    """Two days, the second with a column that the first has not."""
    settings.DEEP_STORAGE = str(tmp_path / "deep")
    first, second = Desk(tmp_path, schema_of()), Desk(tmp_path, schema_of())
    first.add(batch_of([0, 1], n=pa.array([1, 2])))
    second.add(batch_of([DAY_MS], n=pa.array([3]), name=pa.array(["three"])))
    files = [*first.write(), *second.write()]
    for desk in (first, second):
        desk.index.close()
    datasource = Datasource.objects.create(name="opened", team=cast.alpha)
    assign_column_ids(datasource.pk, ColumnsRequest(columns=files[-1].columns))
    register(datasource, files)
    Segment.objects.filter(datasource=datasource).update(created_at=timezone.now() - timedelta(minutes=1))
    return files


@pytest.mark.parametrize(
    ("location", "storage"), [("/var/deep", []), ("s3://bucket/deep", ["fs.native-s3.enabled=true"])]
)
def test_the_properties_for_trino_name_the_catalog(settings: Any, location: str, storage: list[str]) -> None:
    settings.DEEP_STORAGE = location
    lines = trino_properties("https://headgate.example").splitlines()
    assert lines[0] == "connector.name=iceberg"
    assert "iceberg.rest-catalog.uri=https://headgate.example/iceberg" in lines
    assert [line for line in lines if line.startswith("fs.")] == storage


def test_the_line_for_spark_is_python_and_names_the_runtime() -> None:
    line = open_snippets("my-team", "a.b", "https://headgate.example")["Iceberg in Spark 4.1"]
    compile(line, "line", "exec")
    assert f'.config("spark.jars.packages", "{SPARK_RUNTIME}")' in line, "a test in the deep lane replaces this"
    assert "headgate.`my-team`.`a.b`" in line


COUNTS = {
    "PyIceberg": "print((sum(rows['n'].to_pylist()), len(rows['name'].drop_null()), len(rows)))",
    "DuckDB": "print(rows.aggregate('sum(n), count(name), count(*)').fetchall()[0])",
    "pandas": "print((int(rows.n.sum()), int(rows.name.count()), len(rows)))",
}


@pytest.mark.parametrize("tool", COUNTS)
def test_the_lines_open_what_is_stored(live_server: Any, stored: list[SegmentFile], cast: Cast, tool: str) -> None:
    _, secret = ApiToken.objects.create(user=cast.users["viewer"], name="lines")
    line = open_snippets("alpha", "opened", live_server.url)[tool]
    ran = subprocess.run(
        [sys.executable, "-c", f"{line}; {COUNTS[tool]}"],
        env={"HEADGATE_TOKEN": secret, "NO_PROXY": "*"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.stdout.strip() == "(6, 1, 3)", ran.stderr
