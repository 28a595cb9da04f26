"""Segments marked unused and used again, on a real PostgreSQL: sums, exactly-once, and beside publishes."""

from __future__ import annotations

import threading
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone

from controlplane.common.errors import Conflict, InvalidInput, NotAllowed
from controlplane.datasources.models import Datasource
from controlplane.feed.manifest import manifest, publish_watermark
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.models import SettledRange
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.publishing.replace import ReplaceTarget, replace
from controlplane.publishing.selectors.fate import record_fate
from controlplane.publishing.selectors.totals import datasource_totals
from controlplane.retention import retention_preview, services
from controlplane.retention.segment_selection import select_segments
from controlplane.segments import day_sums, marking
from controlplane.segments.marking import Amount, SegmentSelection
from controlplane.segments.models import DaySum, Interval, Removal, Segment
from controlplane.segments.selectors.lists import count_segments, list_segments
from controlplane.segments.selectors.timeline import timeline
from controlplane.sources.models import Source
from controlplane.teams.audit import AuditEntry
from controlplane.teams.models import Membership, Team, User
from controlplane.teams.roles import Role
from ingestion.specs.messages.compaction import ReplaceRequest
from tests.support.publishes import DAY, make_source, request, segment, send, start

ROOT = User(username="root", is_superuser=True)
NEXT = DAY + timedelta(days=1)


@pytest.fixture
def source(db: None, settings: Any) -> Source:
    settings.DEEP_STORAGE = "s3://elsewhere/segments"  # no folder: nobody looks for files
    return make_source("flights")


def published(source: Source, days: int = 2, each: int = 2) -> list[Segment]:
    """On each of the days segments of 5, 6, 7 … rows."""
    epoch, at = start(source), 0
    for day in range(days):
        for n in range(each):
            rows = {0: [(at, at + 5 + n)]}
            send(request(epoch, segments=[segment(rows, DAY + timedelta(days=day))]))
            at += 5 + n
    return list(Segment.objects.order_by("interval_start", "partition_num"))


def check_sums(datasource: Datasource) -> None:
    """What intervals and days say is what their segments in use hold."""
    for interval in Interval.objects.filter(datasource=datasource):
        mine = Segment.objects.filter(datasource=datasource, interval_start=interval.start, used=True)
        rows = list(mine.values_list("rows", "size_bytes", "min_time", "max_time"))
        assert (interval.segments, interval.rows, interval.size_bytes) == (
            len(rows),
            sum(r[0] for r in rows),
            sum(r[1] for r in rows),
        )
        assert interval.min_time == min((r[2] for r in rows), default=None)
        assert interval.max_time == max((r[3] for r in rows), default=None)
    for _ in range(2):  # before they are summed up, and after
        by_day = {d.day: (d.segments, d.rows) for d in DaySum.objects.filter(datasource=datasource)}
        assert by_day == {
            i.start: (i.segments, i.rows) for i in Interval.objects.filter(datasource=datasource, segments__gt=0)
        }
        day_sums.sum_up()


def one_day(day: int = 0) -> SegmentSelection:
    return SegmentSelection(start=DAY + timedelta(days=day), end=DAY + timedelta(days=day + 1))


def test_an_interval_goes_and_comes_back(source: Source) -> None:
    before = published(source)
    datasource = source.datasource
    totals = datasource_totals(datasource)
    first = Interval.objects.get(start=DAY)
    assert services.mark_unused(user=ROOT, datasource=datasource, chosen=one_day()) == Amount(2, 11, 110)
    check_sums(datasource)
    assert count_segments(datasource) == 2
    assert [(b.start, b.rows) for b in timeline(datasource).bars] == [(NEXT, 11)]
    assert Interval.objects.get(start=DAY).revision == first.revision + 1
    assert datasource_totals(datasource) == totals  # of records, which are what they were
    removal = Removal.objects.get()
    assert (removal.by, removal.what, removal.segments, removal.rows) == ("root", "2025-06-01 to 2025-06-02", 2, 11)
    assert services.mark_unused(user=ROOT, datasource=datasource, chosen=one_day()) == Amount()  # asked again
    restored = services.mark_used(user=ROOT, datasource=datasource, chosen=one_day())
    assert (restored.amount, restored.passed_over) == (Amount(2, 11, 110), {})
    check_sums(datasource)
    assert {s.pk for s in list_segments(datasource)} == {s.pk for s in before}
    assert Interval.objects.get(start=DAY).revision == first.revision + 2
    actions = [(e.action, e.detail["segments"]) for e in AuditEntry.objects.order_by("id")]
    assert actions == [("mark_unused", 2), ("mark_unused", 0), ("mark_used", 2)]


def test_only_what_lies_within_goes(source: Source) -> None:
    published(source)
    datasource = source.datasource
    partly = SegmentSelection(start=DAY + timedelta(hours=1), end=NEXT + timedelta(days=1))
    assert marking.mark_unused(datasource, partly, by="x", what="y").segments == 2
    assert {s.interval_start for s in list_segments(datasource)} == {DAY}


@pytest.mark.parametrize("what", ["ids", "identifiers", "versions", "everything"])
def test_by_whatever_they_are_named(source: Source, what: str) -> None:
    segments = published(source)
    other = make_source("others", group="other")
    send(request(start(other, task="task-2"), {0: [(0, 3)]}), task="task-2")
    datasource = source.datasource
    wanted = {
        "ids": lambda: select_segments(datasource, segment_ids=[str(s.pk) for s in segments]),
        "identifiers": lambda: select_segments(datasource, segment_ids=[s.identifier for s in segments]),
        "versions": lambda: select_segments(
            datasource, interval="2025-06-01/P1M", versions=[segments[0].version, "other"]
        ),
        "everything": lambda: select_segments(datasource, everything=True),
    }[what]()
    assert services.mark_unused(user=ROOT, datasource=datasource, chosen=wanted).segments == 4
    assert not list_segments(datasource)
    assert count_segments(other.datasource) == 1
    theirs = str(Segment.objects.get(datasource=other.datasource).pk)
    assert select_segments(datasource, segment_ids=[theirs]).ids == frozenset()
    assert services.mark_used(user=ROOT, datasource=datasource, chosen=wanted).amount.segments == 4
    check_sums(datasource)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "Give an interval or segment ids"),
        ({"interval": "2025-06-01/P1D", "segment_ids": []}, "Give an interval or segment ids"),
        ({"interval": "2025-06-01"}, "must be like 2025-06-01/2025-07-01"),
        ({"interval": "2025-06-01/2025-06-01"}, "is empty"),
        ({"interval": "9999-12-31/P9Y"}, "must be like"),
        ({"segment_ids": ["others_2025-06-01T00:00:00.000Z_2025-06-02T00:00:00.000Z_v_1"]}, "not the id of a segment"),
        ({"segment_ids": ["flights_x_y_z"]}, "not the id of a segment"),
        ({"segment_ids": ["a\0"]}, "not the id of a segment"),
        ({"segment_ids": ["x"] * 10_001}, "10,000 at most"),
        ({"segment_ids": [], "versions": ["v"]}, "only with an interval"),
    ],
)
def test_what_is_not_clear_is_refused(source: Source, asked: dict[str, Any], message: str) -> None:
    published(source)
    with pytest.raises(InvalidInput) as refused:
        select_segments(source.datasource, **asked)
    assert message in str([refused.value.detail, *refused.value.errors])


def test_who_may(source: Source) -> None:
    published(source)
    team = Team.objects.get(name="alpha")
    for role in (Role.VIEWER, Role.OPERATOR):
        user = User.objects.create_user(f"a-{role}")
        Membership.objects.create(user=user, team=team, role=role)
        for act in (services.mark_unused, services.mark_used):
            with pytest.raises(NotAllowed):
                act(user=user, datasource=source.datasource, chosen=SegmentSelection())
    assert count_segments(source.datasource) == 4


def merged(source: Source, inputs: list[Segment]) -> uuid.UUID:
    file = segment({0: [(0, sum(s.rows for s in inputs))]}).model_copy(update={"offsets": {}})
    asked = ReplaceRequest(replace_id=uuid.uuid4(), attempt=1, read={s.pk: s.rows for s in inputs}, segments=[file])
    [made] = replace(ReplaceTarget(source.datasource, DAY, NEXT, "compact_1", False), asked)
    return made


def test_what_was_replaced_never_comes_back(source: Source) -> None:
    before = published(source, days=1)
    made = merged(source, before)
    datasource = source.datasource
    restored = services.mark_used(user=ROOT, datasource=datasource, chosen=SegmentSelection())
    assert (restored.amount, restored.passed_over) == (Amount(), {"replaced by other segments": 2})
    with pytest.raises(Conflict, match="replaced by other segments"):
        services.mark_used(user=ROOT, datasource=datasource, chosen=SegmentSelection(ids=frozenset({before[0].pk})))
    marking.mark_unused(datasource, SegmentSelection(), by="x", what="y")
    assert services.mark_used(user=ROOT, datasource=datasource, chosen=SegmentSelection()).amount.segments == 1
    assert [s.pk for s in list_segments(datasource)] == [made]
    check_sums(datasource)


def test_two_versions_of_an_interval_are_never_in_use_at_once(source: Source) -> None:
    before = published(source, days=1)
    datasource = source.datasource
    marking.mark_unused(datasource, SegmentSelection(), by="x", what="y")
    Interval.objects.update(version="2099-01-01T00:00:00.000Z")
    with pytest.raises(Conflict, match="the interval now has version 2099"):
        services.mark_used(user=ROOT, datasource=datasource, chosen=SegmentSelection(ids=frozenset({before[0].pk})))
    assert services.mark_used(user=ROOT, datasource=datasource, chosen=SegmentSelection()).amount == Amount()
    assert marking.mark_used(datasource, SegmentSelection()) == Amount()  # nor where nobody has looked before
    assert not list_segments(datasource)


def test_what_has_no_file_never_comes_back(source: Source, settings: Any, tmp_path: Path) -> None:
    before = published(source, days=1)
    datasource = source.datasource
    settings.DEEP_STORAGE = str(tmp_path)
    marking.mark_unused(datasource, SegmentSelection(), by="x", what="y")
    kept = tmp_path / before[0].path
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"x" * before[0].size_bytes)
    with pytest.raises(Conflict, match="the file is deleted"):
        services.mark_used(
            user=ROOT, datasource=datasource, chosen=SegmentSelection(ids=frozenset(s.pk for s in before))
        )
    assert not list_segments(datasource)
    restored = services.mark_used(user=ROOT, datasource=datasource, chosen=SegmentSelection())
    assert restored.passed_over == {"the file is deleted": 1}
    assert [s.pk for s in list_segments(datasource)] == [before[0].pk]
    marking.mark_unused(datasource, SegmentSelection(), by="x", what="y")
    Segment.objects.update(kill_began_at=DAY)
    assert marking.mark_used(datasource, SegmentSelection()) == Amount()
    assert not list_segments(datasource)


def test_a_records_fate_says_who_removed_it(source: Source) -> None:
    published(source, days=1)
    datasource = source.datasource
    services.mark_unused(user=ROOT, datasource=datasource, chosen=one_day())
    [fate] = record_fate(ROOT, topic="topic", partition=0, offset=3)
    at = Removal.objects.get().created_at
    assert fate.outcome == "stored"
    assert fate.explanation == (
        f"Stored, then removed by root at {at:%Y-%m-%d %H:%M:%S} UTC (2025-06-01 to 2025-06-02). It is not read again."
    )
    assert [bool(s.removed) for s in fate.segments] == [True]
    services.mark_used(user=ROOT, datasource=datasource, chosen=one_day())
    [fate] = record_fate(ROOT, topic="topic", partition=0, offset=3)
    assert fate.explanation == "It is stored in the segments named here."
    assert [s.removed for s in fate.segments] == [""]


def test_what_was_removed_is_not_read_again(source: Source) -> None:
    published(source, days=1)
    settled = list(SettledRange.objects.order_by("span").values_list("span", flat=True))
    marking.mark_unused(source.datasource, SegmentSelection(), by="x", what="y")
    assert list(SettledRange.objects.order_by("span").values_list("span", flat=True)) == settled
    with pytest.raises(PublishRefused) as refused:
        send(request(start(source), {0: [(3, 8)]}))
    assert refused.value.refusal.code == "duplicates"
    assert not list_segments(source.datasource)


def test_appends_go_on_in_an_interval_whose_segments_were_removed(source: Source) -> None:
    published(source, days=1)
    marking.mark_unused(source.datasource, SegmentSelection(), by="x", what="y")
    send(request(start(source), {0: [(100, 103)]}))
    [live] = list_segments(source.datasource)
    assert (live.rows, live.partition_num) == (3, 2)
    assert marking.mark_used(source.datasource, SegmentSelection()).segments == 2
    assert count_segments(source.datasource) == 3
    check_sums(source.datasource)


def test_a_compaction_that_read_what_was_removed_is_refused(source: Source) -> None:
    before = published(source, days=1)
    marking.mark_unused(source.datasource, SegmentSelection(ids=frozenset({before[0].pk})), by="x", what="y")
    with pytest.raises(PublishRefused) as refused:
        merged(source, before)
    assert refused.value.refusal.code == "changed"


def test_pages_of_one_manifest_stay_whole_whatever_is_marked_between_them(source: Source) -> None:
    before = {s.pk for s in published(source, days=1)}
    Segment.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    there = publish_watermark()
    marking.mark_unused(source.datasource, SegmentSelection(), by="x", what="y")
    gone = timezone.now()

    def seen(at: Any) -> set[uuid.UUID]:
        return {s.pk for s in manifest(ROOT, source.datasource, as_of=at)}

    assert (seen(there), seen(gone)) == (before, set())
    marking.mark_used(source.datasource, SegmentSelection())
    assert (seen(there), seen(gone), seen(timezone.now())) == (before, set(), before)


def test_many_intervals_are_several_transactions(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marking, "INTERVALS_PER_TRANSACTION", 2)
    published(source, days=5, each=1)
    assert marking.mark_unused(source.datasource, SegmentSelection(), by="x", what="y") == Amount(5, 25, 250)
    assert Removal.objects.get().segments == 5
    check_sums(source.datasource)


@pytest.mark.django_db(transaction=True)
def test_what_ends_in_between_has_marked_whole_intervals_and_is_gone_on_with(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else's lock on the third of five intervals outlasts the database's patience."""
    make_receipt_partitions()
    monkeypatch.setattr(marking, "INTERVALS_PER_TRANSACTION", 1)
    source = make_source("flights")
    published(source, days=5, each=2)
    held, over = threading.Event(), threading.Event()

    def holding() -> None:
        with transaction.atomic():
            Interval.objects.select_for_update().get(start=DAY + timedelta(days=2))
            held.set()
            over.wait(60)
        connections.close_all()

    other = threading.Thread(target=holding)
    other.start()
    assert held.wait(60)
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")
    try:
        with pytest.raises(OperationalError):
            services.mark_unused(user=ROOT, datasource=source.datasource, chosen=SegmentSelection())
    finally:
        over.set()
        other.join(60)
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")  # the pool gives the connection to others
    assert [i.segments for i in Interval.objects.order_by("start")] == [0, 0, 2, 2, 2]
    check_sums(source.datasource)
    ended = Removal.objects.get()
    assert (ended.by, ended.segments) == ("root", 4)
    assert services.mark_unused(user=ROOT, datasource=source.datasource, chosen=SegmentSelection()).segments == 6
    check_sums(source.datasource)


def test_one_request_marks_so_many_and_refuses_more_before_it_changes_anything(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(source, days=2, each=2)
    monkeypatch.setattr(retention_preview, "MAX_SEGMENTS", 3)
    root, there = User.objects.create(username="root", is_superuser=True), source.datasource
    with pytest.raises(InvalidInput, match=r"at most 3 segments.*Choose shorter intervals, or set a drop rule"):
        services.mark_unused(user=root, datasource=there, chosen=SegmentSelection())
    with pytest.raises(InvalidInput, match="at most 3 segments"):
        retention_preview.preview_step(
            user=root, datasource=there, chosen=SegmentSelection(), step=retention_preview.Step.MARK_UNUSED
        )
    assert count_segments(there) == 4 and not Removal.objects.exists()
    for day in range(2):
        assert services.mark_unused(user=root, datasource=there, chosen=one_day(day)).segments == 2
    with pytest.raises(InvalidInput, match=r"Choose shorter intervals\."):
        services.mark_used(user=root, datasource=there, chosen=SegmentSelection())
    assert count_segments(there) == 0
    assert services.mark_used(user=root, datasource=there, chosen=one_day()).amount.segments == 2


@pytest.mark.django_db(transaction=True)
def test_beside_publishes_nothing_is_lost_or_counted_twice(transactional_db: None) -> None:
    make_receipt_partitions()
    source = make_source("flights")
    published(source, days=2)
    epochs = {number: start(source, number) for number in range(1, 4)}
    failed: list[BaseException] = []

    def run(work: Any) -> threading.Thread:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                failed.append(error)
            finally:
                connections.close_all()

        return threading.Thread(target=guarded)

    def publishing(number: int) -> None:
        for i in range(10):
            rows = {number: [(i, i + 1)]}
            files = [segment(rows, DAY + timedelta(days=i % 2))]
            send(request(epochs[number], segments=files), number)

    def flipping() -> None:
        for _ in range(10):
            marking.mark_unused(source.datasource, SegmentSelection(), by="x", what="y")
            marking.mark_used(source.datasource, SegmentSelection())

    threads = [run(lambda number=number: publishing(number)) for number in epochs] + [run(flipping) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    marking.mark_used(source.datasource, SegmentSelection())
    check_sums(source.datasource)
    assert sum(s.rows for s in list_segments(source.datasource)) == 52
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM segments_segment")
        assert cursor.fetchone() == (34,)
