"""The replace transaction on a real PostgreSQL: all or nothing, once, and beside publishes."""

from __future__ import annotations

import threading
import uuid
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from controlplane.common.errors import InvalidInput
from controlplane.feed.manifest import manifest, publish_watermark
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.publishing.replace import ReplaceTarget, prepare_replace, replace
from controlplane.publishing.selectors.fate import record_fate
from controlplane.publishing.selectors.totals import datasource_totals
from controlplane.segments.models import Interval, Replacement, Segment
from controlplane.segments.orphans import _orphans
from controlplane.segments.selectors.columns import datasource_schema
from controlplane.segments.selectors.lists import count_segments, list_segments
from controlplane.segments.selectors.timeline import timeline
from controlplane.sources.models import Source
from controlplane.teams.models import User
from ingestion.specs.messages.compaction import ReplaceRequest
from ingestion.specs.messages.deep_storage import SweepPage, SweptFile
from ingestion.specs.messages.protocol import SegmentFile
from tests.support.publishes import DAY, TASK, make_source, request, segment, send, start

ROOT = User(is_superuser=True)


@pytest.fixture
def source(db: None) -> Source:
    return make_source("flights")


def place(source: Source, rollup: bool = False, task: str = "compact_1") -> ReplaceTarget:
    return ReplaceTarget(source.datasource, DAY, DAY + timedelta(days=1), task, rollup)


def merged(segments: list[Segment], **changes: object) -> SegmentFile:
    """One file of all their rows."""
    rows = {0: [(0, sum(s.rows for s in segments))]}
    return segment(rows).model_copy(update={"offsets": {}, **changes})


def asked(segments: list[Segment], files: list[SegmentFile] | None = None) -> ReplaceRequest:
    return ReplaceRequest(
        replace_id=uuid.uuid4(),
        attempt=1,
        read={s.pk: s.rows for s in segments},
        segments=files or [merged(segments)],
    )


def published(source: Source, *sizes: int) -> list[Segment]:
    """A segment of each size, one after the other."""
    epoch, at = start(source), 0
    for size in sizes:
        send(request(epoch, {0: [(at, at + size)]}))
        at += size
    return list(Segment.objects.order_by("partition_num"))


def test_what_was_read_goes_and_what_was_made_of_it_comes_at_once(source: Source) -> None:
    before = published(source, 5, 7)
    what = asked(before)
    [made] = replace(place(source), what)
    assert replace(place(source), what) == [made]  # an answer that was lost
    [live] = list_segments(source.datasource)
    assert (live.pk, live.rows, live.partition_num, live.task_id) == (made, 12, 2, "compact_1")
    assert live.version == before[0].version
    interval = Interval.objects.get()
    assert (interval.segments, interval.rows, interval.size_bytes, interval.next_partition) == (1, 12, 120, 3)
    assert interval.revision == 3  # two publishes and a replace
    kept = Replacement.objects.get()
    assert (set(kept.taken), kept.made) == ({s.pk for s in before}, [made])
    assert (kept.rows_before, kept.rows_after, kept.task_id) == (12, 12, "compact_1")


def test_nothing_counts_or_shows_what_is_not_in_use(source: Source) -> None:
    before = published(source, 5, 7)
    totals = datasource_totals(source.datasource)
    replace(place(source), asked(before))
    datasource = source.datasource
    assert count_segments(datasource) == 1
    assert [(b.rows, b.segments) for b in timeline(datasource).bars] == [(12, 1)]
    assert [c["segments"] for c in datasource_schema(datasource)] == [1]
    assert datasource_totals(datasource) == totals  # of records, which are what they were
    page = SweepPage(files=[SweptFile(path=s.path, size_bytes=1) for s in before])
    assert _orphans(page) == []  # who reads one of the old files may end with it


def test_a_records_fate_leads_to_the_segment_that_holds_it_now(source: Source) -> None:
    before = published(source, 5, 7)
    [first] = replace(place(source), asked(before))
    once = Segment.objects.get(pk=first)
    send(request(start(source), {0: [(12, 15)]}))
    other = Segment.objects.exclude(pk=first).get(used=True)
    [second] = replace(place(source, task="compact_2"), asked([once, other]))
    for offset in (3, 11, 14):
        [fate] = record_fate(ROOT, topic="topic", partition=0, offset=offset)
        assert fate.task_id == TASK
        assert [(s.id, s.task_id) for s in fate.segments] == [(second, "compact_2")]


def test_what_is_appended_meanwhile_stays(source: Source) -> None:
    before = published(source, 5, 7)
    what = asked(before)
    send(request(start(source), {0: [(12, 15)]}))
    replace(place(source), what)
    assert sorted(s.rows for s in list_segments(source.datasource)) == [3, 12]
    assert Interval.objects.get().rows == 15


def test_inputs_that_have_gone_refuse_it_and_it_changes_nothing(source: Source) -> None:
    before = published(source, 5, 7, 9)
    replace(place(source), asked(before[:2]))
    with pytest.raises(PublishRefused) as refused:
        replace(place(source), asked(before[1:]))
    assert refused.value.refusal.code == "changed"
    assert sorted(s.rows for s in list_segments(source.datasource)) == [9, 12]
    assert Replacement.objects.count() == 1


@pytest.mark.parametrize(
    ("rollup", "changes", "message"),
    [
        (False, {"rows": 11}, "do not add up"),
        (True, {"rows": 13}, "do not add up"),
        (False, {"path": "others/x.parquet"}, "folder flights"),
        (False, {"path": "flights/../x.parquet"}, "folder flights"),
        (False, {"interval_end": DAY + timedelta(days=2)}, "another interval"),
        (False, {"max_time": DAY + timedelta(days=1)}, "outside of its interval"),
    ],
)
def test_what_does_not_add_up_is_never_taken(
    source: Source, rollup: bool, changes: dict[str, object], message: str
) -> None:
    before = published(source, 5, 7)
    with pytest.raises(InvalidInput, match=message):
        prepare_replace(place(source, rollup), asked(before, [merged(before, **changes)]))
    assert sorted(s.rows for s in list_segments(source.datasource)) == [5, 7]


def test_other_rows_than_were_registered_are_never_taken(source: Source) -> None:
    before = published(source, 5, 7)
    read = {before[0].pk: 6, before[1].pk: 6}
    with pytest.raises(InvalidInput, match="rows, and 6 were read"):
        replace(place(source), asked(before).model_copy(update={"read": read}))
    summed = asked(before).model_copy(update={"counted": {"events": (12, 11)}})
    with pytest.raises(InvalidInput, match="sums of counts do not add up"):
        prepare_replace(place(source), summed)


def test_a_rollup_may_make_rows_fewer(source: Source) -> None:
    before = published(source, 5, 7)
    replace(place(source, rollup=True), asked(before, [merged(before, rows=4)]))
    assert Interval.objects.get().rows == 4


def test_pages_of_one_manifest_show_the_same_files_whatever_is_replaced_between_them(source: Source) -> None:
    before = published(source, 5, 7)
    Segment.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    as_of = publish_watermark()
    replace(place(source), asked(before))
    assert {s.pk for s in manifest(ROOT, source.datasource, as_of=as_of)} == {s.pk for s in before}
    assert [s.rows for s in manifest(ROOT, source.datasource, as_of=timezone.now())] == [12]


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_replaces_and_publishes_go_on(transactional_db: None) -> None:
    make_receipt_partitions()
    source = make_source("flights")
    before = published(source, 5, 7)
    epochs = {number: start(source, number) for number in range(1, 4)}
    ended: list[str] = []

    def replacing(n: int) -> None:
        try:
            replace(place(source, task=f"compact_{n}"), asked(before))
            ended.append("replaced")
        except PublishRefused as refused:
            ended.append(refused.refusal.code)
        finally:
            connections.close_all()

    def publishing(number: int) -> None:
        try:
            for i in range(10):
                send(request(epochs[number], {number: [(i, i + 1)]}), number)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=replacing, args=(n,)) for n in range(4)]
    threads += [threading.Thread(target=publishing, args=(n,)) for n in epochs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(ended) == ["changed", "changed", "changed", "replaced"]
    live = list(list_segments(source.datasource))
    assert sorted(s.rows for s in live) == [*[1] * 30, 12]
    interval = Interval.objects.get()
    assert (interval.rows, interval.segments, interval.next_partition) == (42, 31, 33)
    assert len({s.partition_num for s in Segment.objects.all()}) == 33
