"""The transaction of a rewind's part on a real PostgreSQL: what is selected, swapped once, and swapped back."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.common.errors import Conflict
from controlplane.publishing import fence, rewinds
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.models import Receipt, Rewind, RewindPart
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.publishing.replace import ReplaceTarget, replace
from controlplane.publishing.rewind_plan import PartPlan, Readers, parts_of
from controlplane.publishing.rewind_selection import Choice, select
from controlplane.publishing.selectors.fate import outcomes_at, record_fate
from controlplane.publishing.selectors.totals import datasource_totals
from controlplane.quarantine import replays
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.segments.marking import SegmentSelection, mark_unused, mark_used
from controlplane.segments.models import Interval, Segment
from controlplane.sources.models import Source
from controlplane.teams.models import User
from ingestion.specs.messages.compaction import ReplaceRequest
from ingestion.specs.messages.protocol import Outcomes, PublishRequest, SegmentFile
from ingestion.specs.messages.protocol import QuarantinedRecord as WireRecord
from tests.support.publishes import DAY, make_source, request, segment, send, settled_offsets, start

READER = "rewind_1"
ROOT = User(is_superuser=True)
Offsets = dict[int, list[tuple[int, int]]]


@pytest.fixture
def source(db: None) -> Source:
    make_receipt_partitions()
    return make_source("flights")


def chosen(source: Source, low: int, high: int) -> list[PartPlan]:
    groups, loose = select(source, Choice(offsets={0: [(low, high)]}))
    assert not [g.refusal for g in groups if g.refusal]
    return parts_of(groups, loose, Readers(source.pk))


def begun(source: Source, plan: PartPlan, task: str = READER) -> RewindPart:
    rewind = Rewind.objects.create(
        datasource=source.datasource, source=source, spec={}, choice={}, by="somebody", created_at=timezone.now()
    )
    return RewindPart.objects.create(
        rewind=rewind,
        number=0,
        taken=list(plan.segments),
        ranges=[[p, *r] for p, some in plan.ranges.items() for r in some],
        before=plan.before,
        task_id=task,
    )


def reading(source: Source, task: str = READER) -> int:
    return fence.take_epoch(task_id=task, datasource=source.datasource, source=source, rewinds=True).epoch


def read_again(source: Source, what: PublishRequest, task: str = READER) -> list[str]:
    return send(what, task=task)


def rows_in_use(source: Source) -> int:
    return sum(Segment.objects.filter(datasource=source.datasource, used=True).values_list("rows", flat=True))


def merge_all(source: Source) -> uuid.UUID:
    old = list(Segment.objects.filter(used=True))
    rows = sum(s.rows for s in old)
    file = segment({0: [(0, rows)]}).model_copy(update={"offsets": {}})
    what = ReplaceRequest(replace_id=uuid.uuid4(), attempt=1, read={s.pk: s.rows for s in old}, segments=[file])
    [made] = replace(ReplaceTarget(source.datasource, DAY, DAY + timedelta(days=1), "compact_1", False), what)
    return made


def poison(offset: int) -> WireRecord:
    return WireRecord(partition=0, offset=offset, delivery_count=1, reason="unparseable", error="no", payload=b"e30=")


def assert_sums(source: Source) -> None:
    for interval in Interval.objects.filter(datasource=source.datasource):
        used = Segment.objects.filter(interval_start=interval.start, interval_end=interval.end, used=True)
        assert (interval.segments, interval.rows) == (used.count(), sum(s.rows for s in used))
    assert datasource_totals(source.datasource).adds_up


def test_whole_segments_are_read_again_and_swapped_in_one_transaction(source: Source) -> None:
    epoch = start(source)
    for first in (0, 10, 20):
        send(request(epoch, {0: [(first, first + 10)]}))
    [plan] = chosen(source, 12, 14)
    assert (plan.ranges, plan.rows) == ({0: [(10, 20)]}, 10)
    part = begun(source, plan)
    other = Outcomes(thrown_away=[(17, 20)])
    [made] = read_again(source, request(reading(source), {0: [(10, 17)]}, {0: other}))
    part.refresh_from_db()
    assert (part.state, part.made, part.rows_before, part.rows_after) == ("done", [uuid.UUID(made)], 10, 7)
    assert rows_in_use(source) == 27
    assert settled_offsets(source) == {0: [(0, 30)]}
    assert outcomes_at(source, 0, 18) == {"stored", "thrown_away"}
    totals = datasource_totals(source.datasource)
    assert (totals.polled, totals.published, totals.thrown_away) == (30, 27, 3)
    assert_sums(source)


def test_an_undone_part_is_as_before(source: Source) -> None:
    send(request(start(source), {0: [(0, 10)]}))
    before = datasource_totals(source.datasource)
    part = begun(source, chosen(source, 0, 10)[0])
    bad = request(
        reading(source), {0: [(0, 8)]}, {0: Outcomes(unparseable=[(8, 10)])}, quarantined=[poison(8), poison(9)]
    )
    read_again(source, bad)
    assert QuarantinedRecord.objects.count() == 2
    rewinds.undo_part(part.pk, "somebody")
    assert rows_in_use(source) == 10
    assert not QuarantinedRecord.objects.exists()
    assert outcomes_at(source, 0, 9) == {"stored"}
    after = datasource_totals(source.datasource)
    assert (after.polled, after.published, after.unparseable) == (before.polled, before.published, 0)
    assert_sums(source)
    with pytest.raises(Conflict, match="nothing to undo"):
        rewinds.undo_part(part.pk, "somebody")


def test_it_can_be_rewound_again_and_after_an_undo(source: Source) -> None:
    send(request(start(source), {0: [(0, 10)]}))
    part = begun(source, chosen(source, 0, 1)[0])
    read_again(source, request(reading(source), {0: [(0, 9)]}, {0: Outcomes(thrown_away=[(9, 10)])}))
    again = chosen(source, 0, 10)
    assert [(p.ranges, p.before.get("published"), p.before.get("thrown_away")) for p in again] == [
        ({0: [(0, 9)]}, 9, None),
        ({0: [(9, 10)]}, None, 1),
    ]
    rewinds.undo_part(part.pk, "somebody")
    assert [p.ranges for p in chosen(source, 0, 10)] == [{0: [(0, 10)]}]


def test_segments_of_one_merge_go_together(source: Source) -> None:
    epoch = start(source)
    for first in (0, 10):
        send(request(epoch, {0: [(first, first + 10)]}))
    merged = merge_all(source)
    send(request(epoch, {0: [(20, 30)]}))
    [plan] = chosen(source, 3, 4)
    assert (plan.segments, plan.ranges) == ((merged,), {0: [(0, 20)]})
    begun(source, plan)
    read_again(source, request(reading(source), {0: [(0, 20)]}))
    assert rows_in_use(source) == 30
    assert_sums(source)


def test_segments_that_share_a_record_go_together(source: Source) -> None:
    """A record may have rows in two intervals."""
    later = segment({0: [(4, 6)]}, DAY + timedelta(days=1))
    what = request(start(source), segments=[segment({0: [(0, 5)]}), later])
    counters = what.counters.model_copy(update={"polled": 6, "published": 7, "further_rows": 1})
    send(what.model_copy(update={"counters": counters}))
    send(request(start(source), {0: [(6, 9)]}))
    [plan] = chosen(source, 0, 1)
    assert (len(plan.segments), plan.ranges, plan.rows) == (2, {0: [(0, 6)]}, 7)
    assert plan.before == {"polled": 6, "published": 7, "further_rows": 1}


def test_a_part_is_published_whole_and_once(source: Source) -> None:
    send(request(start(source), {0: [(0, 10)]}))
    begun(source, chosen(source, 0, 10)[0])
    epoch = reading(source)
    with pytest.raises(Conflict, match="2 of these records are not the part's"):
        read_again(source, request(epoch, {0: [(0, 12)]}))
    with pytest.raises(Conflict, match="2 of 10 records are no longer in Kafka"):
        read_again(source, request(epoch, {0: [(0, 8)]}, {0: Outcomes(empty=[(8, 10)])}))
    what = request(epoch, {0: [(0, 10)]})
    assert read_again(source, what) == read_again(source, what)  # an answer that was lost
    with pytest.raises(PublishRefused, match="is done"):
        read_again(source, request(epoch, {0: [(0, 10)]}))
    assert rows_in_use(source) == 10


@pytest.mark.parametrize("newer", [True, False])
def test_an_older_start_and_another_task_may_not_publish(source: Source, newer: bool) -> None:
    send(request(start(source), {0: [(0, 10)]}))
    part = begun(source, chosen(source, 0, 10)[0])
    epoch = reading(source)
    if newer:
        reading(source)
    else:
        RewindPart.objects.filter(pk=part.pk).update(task_id="rewind_2")
    with pytest.raises(PublishRefused):
        read_again(source, request(epoch, {0: [(0, 10)]}))
    assert rows_in_use(source) == 10


def test_a_merge_that_was_first_makes_it_plan_again(source: Source) -> None:
    send(request(start(source), {0: [(0, 10)]}))
    part = begun(source, chosen(source, 0, 10)[0])
    epoch = reading(source)
    merge_all(source)
    with pytest.raises(PublishRefused, match="merged or removed meanwhile"):
        read_again(source, request(epoch, {0: [(0, 10)]}))
    part.refresh_from_db()
    assert (part.state, rows_in_use(source)) == ("waiting", 10)
    [plan] = chosen(source, 0, 10)
    RewindPart.objects.filter(pk=part.pk).update(taken=list(plan.segments))
    read_again(source, request(epoch, {0: [(0, 10)]}))
    assert rows_in_use(source) == 10


def test_what_was_merged_on_top_is_not_undone(source: Source) -> None:
    send(request(start(source), {0: [(0, 10)]}))
    part = begun(source, chosen(source, 0, 10)[0])
    read_again(source, request(reading(source), {0: [(0, 10)]}))
    merge_all(source)
    with pytest.raises(Conflict, match="merged or removed since"):
        rewinds.undo_part(part.pk, "somebody")
    part.refresh_from_db()
    assert (part.state, rows_in_use(source)) == ("done", 10)


def test_old_segments_are_not_put_into_use_one_by_one(source: Source) -> None:
    send(request(start(source), {0: [(0, 10)]}))
    plan = chosen(source, 0, 10)[0]
    part = begun(source, plan)
    read_again(source, request(reading(source), {0: [(0, 10)]}))
    assert mark_used(source.datasource, SegmentSelection()).segments == 0
    rewinds.undo_part(part.pk, "somebody")
    assert mark_used(source.datasource, SegmentSelection()).segments == 0
    mark_unused(source.datasource, SegmentSelection(), by="somebody", what="test")
    assert mark_used(source.datasource, SegmentSelection()).segments == 1


def refusals(source: Source, **choice: Any) -> list[str]:
    return [g.refusal for g in select(source, Choice(**choice))[0]]


def test_rows_of_others_are_refused(source: Source) -> None:
    send(request(start(source), {0: [(0, 10)]}))
    other = make_source("flights", "topic-id-2", group="others")
    begins = fence.take_epoch(task_id="task-2", datasource=other.datasource, source=other).epoch
    send(request(begins, {0: [(0, 5)]}, topic_id="topic-id-2"), task="task-2")
    day = (DAY, DAY + timedelta(days=1))
    assert sorted(refusals(source, times=day)) == ["", "Its records are of topic 'topic', as 'others' reads it."]
    merge_all(source)
    assert refusals(source, offsets={0: [(0, 1)]}) == ["Its records are of topic 'topic', as 'others' reads it."]


def test_rows_without_receipts_are_refused(source: Source) -> None:
    send(request(start(source), {0: [(0, 10)]}))
    Receipt.objects.all().delete()
    [refusal] = refusals(source, times=(DAY, DAY + timedelta(days=1)))
    assert refusal.startswith("No receipt says from which records 10 of its rows come.")


def test_quarantined_records_come_out_and_go_back(source: Source) -> None:
    outcomes = {0: Outcomes(unparseable=[(8, 10)])}
    send(request(start(source), {0: [(0, 8)]}, outcomes, quarantined=[poison(8), poison(9)]))
    stored, loose = chosen(source, 0, 10)
    assert (stored.ranges, loose.ranges, loose.segments) == ({0: [(0, 8)]}, {0: [(8, 10)]}, ())
    part = begun(source, loose)
    assert replays.take_records(QuarantinedRecord.objects.all(), READER) == 2
    still = request(reading(source), {0: [(8, 9)]}, {0: Outcomes(unparseable=[(9, 10)])}, quarantined=[poison(9)])
    read_again(source, still)
    states = dict(QuarantinedRecord.objects.values_list("offset", "state"))
    assert states == {8: "stored", 9: "kept"}
    totals = datasource_totals(source.datasource)
    assert (totals.polled, totals.published, totals.unparseable, totals.quarantined) == (10, 9, 1, 1)
    rewinds.undo_part(part.pk, "somebody")
    assert dict(QuarantinedRecord.objects.values_list("offset", "state")) == {8: "kept", 9: "kept"}
    totals = datasource_totals(source.datasource)
    assert (totals.polled, totals.published, totals.unparseable, totals.quarantined) == (10, 8, 2, 2)
    assert_sums(source)


def test_what_was_read_again_since_is_not_undone(source: Source) -> None:
    """A record that the first rewind threw away has its row from the second one."""
    send(request(start(source), {0: [(0, 10)]}))
    first = begun(source, chosen(source, 0, 10)[0])
    read_again(source, request(reading(source), {0: [(0, 9)]}, {0: Outcomes(thrown_away=[(9, 10)])}))
    loose = chosen(source, 9, 10)
    assert [p.segments for p in loose] == [()]
    second = begun(source, loose[0], "rewind_2")
    read_again(source, request(reading(source, "rewind_2"), {0: [(9, 10)]}), "rewind_2")
    assert rows_in_use(source) == 10
    with pytest.raises(Conflict, match="1 of its records were read again since"):
        rewinds.undo_part(first.pk, "somebody")
    rewinds.undo_part(second.pk, "somebody")
    rewinds.undo_part(first.pk, "somebody")
    assert rows_in_use(source) == 10
    assert_sums(source)


def test_quarantined_records_in_use_are_not_undone(source: Source) -> None:
    send(request(start(source), {0: [(0, 10)]}))
    part = begun(source, chosen(source, 0, 10)[0])
    outcomes = {0: Outcomes(unparseable=[(9, 10)])}
    read_again(source, request(reading(source), {0: [(0, 9)]}, outcomes, quarantined=[poison(9)]))
    replays.take_records(QuarantinedRecord.objects.all(), "replay_1")
    with pytest.raises(Conflict, match="are being replayed"):
        rewinds.undo_part(part.pk, "somebody")
    assert rows_in_use(source) == 9


def test_fates_say_where_a_record_is(source: Source) -> None:
    send(request(start(source), {0: [(0, 10)]}))
    part = begun(source, chosen(source, 0, 10)[0])
    [made] = read_again(source, request(reading(source), {0: [(0, 10)]}))
    before, now = record_fate(ROOT, topic="topic", partition=0, offset=3)
    assert before.explanation.startswith("Stored, then replaced by somebody at ")
    assert now.explanation == "A rewind read it again. It is stored in the segments named here."
    assert [str(s.id) for s in now.segments] == [made]
    rewinds.undo_part(part.pk, "somebody")
    [fate] = record_fate(ROOT, topic="topic", partition=0, offset=3)
    assert (fate.explanation, str(fate.segments[0].id) == made) == ("It is stored in the segments named here.", False)


def test_rows_may_come_into_another_interval(source: Source) -> None:
    send(request(start(source), {0: [(0, 10)]}))
    part = begun(source, chosen(source, 0, 10)[0])
    moved: list[SegmentFile] = [segment({0: [(0, 4)]}), segment({0: [(4, 10)]}, DAY - timedelta(days=1))]
    read_again(source, request(reading(source), segments=moved))
    assert rows_in_use(source) == 10
    assert_sums(source)
    rewinds.undo_part(part.pk, "somebody")
    assert list(Segment.objects.filter(used=True).values_list("rows", flat=True)) == [10]
    assert_sums(source)


def test_a_dry_run_is_noted_and_stores_nothing(source: Source) -> None:
    send(request(start(source), {0: [(0, 10)]}))
    before = datasource_totals(source.datasource)
    part = begun(source, chosen(source, 0, 10)[0])
    Rewind.objects.update(dry_run=True)
    outcomes = {0: Outcomes(unparseable=[(9, 10)], thrown_away=[(7, 9)])}
    assert read_again(source, request(reading(source), {0: [(0, 7)]}, outcomes, quarantined=[poison(9)])) == []
    part.refresh_from_db()
    assert (part.state, part.rows_after, part.after["thrown_away"], part.after["quarantined"]) == ("read", 7, 2, 1)
    assert (Segment.objects.count(), Receipt.objects.count(), QuarantinedRecord.objects.count()) == (1, 1, 0)
    totals = datasource_totals(source.datasource)
    assert (totals.polled, totals.published) == (before.polled, before.published)
    with pytest.raises(Conflict, match="nothing to undo"):
        rewinds.undo_part(part.pk, "somebody")
