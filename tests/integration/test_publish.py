"""The publish transaction on a real PostgreSQL: atomic, fenced, idempotent, each offset once."""

from __future__ import annotations

import base64
import random
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone

from controlplane.common.errors import Conflict, InvalidInput, Unavailable
from controlplane.publishing import fence, folding
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.models import OFFSET_BITS, IndexerFence, ProgressKey, Publish, Receipt, SettledRange
from controlplane.publishing.offset_gaps import offset_gaps
from controlplane.publishing.publish import publish
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.quarantine.selectors.lists import list_faulty
from controlplane.segments.models import Interval, Segment
from controlplane.sources.models import Source, SourceEvent
from controlplane.teams.models import User
from ingestion.specs import offsets
from ingestion.specs.counters import Counters, Unpublished
from ingestion.specs.messages.protocol import AbandonRequest, FaultyRecord, Outcomes
from ingestion.specs.messages.protocol import QuarantinedRecord as WireRecord
from tests.support.publishes import DAY, TASK, make_source, request, segment, send, settled_offsets, start


@pytest.fixture
def source(db: None) -> Source:
    return make_source("flights")


def test_records_with_a_faulty_field_are_kept_beside_their_rows(source: Source) -> None:
    plain = request(start(source), {0: [(0, 10)]})
    faulty = FaultyRecord(
        partition=0,
        offset=3,
        timestamp_ms=1,
        delivery_count=2,
        error="bad",
        payload=base64.b64encode(b"x"),
        payload_size=9,
    )
    counters = plain.counters.model_copy(update={"processed_with_error": 1})
    send(plain.model_copy(update={"counters": counters, "faulty": [faulty]}))
    kept: Any = list_faulty(User(is_superuser=True), TASK).get()
    assert (kept.offset, kept.error, bytes(kept.payload_start), kept.payload_size) == (3, "bad", b"x", 9)
    assert kept.source == source
    with pytest.raises(InvalidInput, match="processed_with_error is 0 but the offsets make 1"):
        send(request(start(source), {0: [(10, 20)]}).model_copy(update={"faulty": [faulty]}))


@pytest.mark.django_db(transaction=True)
def test_a_publish_waits_four_times_for_the_metadata_store(source: Source, tmp_path: Path) -> None:
    """Its lock with all that it must know, the intervals, all else that it writes, and the commit."""
    epoch = start(source)
    send(request(epoch, {0: [(0, 10)], 1: [(0, 10)]}))  # the schema and the progress keys are there from now on
    what = request(epoch, segments=[segment({0: [(10, 20)], 1: [(10, 20)]})])
    with (tmp_path / "trace").open("w") as trace:
        connection.connection.pgconn.trace(trace.fileno())
        publish(task_id=TASK, number=0, request=what)
        connection.connection.pgconn.untrace()
    sent = re.findall(r"\tF\t\d+\t(Sync|Query)\b", (tmp_path / "trace").read_text())
    assert sent == ["Sync"] * 4 + ["Query"]  # the first is the beginning's: in a pipeline nobody waits for that


def test_segments_progress_receipt_and_totals_appear_together(source: Source) -> None:
    epoch = start(source)
    poison = WireRecord(
        partition=1,
        offset=7,
        timestamp_ms=1,
        delivery_count=1,
        reason="unparseable",
        error="bad",
        payload=base64.b64encode(b"{\\"),
    )
    outcomes = {1: Outcomes(unparseable=[(7, 8)], thrown_away=[(8, 10)])}
    ids = send(request(epoch, {0: [(0, 5)], 1: [(5, 7)]}, outcomes, quarantined=[poison]))
    assert [str(s.id) for s in Segment.objects.all()] == ids
    assert settled_offsets(source) == {0: [(0, 5)], 1: [(5, 10)]}
    held = IndexerFence.objects.get()
    assert (held.polled, held.published, held.unparseable, held.thrown_away) == (10, 7, 1, 2)
    receipt = Receipt.objects.get(key__partition=1)
    assert receipt.outcomes == {"stored": [[5, 7, 0]], "unparseable": [[7, 8]], "thrown_away": [[8, 10]]}
    assert receipt.segment_ids == ids
    kept = QuarantinedRecord.objects.get()
    assert (kept.partition, kept.offset, bytes(kept.payload or b"")) == (1, 7, b"{\\")


def test_the_same_publish_again_answers_the_same_and_changes_nothing(source: Source) -> None:
    what = request(start(source), {0: [(0, 5)]})
    first = send(what)
    assert send(what) == first
    assert Segment.objects.count() == 1
    assert IndexerFence.objects.get().published == 5


def test_an_old_epoch_is_fenced(source: Source) -> None:
    old = start(source)
    start(source)
    with pytest.raises(PublishRefused) as refused:
        send(request(old, {0: [(0, 5)]}))
    assert refused.value.refusal.code == "fenced"
    assert not Segment.objects.exists()
    assert not SettledRange.objects.exists()


def test_another_topic_id_is_fenced(source: Source) -> None:
    with pytest.raises(PublishRefused) as refused:
        send(request(start(source), {0: [(0, 5)]}, topic_id="topic-id-2"))
    assert refused.value.refusal.code == "fenced"


def test_settled_offsets_are_refused_with_exactly_the_overlap(source: Source) -> None:
    epoch = start(source)
    send(request(epoch, {0: [(0, 5), (10, 15)], 1: [(0, 100)]}))
    with pytest.raises(PublishRefused) as refused:
        send(request(epoch, {0: [(3, 12)], 2: [(0, 5)]}))
    assert refused.value.refusal.code == "duplicates"
    assert refused.value.refusal.duplicates == {0: [(3, 5), (10, 12)]}
    assert Segment.objects.count() == 1
    send(request(epoch, {0: [(5, 10)], 2: [(0, 5)]}, {0: Outcomes(duplicate=[(3, 5), (10, 12)])}))
    assert settled_offsets(source) == {0: [(0, 15)], 1: [(0, 100)], 2: [(0, 5)]}
    assert IndexerFence.objects.get().duplicates == 4


def test_two_sources_with_the_same_offsets_do_not_meet(source: Source) -> None:
    other = make_source("other", group="another-group")
    send(request(start(source), {0: [(0, 5)]}))
    send(request(start(other, task="task-2"), {0: [(0, 5)]}), task="task-2")
    assert settled_offsets(source) == settled_offsets(other) == {0: [(0, 5)]}


def test_an_abandoned_publish_never_commits(source: Source) -> None:
    epoch = start(source)
    what = request(epoch, {0: [(0, 5)]})
    ask = AbandonRequest(epoch=epoch, publish_id=what.publish_id)
    assert fence.abandon(task_id=TASK, number=0, request=ask) is False
    with pytest.raises(PublishRefused) as refused:
        send(what)
    assert refused.value.refusal.code == "abandoned"
    assert not SettledRange.objects.exists()


def test_abandoning_a_committed_publish_says_so(source: Source) -> None:
    epoch = start(source)
    what = request(epoch, {0: [(0, 5)]})
    send(what)
    ask = AbandonRequest(epoch=epoch, publish_id=what.publish_id)
    assert fence.abandon(task_id=TASK, number=0, request=ask) is True
    assert not Publish.objects.filter(abandoned=True).exists()


@pytest.mark.parametrize(
    ("counters", "word"),
    [
        (Counters(polled=6, published=6), "published"),
        (Counters(polled=5, published=4, rolled_up=1), "published"),
        (Counters(polled=6, published=5, thrown_away=1), "thrown_away"),
        (Counters(polled=6, published=5, unparseable=1), "unparseable"),
        (Counters(polled=6, published=5, released=1), "released"),
    ],
)
def test_counters_that_contradict_the_offsets_are_refused(source: Source, counters: Counters, word: str) -> None:
    what = request(start(source), {0: [(0, 5)]}).model_copy(update={"counters": counters})
    with pytest.raises(InvalidInput, match=word):
        send(what)
    assert not Segment.objects.exists()


def test_an_offset_with_two_outcomes_is_refused(source: Source) -> None:
    with pytest.raises(InvalidInput, match="two outcomes"):
        send(request(start(source), {0: [(0, 5)]}, {0: Outcomes(thrown_away=[(4, 6)])}))


def test_partition_numbers_go_on_within_an_interval(source: Source) -> None:
    epoch = start(source)
    send(request(epoch, segments=[segment({0: [(0, 5)]}), segment({0: [(5, 9)]})]))
    send(request(epoch, segments=[segment({0: [(9, 12)]}), segment({0: [(12, 13)]}, DAY + timedelta(days=1))]))
    numbers = list(Segment.objects.order_by("interval_start", "partition_num").values_list("partition_num", flat=True))
    assert numbers == [0, 1, 2, 0]
    assert {i.version for i in Interval.objects.all()} == {source.datasource.append_version}


def test_gaps_and_early_duplicates_raise_alarms(source: Source) -> None:
    what = request(start(source), outcomes={0: Outcomes(gap=[(0, 10)], empty=[(10, 12)])})
    send(what.model_copy(update={"early_duplicates": 3}))
    kinds = set(SourceEvent.objects.filter(alarm=True).values_list("kind", flat=True))
    assert kinds == {SourceEvent.Kind.GAP, SourceEvent.Kind.EARLY_DUPLICATE}
    assert settled_offsets(source) == {0: [(0, 12)]}


def test_a_share_group_on_a_topic_belongs_to_one_datasource(source: Source) -> None:
    with pytest.raises(Conflict, match="another datasource"):
        make_source("other")


def test_a_topic_made_again_gets_a_source_of_its_own(source: Source) -> None:
    again = make_source("flights", topic_id="topic-id-2")
    source.refresh_from_db()
    assert (source.current, again.current) == (False, True)
    event = SourceEvent.objects.get(kind=SourceEvent.Kind.TOPIC_RECREATED)
    assert "topic-id-1" in event.detail
    assert "topic-id-2" in event.detail
    with pytest.raises(Conflict, match="recreated"):
        make_source("flights", topic_id="topic-id-1")


def test_what_an_epoch_released_is_kept_when_the_next_begins(source: Source) -> None:
    epoch = start(source)

    def told(of: int, **counts: int) -> None:
        fence.record_unpublished(task_id=TASK, number=0, epoch=of, unpublished=Unpublished(**counts))

    told(epoch, released=7, redelivered=2)
    told(epoch, released=5, redelivered=1)  # a late heartbeat
    newer = start(source)
    told(epoch, released=9, redelivered=9)  # from before
    told(newer, released=1)
    held = IndexerFence.objects.get()
    assert (held.released_before, held.released_now) == (7, 1)


def test_folding_joins_neighbours_and_keeps_holes(source: Source) -> None:
    epoch = start(source)
    taken = [o for o in range(0, 300, 3) if o != 150]
    for low in random.Random(5).sample(taken, len(taken)):
        send(request(epoch, {0: [(low, low + 3)]}))
    assert SettledRange.objects.count() == 99
    assert folding.fold() == 97
    assert settled_offsets(source) == {0: [(0, 150), (153, 300)]}
    assert [(h.partition, h.start, h.end) for h in offset_gaps(source, timezone.now() + timedelta(seconds=1), 9)] == [
        (0, 150, 153)
    ]
    with pytest.raises(PublishRefused):
        send(request(epoch, {0: [(149, 152)]}))
    send(request(epoch, {0: [(150, 153)]}))
    assert offset_gaps(source, timezone.now() + timedelta(seconds=1), 9) == []


def test_offsets_beyond_the_key_are_refused(source: Source) -> None:
    with pytest.raises(InvalidInput, match="beyond"):
        send(request(start(source), {0: [(2**OFFSET_BITS, 2**OFFSET_BITS + 1)]}))


def test_receipt_partitions_are_made_ahead(db: None) -> None:
    today = datetime(2031, 3, 30, tzinfo=UTC).date()
    made = make_receipt_partitions(today)
    assert made[0] == "publishing_receipt_20310331"
    assert len(made) == 7
    assert make_receipt_partitions(today) == []


@pytest.mark.django_db(transaction=True)
def test_writers_that_race_for_the_same_offsets_settle_each_once() -> None:
    """Row 4 of the failure matrix: many zombies, one winner for each offset; none fails with anything else."""
    source = make_source("raced")
    epochs = {n: start(source, n) for n in range(4)}
    wrong: list[BaseException] = []
    barrier = threading.Barrier(4)

    def write(number: int) -> None:
        try:
            for base in range(0, 400, 10):
                barrier.wait(30)
                _publish_dropping(number, epochs[number], base)
        except BaseException as error:
            wrong.append(error)
            barrier.abort()
        finally:
            connections.close_all()

    threads = [threading.Thread(target=write, args=(n,)) for n in epochs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == []
    assert settled_offsets(source) == {0: [(0, 405)], 1: [(0, 400)]}
    assert sum(s.rows for s in Segment.objects.all()) == 805
    totals = IndexerFence.objects.all()
    assert sum(w.published for w in totals) == 805
    assert sum(w.polled for w in totals) == sum(w.published + w.duplicates for w in totals)


def _publish_dropping(number: int, epoch: int, base: int) -> None:
    wanted = {0: [(base, base + 15)], 1: [(base, base + 10)]}
    dropped: dict[int, list[tuple[int, int]]] = {}
    while True:
        rest = {p: offsets.subtracted(r, dropped.get(p, [])) for p, r in wanted.items()}
        outcomes = {p: Outcomes(duplicate=r) for p, r in dropped.items()}
        day = DAY + timedelta(days=base % 30)
        stored = {p: r for p, r in rest.items() if r}
        segments = [segment(stored, day)] if stored else []
        try:
            send(request(epoch, segments=segments, outcomes=outcomes), number)
            return
        except PublishRefused as refused:
            assert refused.refusal.code == "duplicates"
            for p, r in refused.refusal.duplicates.items():
                dropped[p] = offsets.merged([*dropped.get(p, []), *r])


def fail_commits(sqlstate: str, times: int) -> None:
    """Have PostgreSQL abort the next publishes, late in their transaction; a sequence counts beyond rollbacks."""
    with connection.cursor() as c:
        c.execute("CREATE SEQUENCE IF NOT EXISTS aborted")
        c.execute("SELECT setval('aborted', 1, false)")
        c.execute(
            "CREATE OR REPLACE FUNCTION abort_publish() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF nextval('aborted') <= {times} THEN RAISE EXCEPTION 'aborted' USING ERRCODE = '{sqlstate}'; END IF;"
            " RETURN NULL; END $$"
        )
        c.execute(
            "CREATE OR REPLACE TRIGGER abort_publish AFTER INSERT ON publishing_publish"
            " FOR EACH ROW EXECUTE FUNCTION abort_publish()"
        )


@pytest.fixture
def commits_work_again(db: None) -> Iterator[None]:
    """Afterwards."""
    yield
    with connection.cursor() as c:
        c.execute("DROP FUNCTION IF EXISTS abort_publish CASCADE")
        c.execute("DROP SEQUENCE IF EXISTS aborted")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("commits_work_again")
@pytest.mark.parametrize("sqlstate", ["40001", "40P01"])
def test_what_postgresql_aborts_is_tried_again_a_few_times(sqlstate: str) -> None:
    """Row 8 of the failure matrix: four aborts are got over; a fifth is told to the indexer, and changed nothing."""
    source = make_source("flights")
    epoch = start(source)
    fail_commits(sqlstate, 4)
    send(request(epoch, {0: [(0, 5)]}))
    assert settled_offsets(source) == {0: [(0, 5)]}
    assert (Segment.objects.count(), IndexerFence.objects.get().published) == (1, 5)
    fail_commits(sqlstate, 5)
    again = request(epoch, {0: [(5, 9)]})
    with pytest.raises(Unavailable, match="send the same publish again"):
        send(again)
    assert settled_offsets(source) == {0: [(0, 5)]}
    assert (Segment.objects.count(), IndexerFence.objects.get().published) == (1, 5)
    send(again)
    assert settled_offsets(source) == {0: [(0, 9)]}


def test_the_constraint_itself_refuses_an_overlap(source: Source) -> None:
    send(request(start(source), {0: [(0, 5)]}))
    key = ProgressKey.objects.get().id << OFFSET_BITS
    with pytest.raises(Exception, match="an_offset_is_settled_once"), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO publishing_settledrange (span, settled_at) VALUES (int8range(%s, %s), now())",
            [key + 4, key + 6],
        )
