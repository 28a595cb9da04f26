"""The Iceberg catalog read by PyIceberg over HTTP, beside publishes, merges and deletions.

What is read is compared with the Parquet files themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.db import connection, transaction
from django.utils import timezone
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError, OAuthError, UnauthorizedError
from pyiceberg.table import Table

from controlplane.catalog import tables
from controlplane.datasources.services import datasource_for_ingestion
from controlplane.retention.datasource_deletion import delete_datasource
from controlplane.segments import killing, marking
from controlplane.segments.marking import SegmentSelection
from controlplane.segments.models import Snapshot
from controlplane.teams.models import ApiToken
from controlplane.teams.permissions import Action
from controlplane.teams.roles import Scope
from controlplane.teams.service_accounts import create_account, create_account_token
from ingestion.rows import JSON_TYPE, LIST_TYPE
from tests.support.desk import DAY_MS, batch_of
from tests.support.django_cast import Cast
from tests.support.iceberg_stream import DAY, JUNE, Stream


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A snapshot for each load; nothing between the client and the server; JSON as PyIceberg reads it."""
    monkeypatch.setattr(tables, "SHORTEST", timedelta(0))
    monkeypatch.setenv("NO_PROXY", "*")
    pa.unregister_extension_type("arrow.json")
    yield
    pa.register_extension_type(JSON_TYPE)


@pytest.fixture
def stream(transactional_db: None, tmp_path: Path, settings: Any, cast: Cast) -> Stream:
    settings.DEEP_STORAGE = str(tmp_path / "deep")
    return Stream(tmp_path, cast)


Connect = Callable[..., Catalog]


@pytest.fixture
def connect(live_server: Any, cast: Cast) -> Connect:
    _, secret = ApiToken.objects.create(user=cast.users["viewer"], name="reader")

    def connect(**properties: str) -> Catalog:
        return load_catalog(
            "headgate", type="rest", uri=f"{live_server.url}/iceberg", **(properties or {"token": secret})
        )

    return connect


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(sorted(row.items())))


def read(table: Table, **scan: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.scan(**scan).to_arrow().to_pylist()
    return rows


def plain_batch(times: list[int], first: int = 0) -> pa.Table:
    return batch_of(times, n=pa.array(range(first, first + len(times))))


def test_rows_are_those_of_the_files(stream: Stream, connect: Connect) -> None:
    documents = pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(['{"a":{"b":[1,2]}}', None, '{"a":null}']))
    batch = batch_of(
        [0, 1, DAY_MS + 5],
        n=pa.array([1, None, 2**60]),
        price=pa.array([0.5, None, -1.5]),
        name=pa.array(["é", None, ""]),
        tags=pa.array([["a", None], None, []], LIST_TYPE),
        document=documents,
    )
    stream.publish(batch)
    stream.publish(batch)
    catalog = connect()
    assert catalog.list_namespaces() == [("alpha",)]
    assert ("alpha", "d") in catalog.list_tables("alpha")
    assert catalog.table_exists("alpha.d")
    table = catalog.load_table("alpha.d")
    rows = read(table)
    assert in_order(rows) == in_order(stream.rows())
    assert (len(rows), sum(r["n"] or 0 for r in rows), sum(r["tags"] is None for r in rows)) == (6, 2**61 + 2, 2)
    assert table.scan().count() == 6
    second_day = read(table, row_filter="__time >= '2025-06-02T00:00:00+00:00'", selected_fields=("n", "document"))
    assert second_day == [{"n": 2**60, "document": '{"a":null}'}] * 2
    assert read(table, row_filter="name == 'é'")[0]["document"] == '{"a":{"b":[1,2]}}'


def test_a_table_that_was_loaded_stays_readable(stream: Stream, connect: Connect, settings: Any) -> None:
    """Merged, marked unused and due for deletion: the reader that loaded it before reads every row."""
    settings.KILL_REPLACED_AFTER = settings.KILL_BUFFER_PERIOD = timedelta(0)
    stream.publish(plain_batch([0, 1]))
    stream.publish(plain_batch([2, DAY_MS], first=2))
    before = connect().load_table("alpha.d")
    expected = in_order(stream.rows())
    stream.merge(plain_batch([0, 1, 2]))
    merged = connect().load_table("alpha.d")
    assert in_order(read(merged)) == expected
    marking.mark_unused(stream.datasource, SegmentSelection(), by="x", what="y")
    settings.SNAPSHOT_LEASE = timedelta(0)  # from now on
    assert killing.run(seconds=60).segments == 0
    assert in_order(read(before)) == in_order(read(merged)) == expected
    Snapshot.objects.update(leased_until=timezone.now())
    assert killing.run(seconds=60).segments == 4
    assert read(connect().load_table("alpha.d")) == []


def test_earlier_snapshots_are_read_by_id(stream: Stream, connect: Connect) -> None:
    stream.publish(plain_batch([0]))
    connect().load_table("alpha.d")
    stream.publish(batch_of([1], n=pa.array([7]), extra=pa.array(["x"])))
    table = connect().load_table("alpha.d")
    first, second = table.metadata.snapshots
    assert [r["n"] for r in read(table, snapshot_id=first.snapshot_id)] == [0]
    assert sorted((r["n"], r["extra"]) for r in read(table, snapshot_id=second.snapshot_id)) == [(0, None), (7, "x")]


def test_a_column_changes_its_type(stream: Stream, connect: Connect) -> None:
    stream.publish(plain_batch([0]))
    before = connect().load_table("alpha.d")
    stream.publish(batch_of([1], n=pa.array(["seven"])))
    rows = in_order([{k: v for k, v in r.items() if k != "__time"} for r in read(connect().load_table("alpha.d"))])
    assert rows == in_order([{"n": None, "n__long": 0}, {"n": "seven", "n__long": None}])
    assert [r["n"] for r in read(before)] == [0]


def test_each_load_has_whole_publishes(stream: Stream, connect: Connect) -> None:
    """While a stream publishes rows of two days at once, a reader has as many of one day as of the other."""
    publishes = 12

    def ingest() -> None:
        try:
            for number in range(publishes):
                stream.publish(plain_batch([number, DAY_MS + number], first=number))
        finally:
            connection.close()

    stream.publish(plain_batch([500, DAY_MS + 500]))
    catalog, seen = connect(), []
    with ThreadPoolExecutor(1) as pool:
        ingestion = pool.submit(ingest)
        while not ingestion.done():
            seen.append(days_of(catalog))
        ingestion.result()
    seen.append(days_of(catalog))
    assert all(first == second for first, second in seen), seen
    assert seen[-1] == (publishes + 1, publishes + 1)
    assert seen == sorted(seen)


def days_of(catalog: Catalog) -> tuple[int, int]:
    times = [row["__time"] for row in read(catalog.load_table("alpha.d"))]
    return sum(t < JUNE + DAY for t in times), sum(t >= JUNE + DAY for t in times)


def test_a_service_account_reads_by_its_credentials(stream: Stream, connect: Connect, cast: Cast) -> None:
    stream.publish(plain_batch([0]))
    owner = cast.users["owner"]
    create_account(user=owner, team=cast.alpha, name="etl")
    _, secret = create_account_token(user=owner, team=cast.alpha, account="etl", name="t", scope=Scope.READ)
    catalog = connect(credential=f"etl@alpha:{secret}")
    loaded = catalog.load_table("alpha.d")
    assert [r["n"] for r in read(loaded)] == [0]
    for name in ("alpha.nothing", "nothing.d", "alpha.d.files"):
        with pytest.raises(NoSuchTableError):
            catalog.load_table(name)
    with pytest.raises(UnauthorizedError):
        connect(token="a" * 64)
    ApiToken.objects.filter(user__username="etl@alpha").delete()
    with pytest.raises(OAuthError):  # it asks for a new token first
        catalog.load_table("alpha.d")
    assert [r["n"] for r in read(loaded)] == [0], "a scan that goes on needs no token"


def test_all_who_load_a_new_table_at_once_get_it(stream: Stream, connect: Connect) -> None:
    """One of them builds the first snapshot. The others wait for it, as clients do not all try again."""
    stream.publish(plain_batch([0, 1]))
    catalogs = [connect() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        loaded = list(pool.map(lambda catalog: catalog.load_table("alpha.d"), catalogs))
    assert [table.metadata.current_snapshot_id for table in loaded] == [1] * 4


def test_a_table_without_rows_is_read(stream: Stream, connect: Connect) -> None:
    empty = connect().load_table(("alpha", stream.datasource.name)).scan().to_arrow()
    assert (empty.num_rows, empty.schema.names) == (0, ["__time"])


def test_a_datasource_that_is_made_again_is_read_alone(stream: Stream, connect: Connect, cast: Cast) -> None:
    stream.publish(plain_batch([0, 1]))
    before = connect().load_table("alpha.d")
    owner = cast.users["owner"]
    delete_datasource(user=owner, datasource=stream.datasource, name="d")
    with pytest.raises(NoSuchTableError):
        before.refresh()
    with transaction.atomic():
        datasource_for_ingestion(user=owner, name="d", team_name="alpha", action=Action.ADMINISTER)
    again = connect().load_table("alpha.d")
    assert (read(again), len(read(before))) == ([], 2)
    assert again.metadata.table_uuid != before.metadata.table_uuid
