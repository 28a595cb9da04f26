"""Files of unused segments deleted, on a real PostgreSQL and a real folder: who is killed between any two steps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from controlplane.common.errors import Conflict, InvalidInput
from controlplane.config import settings as site
from controlplane.feed.manifest import manifest
from controlplane.publishing.models import SettledRange
from controlplane.publishing.replace import ReplaceTarget, replace
from controlplane.publishing.selectors.fate import record_fate
from controlplane.retention import celery_tasks, services
from controlplane.segments import killing, marking
from controlplane.segments.killing import KillResult
from controlplane.segments.marking import Amount, SegmentSelection
from controlplane.segments.models import Interval, KilledSegment, Removal, Segment
from controlplane.segments.orphans import clean_up
from controlplane.segments.selectors.lists import list_segments
from controlplane.sources.models import Source
from controlplane.teams.audit import AuditEntry
from controlplane.teams.models import User
from ingestion.segments.deletion import delete
from ingestion.segments.local import LocalStorage
from ingestion.specs.messages.compaction import ReplaceRequest
from ingestion.specs.messages.deep_storage import DeletedPage, DeletePage
from tests.support.publishes import DAY, make_source, request, segment, send, start

ROOT = User(username="root", is_superuser=True)
NEXT = DAY + timedelta(days=1)
HOUR = timedelta(hours=1)


@pytest.fixture
def deep(settings: Any, tmp_path: Path) -> Path:
    settings.DEEP_STORAGE = str(tmp_path / "deep")
    settings.SNAPSHOT_LEASE, settings.KILL_BUFFER_PERIOD = HOUR, 30 * 24 * HOUR
    settings.KILL_REPLACED_AFTER = 7 * 24 * HOUR
    return tmp_path / "deep"


@pytest.fixture
def source(db: None, deep: Path) -> Source:
    return make_source("flights")


def put(deep: Path, one: Segment) -> None:
    """Its file, where an indexer puts it."""
    path = f"flights/2025-06-01T00-00-00.000Z_2025-06-02T00-00-00.000Z/v/{uuid.uuid4()}.parquet"
    Segment.objects.filter(pk=one.pk).update(path=path)
    (deep / path).parent.mkdir(parents=True, exist_ok=True)
    (deep / path).write_bytes(b"x" * one.size_bytes)


def published(source: Source, deep: Path, count: int = 2) -> list[Segment]:
    epoch = start(source)
    for n in range(count):
        send(request(epoch, {0: [(5 * n, 5 * n + 5)]}))
    for one in Segment.objects.all():
        put(deep, one)
    return list(Segment.objects.order_by("partition_num"))


def removed(source: Source, ago: timedelta) -> None:
    marking.mark_unused(source.datasource, SegmentSelection(), by="x", what="y")
    age(ago)


def age(ago: timedelta) -> None:
    """Make all that is unused have been so for that long."""
    Segment.objects.filter(used=False).update(unused_at=timezone.now() - ago)


def files(deep: Path) -> set[str]:
    return {str(p.relative_to(deep)) for p in deep.rglob("*.parquet")}


def deleting(deep: Path) -> Callable[[list[str]], DeletedPage]:
    return lambda paths: delete(LocalStorage(deep), DeletePage(paths=paths))


@pytest.mark.usefixtures("cold_processes")
def test_files_go_after_the_buffer_period_and_nothing_else_does(source: Source, deep: Path) -> None:
    first, second = published(source, deep)
    marking.mark_unused(source.datasource, SegmentSelection(ids=frozenset({first.pk})), by="x", what="y")
    age(30 * 24 * HOUR - timedelta(minutes=1))
    assert killing.run(seconds=60) == KillResult()
    age(30 * 24 * HOUR + timedelta(minutes=1))
    assert killing.run(seconds=60) == KillResult(segments=1, size_bytes=50)
    assert [s.pk for s in Segment.objects.all()] == [second.pk]
    assert files(deep) == {Segment.objects.get().path}
    left = KilledSegment.objects.get()
    assert (left.pk, left.rows, left.removal) == (first.pk, 5, Removal.objects.get())
    assert Interval.objects.get().rows == 5
    assert killing.run(seconds=60) == KillResult()


def test_by_default_it_is_a_month_a_week_and_an_hour() -> None:
    assert timedelta(days=30) == site.KILL_BUFFER_PERIOD
    assert timedelta(days=7) == site.KILL_REPLACED_AFTER
    assert timedelta(hours=1) == site.SNAPSHOT_LEASE


def merged(source: Source, deep: Path, inputs: list[Segment]) -> Segment:
    file = segment({0: [(0, sum(s.rows for s in inputs))]}).model_copy(update={"offsets": {}})
    asked = ReplaceRequest(replace_id=uuid.uuid4(), attempt=1, read={s.pk: s.rows for s in inputs}, segments=[file])
    [made] = replace(ReplaceTarget(source.datasource, DAY, NEXT, "compact_1", False), asked)
    put(deep, Segment.objects.get(pk=made))
    return Segment.objects.get(pk=made)


def test_what_was_replaced_goes_earlier_and_fates_lead_on(source: Source, deep: Path) -> None:
    before = published(source, deep)
    once = merged(source, deep, before)
    age(8 * 24 * HOUR)
    assert killing.run(seconds=60).segments == 2
    [fate] = record_fate(ROOT, topic="topic", partition=0, offset=7)
    assert [s.id for s in fate.segments] == [once.pk]
    send(request(start(source), {0: [(20, 22)]}))
    other = Segment.objects.exclude(pk=once.pk).get()
    put(deep, other)
    twice = merged(source, deep, [once, Segment.objects.get(pk=other.pk)])
    age(8 * 24 * HOUR)
    assert killing.run(seconds=60).segments == 2
    for offset in (2, 7, 21):
        [fate] = record_fate(ROOT, topic="topic", partition=0, offset=offset)
        assert [s.id for s in fate.segments] == [twice.pk]
    marking.mark_unused(source.datasource, SegmentSelection(), by="alice", what="all")
    age(31 * 24 * HOUR)
    assert killing.run(seconds=60).segments == 1
    assert files(deep) == set()
    [fate] = record_fate(ROOT, topic="topic", partition=0, offset=2)
    assert fate.explanation.startswith("Stored, then removed by alice at ")
    assert fate.segments == []
    assert SettledRange.objects.exists()


def test_who_is_killed_after_step_1_left_a_file_that_the_next_run_deletes(source: Source, deep: Path) -> None:
    """Row 33 of the failure matrix."""
    published(source, deep)
    removed(source, 31 * 24 * HOUR)
    assert len(killing.begin_deletion(timezone.now())) == 2
    assert len(files(deep)) == 2
    assert marking.mark_used(source.datasource, SegmentSelection()) == Amount()  # its file may be gone: never again
    assert killing.run(seconds=60).segments == 2
    assert (files(deep), Segment.objects.count(), KilledSegment.objects.count()) == (set(), 0, 2)


def test_who_is_killed_after_step_2_left_rows_that_the_next_run_deletes(source: Source, deep: Path) -> None:
    """Row 33 of the failure matrix."""
    published(source, deep)
    removed(source, 31 * 24 * HOUR)
    begun = killing.begin_deletion(timezone.now())
    deleting(deep)([path for _, path in begun])
    assert (files(deep), Segment.objects.count()) == (set(), 2)
    chosen = SegmentSelection(ids=frozenset(pk for pk, _ in begun))
    with pytest.raises(Conflict, match="the file is deleted"):
        services.mark_used(user=ROOT, datasource=source.datasource, chosen=chosen)
    assert killing.run(seconds=60) == KillResult(segments=2, size_bytes=100)
    assert (Segment.objects.count(), KilledSegment.objects.count()) == (0, 2)


def test_a_file_that_comes_back_after_step_3_is_an_orphan(source: Source, deep: Path) -> None:
    published(source, deep)
    removed(source, 31 * 24 * HOUR)
    [path, _] = sorted(files(deep))
    killing.run(seconds=60)
    (deep / path).write_bytes(b"x")
    os.utime(deep / path, (0, 0))
    assert clean_up(grace=24 * HOUR).end.deleted == 1
    assert files(deep) == set()


def test_a_process_that_is_killed_while_it_deletes_is_done_again(source: Source, deep: Path, tmp_path: Path) -> None:
    """Row 33 of the failure matrix. It has deleted the first of two files, and is killed before it says so."""
    published(source, deep)
    removed(source, 31 * 24 * HOUR)

    def killed_in_the_middle(paths: list[str]) -> DeletedPage:
        code = (
            "import os, signal, sys; from pathlib import Path; "
            "from ingestion.segments.local import LocalStorage; "
            "LocalStorage(Path(sys.argv[1])).delete(sys.argv[2]); os.kill(os.getpid(), signal.SIGKILL)"
        )
        done = subprocess.run([sys.executable, "-c", code, str(deep), paths[0]], check=False)
        assert done.returncode == -signal.SIGKILL
        raise RuntimeError("and so is who asked")

    with pytest.raises(RuntimeError):
        killing.kill_batch(KillResult(), killed_in_the_middle)
    assert (len(files(deep)), Segment.objects.count(), KilledSegment.objects.count()) == (1, 2, 0)
    assert killing.run(seconds=60).segments == 2
    assert (files(deep), Segment.objects.count(), KilledSegment.objects.count()) == (set(), 0, 2)


def test_a_deep_storage_that_refuses_keeps_the_rows_and_says_so(source: Source, deep: Path) -> None:
    """Row 33 of the failure matrix."""
    one, _ = published(source, deep)
    removed(source, 31 * 24 * HOUR)
    Segment.objects.filter(pk=one.pk).update(path="flights/notes.txt")  # nobody deletes what is not Headgate's
    (deep / "flights/notes.txt").write_text("mine")
    said = killing.run(seconds=60)
    assert (said.segments, said.failed) == (1, 1)
    assert "is not the path of a segment's file" in said.summary()
    assert [s.path for s in Segment.objects.all()] == ["flights/notes.txt"]
    assert (deep / "flights/notes.txt").exists()


def test_what_is_used_or_leased_is_never_taken(source: Source, deep: Path, settings: Any) -> None:
    """Row 33 of the failure matrix."""
    published(source, deep)
    settings.KILL_BUFFER_PERIOD = settings.KILL_REPLACED_AFTER = timedelta(0)
    assert killing.begin_deletion(timezone.now()) == []
    removed(source, HOUR - timedelta(minutes=1))
    assert killing.begin_deletion(timezone.now()) == []
    age(HOUR + timedelta(minutes=1))
    marking.mark_used(source.datasource, SegmentSelection())
    assert killing.begin_deletion(timezone.now()) == []
    assert killing.finish_deletion([s.pk for s in list_segments(source.datasource)]) == Amount()
    assert Segment.objects.count() == 2


def test_given_up_goes_when_the_lease_is_over(source: Source, deep: Path) -> None:
    published(source, deep)
    datasource = source.datasource
    kept = published_later(source, deep)
    marking.mark_unused(datasource, SegmentSelection(end=NEXT), by="x", what="y")
    seen = services.kill(user=ROOT, datasource=datasource, chosen=SegmentSelection(), dry_run=True)
    assert seen == Amount(2, 10, 100)
    assert not Segment.objects.filter(kill_began_at__isnull=False).exists()
    assert services.kill(user=ROOT, datasource=datasource, chosen=SegmentSelection(), dry_run=False) == seen
    assert services.kill(user=ROOT, datasource=datasource, chosen=SegmentSelection(), dry_run=False) == Amount()
    assert marking.mark_used(datasource, SegmentSelection()) == Amount()
    assert celery_tasks.kill().startswith("0 unused segments")
    age(HOUR + timedelta(seconds=1))
    assert celery_tasks.kill() == "2 unused segments (100 bytes) deleted"
    assert [s.pk for s in Segment.objects.all()] == [kept.pk]
    assert AuditEntry.objects.filter(action="kill").count() == 2


def published_later(source: Source, deep: Path) -> Segment:
    [made] = send(request(start(source), segments=[segment({0: [(50, 53)]}, NEXT)]))
    put(deep, Segment.objects.get(pk=made))
    return Segment.objects.get(pk=made)


def test_a_manifest_of_a_moment_whose_files_are_gone_says_so(source: Source, deep: Path) -> None:
    published(source, deep)
    Segment.objects.update(created_at=timezone.now() - 40 * 24 * HOUR)
    removed(source, 31 * 24 * HOUR)
    then = timezone.now() - 32 * 24 * HOUR
    assert manifest(ROOT, source.datasource, as_of=then).count() == 2
    killing.run(seconds=60)
    with pytest.raises(InvalidInput, match="moment are deleted"):
        manifest(ROOT, source.datasource, as_of=then)
    assert manifest(ROOT, source.datasource, as_of=timezone.now()).count() == 0


def test_a_run_goes_on_where_the_last_one_ended(source: Source, deep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(killing, "BATCH_SIZE", 2)
    published(source, deep, count=5)
    removed(source, 31 * 24 * HOUR)
    killed = KillResult()
    assert killing.kill_batch(killed, deleting(deep))
    assert killed.segments == 2
    assert killing.run(seconds=60).segments == 3
    assert files(deep) == set()


def test_files_that_can_not_be_deleted_hold_up_no_others(
    source: Source, deep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(killing, "BATCH_SIZE", 10)
    made = published(source, deep, count=30)
    removed(source, 31 * 24 * HOUR)
    for number, one in enumerate(made[:7]):
        Segment.objects.filter(pk=one.pk).update(path=f"flights/notes-{number}.txt")
    for _ in range(2):
        killing.run(seconds=60)
        assert {s.pk for s in Segment.objects.all()} == {s.pk for s in made[:7]}
    assert killing.run(seconds=60).failed == 7
