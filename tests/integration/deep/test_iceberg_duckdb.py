"""The Iceberg catalog read by DuckDB, in an environment of its own, over HTTP: what PyIceberg does not show.

DuckDB has its own reader of manifests, of Parquet by field ids, and of a catalog's answers.
"""

from __future__ import annotations

import json
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from controlplane.catalog import tables
from controlplane.datasources.models import Datasource
from controlplane.teams.models import ApiToken
from ingestion.rows import JSON_TYPE, LIST_TYPE
from tests.support.desk import DAY_MS, batch_of
from tests.support.django_cast import Cast
from tests.support.duckdb_reader import environment, query_program
from tests.support.iceberg_stream import Stream

D = "headgate.alpha.d"


@pytest.fixture
def stream(
    transactional_db: None, tmp_path: Path, settings: Any, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> Stream:
    settings.DEEP_STORAGE = str(tmp_path / "deep")
    monkeypatch.setattr(tables, "SHORTEST", timedelta(0))
    return Stream(tmp_path, cast)


def ask(live_server: Any, secret: str, *queries: str) -> list[Any]:
    ran = subprocess.run(
        query_program(f"{live_server.url}/iceberg"),
        input="\n".join(queries),
        env=environment(secret),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_duckdb_reads_the_rows_of_the_files(live_server: Any, stream: Stream, cast: Cast) -> None:
    _, secret = ApiToken.objects.create(user=cast.users["viewer"], name="duckdb")
    Datasource.objects.create(name="empty", team=cast.alpha)
    documents = pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(['{"a":{"b":[1,2]}}', None, '{"a":null}']))
    stream.publish(
        batch_of(
            [0, 1, DAY_MS + 5],
            n=pa.array([1, None, 2**60]),
            price=pa.array([0.5, None, -1.5]),
            name=pa.array(["é", None, ""]),
            tags=pa.array([["a", None], None, []], LIST_TYPE),
            document=documents,
        )
    )
    columns = "n, price, name, tags, document"
    expected = [[row[c] for c in columns.split(", ")] for row in stream.rows()]
    rows, sums, day = ask(
        live_server,
        secret,
        f"SELECT {columns} FROM {D} ORDER BY __time",
        f"SELECT count(*), sum(n), count(name), count(tags) FROM {D}",
        f"SELECT n, __time = TIMESTAMPTZ '2025-06-02 00:00:00.005+00' FROM {D} WHERE __time >= '2025-06-02T00:00:00Z'",
    )
    assert sorted(rows, key=str) == sorted(expected, key=str)
    assert sums == [[3, 2**60 + 1, 2, 2]]
    assert day == [[2**60, True]]
    stream.publish(batch_of([2], n=pa.array(["two"])))
    changed, earlier, empty = ask(
        live_server,
        secret,
        f"SELECT n, n__long FROM {D} ORDER BY __time",
        f"SELECT n FROM {D} AT (VERSION => 1) ORDER BY __time",
        "SELECT count(*), max(__time) FROM headgate.alpha.empty",
    )
    assert changed == [[None, 1], [None, None], ["two", None], [None, 2**60]]
    assert earlier == [[1], [None], [2**60]]
    assert empty == [[0, None]], "a datasource without rows"
    stream.publish(batch_of([3], Name=pa.array(["x"])))
    [named] = ask(live_server, secret, f"SELECT name, name_ FROM {D} WHERE __time = '2025-06-01T00:00:00.003Z'")
    assert named == [[None, "x"]], "names that differ only by case"
