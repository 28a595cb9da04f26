"""The Iceberg catalog's tables of unusual datasources: overwritten, of all time, and given to another team."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fastavro
import pytest
from django.test import Client

from controlplane.catalog import tables
from controlplane.common.errors import NotFound
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.segments.models import Segment
from controlplane.sources.models import Source
from controlplane.teams.models import User
from controlplane.transfers.services import transfer_datasource
from ingestion.specs.schema.granularity import MAX_TIME, MIN_TIME
from tests.support.batch_tasks import a_task, file, published, root, source, streamed
from tests.support.django_cast import Cast
from tests.support.publishes import request, segment, send, start

__all__ = ["root", "source"]  # fixtures


@pytest.fixture(autouse=True)
def deep(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.DEEP_STORAGE = str(tmp_path / "deep")
    monkeypatch.setattr(tables, "SHORTEST", timedelta(0))
    return tmp_path / "deep"


def avro(address: str) -> list[Any]:
    with Path(address.removeprefix("file://")).open("rb") as file:
        return list(fastavro.reader(file))


def manifests_of(snapshot: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = avro(snapshot["manifest-list"])
    return found


def files_of(deep: Path, snapshot: dict[str, Any]) -> list[str]:
    entries = [entry for manifest in manifests_of(snapshot) for entry in avro(manifest["manifest_path"])]
    return sorted(entry["data_file"]["file_path"].removeprefix(f"file://{deep}/") for entry in entries)


def in_use(**which: Any) -> list[str]:
    return sorted(Segment.objects.filter(used=True, **which).values_list("path", flat=True))


def test_an_overwritten_interval_has_its_new_version_alone(source: Source, root: User, deep: Path) -> None:
    """And the snapshot before has the old one: a batch task that fails changes nothing for readers."""
    make_receipt_partitions()
    streamed(source, 0, 1, 1, 2)
    before = in_use()
    tables.load_metadata(source.datasource)
    task = a_task(root)
    published(task, file(1, 7), file(1, 5), file(3, 2))
    streamed(source, 1, at=100)  # goes on in the new version
    first, second = tables.load_metadata(source.datasource)["snapshots"]
    assert files_of(deep, first) == before
    assert files_of(deep, second) == in_use()
    assert len(in_use()) == 6 and not set(in_use(interval_start__day=2)) & set(before)
    assert second["summary"]["total-records"] == str(10 + 7 + 5 + 10 + 10 + 2)


def test_an_interval_of_all_time_has_exact_bounds(source: Source, deep: Path) -> None:
    make_receipt_partitions()
    last = datetime(9999, 12, 30, 23, 59, 59, 999_000, tzinfo=UTC)
    whole = {"interval_start": MIN_TIME, "interval_end": MAX_TIME, "min_time": MIN_TIME, "max_time": last}
    send(request(start(source), segments=[segment({0: [(0, 5)]}).model_copy(update=whole)]))
    [snapshot] = tables.load_metadata(source.datasource)["snapshots"]
    [manifest] = manifests_of(snapshot)
    assert (manifest["partition_spec_id"], manifest["partitions"]) == (0, [])
    [entry] = avro(manifest["manifest_path"])
    bounds = [entry["data_file"][f"{side}_bounds"][0]["value"] for side in ("lower", "upper")]
    microsecond, epoch = timedelta(microseconds=1), datetime(1970, 1, 1, tzinfo=UTC)
    assert [struct.unpack("<q", b)[0] for b in bounds] == [(t - epoch) // microsecond for t in (MIN_TIME, last)]


def test_a_transferred_datasource_is_the_same_table_in_another_namespace(
    cast: Cast, clients: dict[str, Client]
) -> None:
    address = "/iceberg/v1/namespaces/{}/tables/flights"
    before = clients["viewer"].get(address.format("alpha")).json()["metadata"]["table-uuid"]
    admin = User.objects.create(username="admin-of-all", is_superuser=True)
    transfer_datasource(user=admin, datasource=cast.datasource, team_name="beta")
    assert clients["viewer"].get(address.format("alpha")).json()["error"]["type"] == "NoSuchTableException"
    moved = clients["outsider"].get(address.format("beta"))
    assert (moved.status_code, moved.json()["metadata"]["table-uuid"]) == (200, before)
    assert clients["outsider"].get(address.format("alpha")).status_code == 404


@pytest.mark.parametrize("name", ["FLIGHTS", "flights ", "", "..", "a" * 300, "flights\0", "é"])
def test_names_are_taken_exactly(cast: Cast, name: str) -> None:
    with pytest.raises(NotFound):
        tables.find_table(cast.users["viewer"], cast.alpha, name)
    with pytest.raises(NotFound):
        tables.find_namespace(cast.users["viewer"], name)
