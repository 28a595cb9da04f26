"""The Iceberg catalog read by Spark 4.1, in an environment of its own, by the line of the datasource's page.

It starts Spark, as Iceberg's Java client reads the catalog's answers, manifests and Parquet files in its own way.
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
from controlplane.feed.manifest import open_snippets
from controlplane.teams.models import ApiToken
from ingestion.rows import JSON_TYPE, LIST_TYPE
from tests.support.desk import DAY_MS, batch_of
from tests.support.django_cast import Cast
from tests.support.iceberg_stream import Stream
from tests.support.spark_reader import environment, query_program

D = "headgate.alpha.d"
_LONGEST_S = 300.0


@pytest.fixture
def stream(
    transactional_db: None, tmp_path: Path, settings: Any, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> Stream:
    settings.DEEP_STORAGE = str(tmp_path / "deep")
    monkeypatch.setattr(tables, "SHORTEST", timedelta(0))
    return Stream(tmp_path, cast)


def ask(place: Path, live_server: Any, secret: str, *queries: str) -> list[Any]:
    """``place``: where Spark leaves what it needs besides."""
    line = open_snippets("alpha", "d", live_server.url)["Iceberg in Spark 4.1"]
    ran = subprocess.run(
        query_program(line),
        input="\n".join(queries),
        cwd=place,
        env=environment(secret),
        capture_output=True,
        text=True,
        timeout=_LONGEST_S,
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("[")]


def test_spark_reads_the_rows_of_the_files(live_server: Any, stream: Stream, cast: Cast, tmp_path: Path) -> None:
    _, secret = ApiToken.objects.create(user=cast.users["viewer"], name="spark")
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
    columns = "price, name, tags, document"
    expected = [[row[c] for c in columns.split(", ")] for row in stream.rows()]
    tables.load_metadata(stream.datasource)  # the first snapshot
    stream.publish(batch_of([2], n=pa.array(["two"]), Name=pa.array(["x"])))
    rows, sums, day, changed, earlier, files, empty, listed = ask(
        tmp_path,
        live_server,
        secret,
        f"SELECT {columns} FROM {D} WHERE name_ IS NULL",
        f"SELECT count(*), sum(n__long), count(name), count(tags) FROM {D}",
        f"SELECT n__long FROM {D} WHERE __time >= timestamp '2025-06-02 00:00:00.005Z'",
        f"SELECT n, n__long, name_ FROM {D} ORDER BY __time",
        f"SELECT n FROM {D} VERSION AS OF 1 ORDER BY __time",
        f"SELECT count(*) FROM {D}.files",
        "SELECT count(*), max(__time) FROM headgate.alpha.empty",
        "SHOW TABLES IN headgate.alpha",
    )
    assert sorted(rows, key=str) == sorted(expected, key=str)
    assert sums == [[4, 2**60 + 1, 2, 2]]
    assert day == [[2**60]]
    assert changed == [[None, 1, None], [None, None, None], ["two", None, "x"], [None, 2**60, None]]
    assert earlier == [[1], [None], [2**60]]
    assert files == [[3]]
    assert empty == [[0, None]], "a datasource without rows"
    assert ["alpha", "d", False] in listed
