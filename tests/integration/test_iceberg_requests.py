"""The Iceberg catalog over HTTP, in process: parameters and addresses that clients of other catalogs send."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.catalog import tables
from controlplane.datasources.models import MaskedColumn
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.segments.models import Snapshot
from controlplane.sources.models import Source
from controlplane.teams.models import User
from controlplane.teams.teams import rename_team
from tests.support.batch_tasks import root, source, streamed
from tests.support.django_cast import Cast

__all__ = ["root", "source"]  # fixtures
BASE = "/iceberg/v1"


@pytest.fixture
def table(source: Source, cast: Cast, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a table with three snapshots."""
    settings.DEEP_STORAGE = str(tmp_path / "deep")
    monkeypatch.setattr(tables, "SHORTEST", timedelta(0))
    make_receipt_partitions()
    source.datasource.team = cast.alpha
    source.datasource.save()
    for day in range(3):
        streamed(source, day, at=100 * day)
        tables.load_metadata(source.datasource)
    return f"{BASE}/namespaces/alpha/tables/{source.datasource.name}"


def metadata_of(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200, answer.content
    metadata: dict[str, Any] = answer.json()["metadata"]
    return metadata


def test_a_client_may_ask_for_the_current_snapshot_alone(table: str, viewer: Client) -> None:
    every = metadata_of(viewer.get(table, {"snapshots": "all"}))
    assert every == metadata_of(viewer.get(table))
    assert [s["snapshot-id"] for s in every["snapshots"]] == [1, 2, 3]
    current = metadata_of(viewer.get(table, {"snapshots": "refs"}))
    assert current["snapshots"] == every["snapshots"][-1:]
    assert (current["refs"], current["current-snapshot-id"]) == (every["refs"], 3)
    assert [entry["snapshot-id"] for entry in current["snapshot-log"]] == [3]
    refused = viewer.get(table, {"snapshots": "none"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (400, "BadRequestException")


def test_a_table_without_changes_is_not_sent_again(table: str, source: Source, clients: dict[str, Client]) -> None:
    """But its leases are renewed, and rights are checked: an answer without a body is a load too."""
    viewer = clients["viewer"]
    tag = viewer.get(table)["ETag"]
    assert viewer.get(table, {"snapshots": "refs"})["ETag"] != tag
    Snapshot.objects.update(leased_until=timezone.now())
    again = viewer.get(table, headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", tag)
    assert Snapshot.objects.order_by("leased_until")[0].leased_until > timezone.now() + timedelta(minutes=50)
    streamed(source, 5, at=900)
    changed = viewer.get(table, headers={"If-None-Match": tag})
    assert (metadata_of(changed)["current-snapshot-id"], changed["ETag"] != tag) == (4, True)
    MaskedColumn.objects.create(datasource=source.datasource, column="item", role="operator")
    assert viewer.get(table, headers={"If-None-Match": changed["ETag"]}).status_code == 403
    assert clients["outsider"].get(table, headers={"If-None-Match": changed["ETag"]}).status_code == 404


def test_a_renamed_team_is_another_namespace_of_the_same_table(
    table: str, cast: Cast, root: User, viewer: Client
) -> None:
    before = metadata_of(viewer.get(table))
    rename_team(user=root, team=cast.alpha, name="gamma")
    assert viewer.get(table).json()["error"]["type"] == "NoSuchTableException"
    assert viewer.get(f"{BASE}/namespaces").json()["namespaces"] == [["gamma"]]
    assert metadata_of(viewer.get(table.replace("alpha", "gamma"))) == before


@pytest.mark.parametrize(
    ("address", "status", "kind"),
    [
        ("config?warehouse=anything", 200, ""),
        ("namespaces?pageToken=&pageSize=1", 200, ""),
        ("namespaces/", 404, "NoSuchEndpointException"),
        ("namespaces/system/tables", 404, "NoSuchNamespaceException"),
        ("namespaces/alpha%2Fbeta", 404, "NoSuchEndpointException"),
        ("namespaces/alpha.beta/tables", 404, "NoSuchNamespaceException"),
        ("namespaces/%C3%A9/tables", 404, "NoSuchNamespaceException"),
        ("namespaces/%00", 404, "NoSuchNamespaceException"),
        ("namespaces/alpha/tables/%2Fflights", 404, "NoSuchEndpointException"),
        ("namespaces/alpha/tables/FLIGHTS", 404, "NoSuchTableException"),
        ("namespaces/alpha/tables/flights.files", 404, "NoSuchTableException"),
        ("namespaces/alpha%1Fflights/tables/snapshots", 404, "NoSuchTableException"),
        ("namespaces/alpha/views/flights", 404, "NoSuchEndpointException"),
        ("namespaces/alpha/tables/flights/credentials", 404, "NoSuchEndpointException"),
        ("alpha/namespaces", 404, "NoSuchEndpointException"),
    ],
)
def test_addresses_of_other_catalogs(viewer: Client, address: str, status: int, kind: str) -> None:
    answer = viewer.get(f"{BASE}/{address}")
    assert answer.status_code == status
    assert answer.json().get("error", {}).get("type", "") == kind


@pytest.mark.parametrize("address", ["namespaces/alpha/views/flights", "namespaces/beta", "namespaces/alpha/tables/no"])
def test_what_is_not_there_has_an_answer_to_head(viewer: Client, address: str) -> None:
    answer = viewer.head(f"{BASE}/{address}")
    assert (answer.status_code, answer.content) == (404, b"")
