"""A rewind's part that needs several publishes: nobody sees one before the last, and nothing is lost or doubled."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.common.errors import Conflict, InvalidInput
from controlplane.metrics.record_sums import record_totals, sum_up
from controlplane.publishing import fence, rewinds
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.models import Publish, Receipt, Rewind, RewindPart, RewindPiece
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.publishing.rewind_pieces import drop_unneeded
from controlplane.publishing.selectors.fate import outcomes_at, record_fate
from controlplane.publishing.selectors.totals import datasource_totals
from controlplane.quarantine import replays
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.segments.models import HeldFile, Segment
from controlplane.segments.orphans import _orphans
from controlplane.sources.models import Source
from controlplane.tasks.models import Task
from ingestion.specs.messages.deep_storage import SweepPage, SweptFile
from ingestion.specs.messages.protocol import AbandonRequest, ColumnSummary, Outcomes
from tests.integration.test_rewinds import (
    READER,
    ROOT,
    assert_sums,
    begun,
    chosen,
    merge_all,
    poison,
    read_again,
    reading,
    rows_in_use,
)
from tests.support.publishes import make_source, request, send, start


@pytest.fixture
def source(db: None) -> Source:
    make_receipt_partitions()
    return make_source("flights")


@pytest.fixture
def part(source: Source) -> RewindPart:
    """Ten records of one segment are to be read again."""
    send(request(start(source), {0: [(0, 10)]}))
    return begun(source, chosen(source, 0, 10)[0])


def test_pieces_become_visible_with_the_last(source: Source, part: RewindPart) -> None:
    epoch = reading(source)
    before = datasource_totals(source.datasource)
    first = request(epoch, {0: [(0, 4)]}, {0: Outcomes(unparseable=[(4, 5)])}, quarantined=[poison(4)])
    assert read_again(source, first) == []
    assert (rows_in_use(source), Segment.objects.count(), QuarantinedRecord.objects.count()) == (10, 1, 0)
    assert outcomes_at(source, 0, 3) == {"stored"}
    assert datasource_totals(source.datasource) == before
    second = request(epoch, {0: [(7, 9)]}, {0: Outcomes(thrown_away=[(9, 10)])})
    [made] = read_again(source, second) or read_again(source, request(epoch, {0: [(5, 7)]}))
    part.refresh_from_db()
    assert (part.state, part.rows_before, part.rows_after, len(part.made), len(part.publish_ids)) == (
        "done",
        10,
        8,
        3,
        3,
    )
    assert (rows_in_use(source), str(made) in map(str, part.made)) == (8, True)
    assert QuarantinedRecord.objects.get().offset == 4
    assert [outcomes_at(source, 0, n) - {"stored"} for n in (4, 9)] == [{"unparseable"}, {"thrown_away"}]
    totals = datasource_totals(source.datasource)
    assert (totals.polled, totals.published, totals.thrown_away, totals.quarantined) == (10, 8, 1, 1)
    assert not RewindPiece.objects.exists() and not HeldFile.objects.exists()
    assert_sums(source)
    assert record_fate(ROOT, topic="topic", partition=0, offset=3)[-1].explanation.startswith("A rewind read it again.")
    assert chosen(source, 0, 10)[0].ranges == {0: [(0, 4), (5, 9)]}
    rewinds.undo_part(part.pk, "somebody")
    assert (rows_in_use(source), Receipt.objects.count(), QuarantinedRecord.objects.count()) == (10, 1, 0)
    assert_sums(source)


def test_a_piece_is_answered_again_and_not_taken_twice(source: Source, part: RewindPart) -> None:
    epoch = reading(source)
    piece = request(epoch, {0: [(0, 4)]})
    assert read_again(source, piece) == read_again(source, piece) == []
    question = AbandonRequest(epoch=epoch, publish_id=piece.publish_id)
    assert fence.abandon(task_id=READER, number=0, request=question)
    with pytest.raises(Conflict, match="1 of these records are not the part's, or were read for it before"):
        read_again(source, request(epoch, {0: [(3, 6)]}))
    given_up = request(epoch, {0: [(4, 6)]})
    question = AbandonRequest(epoch=epoch, publish_id=given_up.publish_id)
    assert not fence.abandon(task_id=READER, number=0, request=question)
    with pytest.raises(PublishRefused, match="given up"):
        read_again(source, given_up)
    read_again(source, request(epoch, {0: [(4, 10)]}))
    part.refresh_from_db()
    assert (part.state, rows_in_use(source)) == ("done", 10)


def test_another_task_goes_on_where_the_first_one_died(source: Source, part: RewindPart) -> None:
    dead = reading(source)
    read_again(source, request(dead, {0: [(0, 4)]}))
    RewindPart.objects.update(task_id="rewind_2")
    with pytest.raises(PublishRefused):
        read_again(source, request(dead, {0: [(4, 10)]}))
    read_again(source, request(reading(source, "rewind_2"), {0: [(4, 10)]}), "rewind_2")
    part.refresh_from_db()
    assert (part.state, rows_in_use(source)) == ("done", 10)
    tasks = Receipt.objects.filter(publish_id__in=part.publish_ids).values_list("task_id", flat=True)
    assert sorted(tasks) == [READER, "rewind_2"]
    assert set(Publish.objects.values_list("created_at", flat=True)) >= {part.ended_at}
    assert_sums(source)


def test_a_merge_meanwhile_refuses_the_last_piece(source: Source, part: RewindPart) -> None:
    epoch = reading(source)
    read_again(source, request(epoch, {0: [(0, 4)]}))
    merge_all(source)
    with pytest.raises(PublishRefused, match="merged or removed meanwhile"):
        read_again(source, request(epoch, {0: [(4, 10)]}))
    assert (rows_in_use(source), RewindPiece.objects.count()) == (10, 1)


def test_quarantined_records_of_pieces_come_out_and_go_back(source: Source) -> None:
    outcomes = {0: Outcomes(unparseable=[(7, 10)])}
    send(request(start(source), {0: [(0, 7)]}, outcomes, quarantined=[poison(n) for n in (7, 8, 9)]))
    _, loose = chosen(source, 0, 10)
    part = begun(source, loose)
    replays.take_records(QuarantinedRecord.objects.all(), READER)
    epoch = reading(source)
    read_again(source, request(epoch, None, {0: Outcomes(unparseable=[(9, 10)])}, quarantined=[poison(9)]))
    assert set(QuarantinedRecord.objects.values_list("state", flat=True)) == {"replaying"}
    read_again(source, request(epoch, {0: [(7, 8)]}, {0: Outcomes(thrown_away=[(8, 9)])}))
    states = dict(QuarantinedRecord.objects.values_list("offset", "state"))
    assert states == {7: "stored", 8: "thrown_away", 9: "kept"}
    totals = datasource_totals(source.datasource)
    assert (totals.polled, totals.published, totals.thrown_away, totals.unparseable) == (10, 8, 1, 1)
    rewinds.undo_part(part.pk, "somebody")
    assert set(QuarantinedRecord.objects.values_list("state", flat=True)) == {"kept"}
    assert_sums(source)


def test_files_of_pieces_are_no_orphans_until_their_part_is_over(source: Source, part: RewindPart) -> None:
    piece = request(reading(source), {0: [(0, 4)]})
    read_again(source, piece)
    path = HeldFile.objects.get().path
    page = SweepPage(files=[SweptFile(path=path, size_bytes=1), SweptFile(path="flights/other.parquet", size_bytes=1)])
    drop_unneeded()
    assert _orphans(page) == [1]
    twice = [f.model_copy(update={"offsets": {0: [(4, 8)]}}) for f in piece.segments]
    epoch = reading(source)
    with pytest.raises(InvalidInput, match="another publish's"):
        read_again(source, request(epoch, segments=twice))
    RewindPart.objects.update(state="cancelled")
    drop_unneeded()
    assert _orphans(page) == [0, 1]
    assert not RewindPiece.objects.exists()


def test_a_deleted_datasource_keeps_no_pieces(source: Source, part: RewindPart) -> None:
    read_again(source, request(reading(source), {0: [(0, 4)]}))
    source.datasource.deleted_at = timezone.now()
    source.datasource.save()
    drop_unneeded()
    assert not RewindPiece.objects.exists() and not HeldFile.objects.exists()


def column(name: str, values: int, total: int) -> ColumnSummary:
    return ColumnSummary(name=name, type="long", values=values, total=total, checksum=total)


def test_a_dry_run_of_pieces_stores_nothing(source: Source, part: RewindPart) -> None:
    Rewind.objects.update(dry_run=True)
    epoch = reading(source)
    bad = request(epoch, {0: [(0, 4)]}, {0: Outcomes(unparseable=[(4, 5)])}, quarantined=[poison(4)])
    assert rewinds.compared_files(READER) == [Segment.objects.get().path]
    read_again(
        source, bad.model_copy(update={"columns_before": [column("n", 10, 45)], "columns_after": [column("n", 4, 6)]})
    )
    assert rewinds.compared_files(READER) == []
    assert not HeldFile.objects.exists() and "e30=" not in RewindPiece.objects.get().request
    last = request(epoch, {0: [(5, 10)]})
    read_again(source, last.model_copy(update={"columns_after": [column("n", 5, 35), column("x", 1, 0)]}))
    part.refresh_from_db()
    told = [(c["name"], c["values_before"], c["values_after"], c["sum_after"]) for c in part.changes["columns"]]
    assert told == [("n", 10, 9, 41), ("x", 0, 1, 0)]
    assert (part.state, part.rows_after, part.after["polled"], part.after["unparseable"]) == ("read", 9, 10, 1)
    assert (Segment.objects.count(), QuarantinedRecord.objects.count(), RewindPiece.objects.count()) == (1, 0, 0)


def test_prometheus_counts_what_an_ended_task_held(source: Source, part: RewindPart) -> None:
    """A task's sums are kept some minutes after its end: not while others are still to make its rows visible."""
    long_ago = timezone.now() - timedelta(hours=1)
    Task.objects.create(
        pk=READER, kind="rewind", datasource=source.datasource, spec={}, created_at=long_ago, ended_at=long_ago
    )
    read_again(source, request(reading(source), {0: [(0, 4)]}))
    sum_up()
    RewindPart.objects.update(task_id="rewind_2")
    read_again(source, request(reading(source, "rewind_2"), {0: [(4, 10)]}), "rewind_2")
    sum_up()
    assert record_totals()[source.datasource_id].counters["published"] == 20
