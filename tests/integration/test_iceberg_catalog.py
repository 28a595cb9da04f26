"""The Iceberg catalog over HTTP, in process: what a snapshot holds, how it is built, and how long its files stay."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import fastavro
import pytest
from django.test import Client
from django.utils import timezone

from controlplane.catalog import building, tables
from controlplane.catalog.listing import expire
from controlplane.common.errors import Unavailable
from controlplane.datasources.models import Datasource
from controlplane.datasources.services import datasource_for_ingestion
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.retention.datasource_deletion import delete_datasource
from controlplane.segments import marking
from controlplane.segments.killing import begin_deletion
from controlplane.segments.marking import SegmentSelection
from controlplane.segments.models import Interval, Manifest, Segment, Snapshot
from controlplane.segments.orphans import clean_up
from controlplane.tasks import kills, services
from controlplane.tasks.models import Task
from controlplane.teams.permissions import Action
from ingestion.specs.messages.iceberg import ManifestList
from tests.support.asked_here import sweep_here
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed
from tests.support.publishes import DAY, make_source, request, segment, send, start

BASE = "/iceberg/v1"
TABLES = f"{BASE}/namespaces/alpha/tables"
ONE = f"{TABLES}/opened"
HOUR = timedelta(hours=1)
Publish = Callable[..., None]


@pytest.fixture
def deep(settings: Any, tmp_path: Path) -> Path:
    settings.DEEP_STORAGE = str(tmp_path / "deep")
    settings.SNAPSHOT_LEASE, settings.KILL_BUFFER_PERIOD = HOUR, 30 * 24 * HOUR
    settings.KILL_REPLACED_AFTER = 7 * 24 * HOUR
    return tmp_path / "deep"


@pytest.fixture
def publish(cast: Cast, deep: Path, monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Publishes a segment of 5 rows for each given day of June, in one transaction. Files are not needed here."""
    monkeypatch.setattr(tables, "SHORTEST", timedelta(0))
    make_receipt_partitions()
    source = make_source("opened")
    Datasource.objects.filter(name="opened").update(team=cast.alpha)
    epoch = start(source)
    offsets = iter(range(0, 10_000, 5))

    def publish(*days: int) -> None:
        segments = [segment({0: [(at := next(offsets), at + 5)]}, DAY + timedelta(days=day)) for day in days]
        send(request(epoch, segments=segments))

    return publish


def load(clients: dict[str, Client], role: str = "viewer") -> dict[str, Any]:
    answer = clients[role].get(ONE)
    assert answer.status_code == 200, answer.content
    metadata: dict[str, Any] = answer.json()["metadata"]
    return metadata


def listed(deep: Path, snapshot: dict[str, Any]) -> dict[str, list[str]]:
    """The segments of each manifest of a snapshot, by paths below deep storage."""
    found = {}
    for manifest in read_avro(deep, snapshot["manifest-list"]):
        entries = read_avro(deep, manifest["manifest_path"])
        assert len(entries) == manifest["existing_files_count"]
        assert (deep / below(deep, manifest["manifest_path"])).stat().st_size == manifest["manifest_length"]
        found[manifest["manifest_path"]] = [below(deep, e["data_file"]["file_path"]) for e in entries]
    return found


def below(deep: Path, address: str) -> str:
    return address.removeprefix(f"file://{deep}/")


def read_avro(deep: Path, address: str) -> list[Any]:
    with (deep / below(deep, address)).open("rb") as file:
        return list(fastavro.reader(file))


def paths(**which: Any) -> list[str]:
    return sorted(Segment.objects.filter(datasource__name="opened", **which).values_list("path", flat=True))


def all_of(manifests: dict[str, list[str]]) -> list[str]:
    return sorted(path for files in manifests.values() for path in files)


def test_a_snapshot_has_what_is_used_and_keeps_manifests(
    clients: dict[str, Client], publish: Publish, deep: Path
) -> None:
    publish(0, 1)
    first = load(clients)
    assert [s["snapshot-id"] for s in first["snapshots"]] == [first["current-snapshot-id"]] == [1]
    before = listed(deep, first["snapshots"][0])
    assert (all_of(before), len(before)) == (paths(), 2)
    assert first["snapshots"][0]["summary"]["total-records"] == "10"
    published = Segment.objects.filter(datasource__name="opened").latest("created_at").created_at
    assert first["snapshots"][0]["timestamp-ms"] == int(published.timestamp() * 1000), "not when somebody asked"
    assert load(clients)["current-snapshot-id"] == 1, "nothing has changed"
    publish(1)
    second = load(clients)
    after = listed(deep, second["snapshots"][-1])
    assert (all_of(after), len(after), len(before.keys() & after.keys())) == (paths(), 2, 1)
    assert listed(deep, second["snapshots"][0]) == before
    assert second["table-uuid"] == first["table-uuid"]


def test_snapshots_keep_their_distance(
    clients: dict[str, Client], publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(0)
    load(clients)
    monkeypatch.setattr(tables, "SHORTEST", HOUR)
    publish(0)
    assert load(clients)["current-snapshot-id"] == 1


def test_an_interval_without_segments_leaves_and_comes_back(
    clients: dict[str, Client], publish: Publish, deep: Path
) -> None:
    publish(0)
    load(clients)
    chosen = SegmentSelection()
    marking.mark_unused(Datasource.objects.get(name="opened"), chosen, by="x", what="y")
    empty = load(clients)["snapshots"][-1]
    assert (listed(deep, empty), empty["summary"]["total-records"]) == ({}, "0")
    publish(0)
    assert all_of(listed(deep, load(clients)["snapshots"][-1])) == paths(used=True)


def test_a_datasource_without_segments_is_an_empty_table(clients: dict[str, Client], cast: Cast) -> None:
    Datasource.objects.create(name="opened", team=cast.alpha)
    metadata = load(clients)
    assert (metadata["snapshots"], "current-snapshot-id" in metadata) == ([], False)
    assert [f["name"] for f in metadata["schemas"][0]["fields"]] == ["__time"]


def test_no_file_of_a_leased_snapshot_is_deleted(clients: dict[str, Client], publish: Publish) -> None:
    """Whatever is due: the lease of a reader counts."""
    publish(0)
    load(clients)
    datasource = Datasource.objects.get(name="opened")
    marking.mark_unused(datasource, SegmentSelection(), by="x", what="y")
    month = timezone.now() + 31 * 24 * HOUR
    Snapshot.objects.update(leased_until=month + HOUR)
    assert begin_deletion(month) == []
    Snapshot.objects.update(leased_until=timezone.now() - HOUR)
    assert [path for _, path in begin_deletion(month)] == paths()


def test_the_time_of_deletion_is_not_before_the_last_lease_ends(
    clients: dict[str, Client], publish: Publish, cast: Cast, settings: Any
) -> None:
    """In REST, on pages, and in the message of a kill task."""
    settings.SNAPSHOT_LEASE = timedelta(0)
    publish(0)
    load(clients)
    until = timezone.now().replace(microsecond=0) + 2 * HOUR
    Snapshot.objects.update(leased_until=until)
    marking.mark_unused(Datasource.objects.get(name="opened"), SegmentSelection(), by="x", what="y")
    document = {"type": "kill", "dataSource": "opened", "interval": "2025-06-01/2025-06-02"}
    task = services.submit_task(user=cast.users["owner"], document=document)
    assert kills.run(task.pk)
    assert Task.objects.get(pk=task.pk).message == (
        "0 unused segments were deleted. Headgate deletes the files of 1 more later, when no reader can use them, "
        f"after {until:%Y-%m-%d %H:%M:%S} UTC."
    )
    address = "/api/v1/datasources/opened"
    [unused] = clients["viewer"].get(f"{address}/segments/unused/").json()["results"]
    one = clients["viewer"].get(f"{address}/segments/{unused['id']}/").json()["segment"]
    assert unused["goes_at"] == one["goes_at"] == f"{until:%Y-%m-%dT%H:%M:%SZ}"
    page = parsed(browsing_as(cast, "viewer").get("/datasources/opened/retention/")).one("main").text
    assert f"{until:%Y-%m-%d %H:%M:%S}" in page
    assert "The next run deletes" not in page


def test_what_is_given_up_is_not_given_to_readers(clients: dict[str, Client], publish: Publish) -> None:
    """So that readers who come again and again do not hold a deletion back for longer than a lease."""
    publish(0)
    load(clients)
    datasource = Datasource.objects.get(name="opened")
    marking.mark_unused(datasource, SegmentSelection(), by="x", what="y")
    assert [s["snapshot-id"] for s in load(clients)["snapshots"]] == [1, 2]
    marking.give_up(datasource, SegmentSelection())
    Snapshot.objects.update(leased_until=timezone.now())
    assert [s["snapshot-id"] for s in load(clients)["snapshots"]] == [2]
    assert Snapshot.objects.get(number=1).leased_until < timezone.now()


def test_a_load_extends_the_leases_that_are_about_to_end(clients: dict[str, Client], publish: Publish) -> None:
    publish(0)
    load(clients)
    Snapshot.objects.update(leased_until=timezone.now())
    load(clients)
    assert Snapshot.objects.get().leased_until > timezone.now() + HOUR - timedelta(minutes=1)


def test_snapshots_leave_when_they_are_old_and_not_leased(
    clients: dict[str, Client], publish: Publish, settings: Any
) -> None:
    publish(0, 1)
    load(clients)
    publish(0)
    load(clients)
    assert (expire(), Snapshot.objects.count(), Manifest.objects.count()) == (0, 2, 3)
    settings.KILL_REPLACED_AFTER = HOUR  # no snapshot is kept for that long
    assert (expire(), Snapshot.objects.count()) == (0, 2), "leased"
    Snapshot.objects.update(leased_until=timezone.now() - HOUR)
    assert (expire(), Snapshot.objects.get().number) == (1, 2)
    assert sorted(Manifest.objects.values_list("first_snapshot", flat=True)) == [1, 2]


def test_files_of_old_snapshots_are_cleaned_up(
    clients: dict[str, Client], publish: Publish, deep: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_here(monkeypatch)
    publish(0, 1)
    load(clients)
    publish(0)
    load(clients)

    def cleaned_up() -> int:
        return clean_up(grace=timedelta(0)).end.deleted

    assert (cleaned_up(), len(list(deep.rglob("*.avro")))) == (0, 5)
    settings.KILL_REPLACED_AFTER = HOUR
    Snapshot.objects.update(leased_until=timezone.now() - HOUR)
    expire()
    assert (cleaned_up(), len(list(deep.rglob("*.avro")))) == (2, 3)
    assert all_of(listed(deep, load(clients)["snapshots"][-1])) == paths()


def test_a_deleted_datasource_takes_its_snapshots_along(
    clients: dict[str, Client], publish: Publish, deep: Path, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the leases of readers have ended. One of the same name is another table afterwards."""
    sweep_here(monkeypatch)
    publish(0, 1)
    first = load(clients)
    owner, opened = cast.users["owner"], Datasource.objects.get(name="opened")
    delete_datasource(user=owner, datasource=opened, name="opened")
    assert clients["viewer"].get(ONE).status_code == 404
    assert tables.celery_tasks.build(opened.pk) is False, "a build that was asked for before"
    assert (expire(), Manifest.objects.count()) == (0, 2), "leased"
    Snapshot.objects.update(leased_until=timezone.now() - HOUR)
    assert (expire(), Snapshot.objects.count(), Manifest.objects.count()) == (1, 0, 0)
    clean_up(grace=timedelta(0))
    assert list(deep.rglob("*.avro")) == []
    datasource_for_ingestion(user=owner, name="opened", team_name=None, action=Action.ADMINISTER)
    again = load(clients)
    assert (again["snapshots"], again["table-uuid"] == first["table-uuid"]) == ([], False)
    publish(0)
    [snapshot] = load(clients)["snapshots"]
    assert all_of(listed(deep, snapshot)) == paths(used=True)


def test_a_datasource_that_is_made_again_at_once_is_another_table(
    clients: dict[str, Client], publish: Publish, deep: Path, cast: Cast
) -> None:
    """Readers of the one before still have their lease."""
    publish(0, 1)
    first = load(clients)
    owner = cast.users["owner"]
    delete_datasource(user=owner, datasource=Datasource.objects.get(name="opened"), name="opened")
    datasource_for_ingestion(user=owner, name="opened", team_name=None, action=Action.ADMINISTER)
    publish(0)
    second = load(clients)
    assert second["table-uuid"] != first["table-uuid"]
    [snapshot] = second["snapshots"]
    assert all_of(listed(deep, snapshot)) == paths(used=True)
    assert (expire(), Snapshot.objects.count()) == (0, 2)
    assert begin_deletion(timezone.now() + timedelta(minutes=59)) == []


def test_where_deep_storage_moves_all_is_written_again(
    clients: dict[str, Client], publish: Publish, settings: Any, tmp_path: Path
) -> None:
    """Iceberg's files have whole addresses within."""
    publish(0, 1)
    load(clients)
    settings.DEEP_STORAGE = str(tmp_path / "moved")
    [moved] = load(clients)["snapshots"]
    assert moved["snapshot-id"] == 2
    assert all_of(listed(tmp_path / "moved", moved)) == paths()


def test_large_changes_are_built_by_celery(
    clients: dict[str, Client], publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(tables, "MAX_NEW_SEGMENTS", 0)
    monkeypatch.setattr(tables.celery_tasks.build, "delay", asked.append)
    publish(0)
    answer = clients["viewer"].get(ONE)
    assert (answer.status_code, answer["Retry-After"], answer.json()["error"]["type"]) == (
        503,
        "10",
        "ServiceUnavailableException",
    )
    assert clients["viewer"].get(ONE).status_code == 503
    [datasource] = asked  # once, however many readers wait
    assert tables.celery_tasks.build(datasource) is True
    publish(0)
    assert load(clients)["current-snapshot-id"] == 1, "the last one is served meanwhile"


@pytest.fixture
def in_steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Each build has time for one manifest; the datasources whose builds Celery is to continue."""
    asked: list[int] = []
    monkeypatch.setattr(building, "_PAGE", 1)
    monkeypatch.setattr(building, "LONGEST_S", -1.0)
    monkeypatch.setattr(tables, "REQUEST_S", -1.0)
    monkeypatch.setattr(tables.celery_tasks.build, "delay", asked.append)
    return asked


def test_a_build_that_is_cut_off_is_continued(
    clients: dict[str, Client], publish: Publish, deep: Path, in_steps: list[int]
) -> None:
    """What it has written is kept: also when an interval changes meanwhile, and no snapshot has it half."""
    publish(0, 1, 2)
    assert (clients["viewer"].get(ONE).status_code, len(in_steps)) == (503, 1), "a request goes on in Celery"
    assert (tables.celery_tasks.build(in_steps[0]), len(in_steps)) == (False, 2), "so does Celery's own"
    publish(0)
    [first, second] = Manifest.objects.order_by("interval__start")
    assert tables.celery_tasks.build(in_steps[0]) is False
    assert Manifest.objects.get(pk=first.pk).last_snapshot == 0, "written again, and in no snapshot"
    assert tables.celery_tasks.build(in_steps[0]) is True
    assert len(in_steps) == 3
    [snapshot] = load(clients)["snapshots"]
    manifests = listed(deep, snapshot)
    assert (snapshot["snapshot-id"], all_of(manifests), len(manifests)) == (1, paths(), 3)
    assert any(address.endswith(second.path) for address in manifests)
    latest = Segment.objects.filter(datasource__name="opened").latest("created_at").created_at
    assert snapshot["timestamp-ms"] == int(latest.timestamp() * 1000)
    expire()
    assert not Manifest.objects.filter(pk=first.pk).exists()


def test_the_last_snapshot_is_served_while_the_next_is_cut_off(
    clients: dict[str, Client], publish: Publish, deep: Path, in_steps: list[int]
) -> None:
    publish(0)
    before = load(clients)["snapshots"]
    expected = paths()
    publish(0, 1)
    assert load(clients)["snapshots"] == before
    assert all_of(listed(deep, before[0])) == expected
    marking.mark_unused(Datasource.objects.get(name="opened"), SegmentSelection(), by="x", what="y")
    after = load(clients)
    assert [len(listed(deep, s)) for s in after["snapshots"]] == [1, 0], (
        "an interval that has left, and one that was new"
    )


def test_a_list_that_could_not_be_stored_is_tried_again(
    clients: dict[str, Client], publish: Publish, deep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All manifests are there, and nothing has changed since."""
    write = building._Writer.write

    def refused(writer: building._Writer, message: Any) -> Any:
        if isinstance(message, ManifestList):
            raise Unavailable("The disk is full.")
        return write(writer, message)

    publish(0, 1)
    with monkeypatch.context() as patch:
        patch.setattr(building._Writer, "write", refused)
        assert clients["viewer"].get(ONE).status_code == 503
    kept = set(Manifest.objects.values_list("path", flat=True))
    [snapshot] = load(clients)["snapshots"]
    assert {below(deep, address) for address in listed(deep, snapshot)} == kept
    assert all_of(listed(deep, snapshot)) == paths()
    assert load(clients)["current-snapshot-id"] == 1, "nothing is left to do"


def test_files_are_never_of_a_half_publish(clients: dict[str, Client], publish: Publish, deep: Path) -> None:
    """An interval's manifest is of its revision: one that changes while others are written is there as it was."""
    publish(0, 1)
    load(clients)
    revisions = dict(Interval.objects.filter(datasource__name="opened").values_list("pk", "revision"))
    assert dict(Manifest.objects.values_list("interval", "revision")) == revisions
