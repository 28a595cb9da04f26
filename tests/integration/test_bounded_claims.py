"""Bounded reads on a real PostgreSQL: pieces are claimed, an offset is stored once, and other readers pass over it."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.common.errors import InvalidInput
from controlplane.connections.kafka import TopicOffsets
from controlplane.lag.topic_lag import record_lag
from controlplane.publishing import claims, fence
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.models import ProgressKey
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.publishing.selectors.fate import record_fate
from controlplane.sources.models import Source
from controlplane.teams.models import User
from ingestion.specs.messages.protocol import Advance, ClaimAnswer, ClaimRequest, Outcomes
from ingestion.specs.source_traits import SHARE_GROUPS, STORED_OFFSETS
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from tests.support.publishes import make_source, request, send, settled_offsets, start
from tests.support.stored_offsets import kafka_spec

TOPIC = "topic-id-1"
READ = "bounded-1"
NOTHING = (None, None)


@pytest.fixture(params=[STORED_OFFSETS.kind, SHARE_GROUPS.kind])
def any_source(db: None, request: pytest.FixtureRequest) -> Source:
    """A bounded read does the same with each."""
    make_receipt_partitions()
    return make_source("flights", group="supervisor", kind=request.param)


@pytest.fixture
def source(db: None) -> Source:
    make_receipt_partitions()
    return make_source("flights", group="supervisor", kind=STORED_OFFSETS.kind)


def begin(source: Source, task: str = READ) -> int:
    return fence.take_epoch(task_id=task, datasource=source.datasource, source=source, bounded=True).epoch


def pieces(epoch: int, *ranges: tuple[int, int, int], task: str = READ) -> dict[int, tuple[int | None, int | None]]:
    message = ClaimRequest(epoch=epoch, topic_id=TOPIC, partitions=sorted({p for p, *_ in ranges}))
    answer = claims.claim_within(task_id=task, number=0, request=message, ranges=ranges)
    return {p: (c.next_offset, c.until) for p, c in answer.partitions.items()}


def store(epoch: int, first: int, last: int, task: str = READ) -> None:
    """Offsets of partition 0, all of them rows."""
    progress = {0: Advance(start=first, end=last)}
    send(request(epoch, {0: [(first, last)]}, progress=progress), task=task)


def ordinary(epoch: int, **asked: Any) -> ClaimAnswer:
    message = ClaimRequest(epoch=epoch, topic_id=TOPIC, partitions=[0], **asked)
    return claims.claim(task_id="task-1", number=0, request=message, may_reset=False)


def test_pieces_are_what_is_not_settled(any_source: Source) -> None:
    epoch = begin(any_source)
    ranges = ((0, 10, 30), (0, 50, 60), (1, 0, 5))
    assert pieces(epoch, *ranges) == {0: (10, 30), 1: (0, 5)}
    store(epoch, 15, 20)
    assert pieces(epoch, *ranges) == {0: (10, 15), 1: (0, 5)}
    store(epoch, 10, 15)
    store(epoch, 20, 25)
    assert pieces(epoch, *ranges) == {0: (25, 30), 1: (0, 5)}
    store(epoch, 25, 30)
    assert pieces(epoch, *ranges) == {0: (50, 60), 1: (0, 5)}
    store(epoch, 50, 60)
    assert pieces(epoch, *ranges) == {0: NOTHING, 1: (0, 5)}


def test_of_two_reads_of_one_offset_the_second_is_refused(any_source: Source) -> None:
    first, second = begin(any_source), begin(any_source, "bounded-2")
    store(first, 0, 20)
    with pytest.raises(PublishRefused) as caught:
        store(second, 10, 30, "bounded-2")
    assert (caught.value.refusal.code, caught.value.refusal.stored) == ("offsets", {0: None})
    assert pieces(second, (0, 10, 30), task="bounded-2") == {0: (20, 30)}
    store(second, 20, 30, "bounded-2")
    assert settled_offsets(any_source) == {0: [(0, 30)]}


def test_an_older_start_of_its_indexer_may_not_publish(any_source: Source) -> None:
    old = begin(any_source)
    begin(any_source)
    with pytest.raises(PublishRefused) as caught:
        store(old, 0, 10)
    assert caught.value.refusal.code == "fenced"


def test_outcomes_must_cover_what_was_read(any_source: Source) -> None:
    epoch = begin(any_source)
    with pytest.raises(InvalidInput, match="the progress is"):
        send(request(epoch, {0: [(0, 5)]}, progress={0: Advance(start=0, end=10)}), task=READ)
    empty = {0: Outcomes(empty=[(5, 10)])}
    send(request(epoch, {0: [(0, 5)]}, empty, progress={0: Advance(start=0, end=10)}), task=READ)
    assert pieces(epoch, (0, 0, 10)) == {0: NOTHING}


def test_it_moves_no_stored_offset(source: Source) -> None:
    store(begin(source), 0, 10)
    assert list(ProgressKey.objects.filter(source=source).values_list("next_offset", "attempts")) == [(None, 0)]


def test_an_ordinary_reader_passes_over_what_a_bounded_read_has_settled(source: Source) -> None:
    """Its start, too: from the first record on, and somebody has read that already."""
    bounded = begin(source)
    store(bounded, 0, 10)
    store(bounded, 20, 30)
    epoch = start(source)
    ordinary(epoch)
    claimed = ordinary(epoch, first_run=True, starts={0: 0}).partitions[0]
    assert (claimed.next_offset, claimed.until) == (10, 20)
    store(epoch, 10, 20, "task-1")
    claimed = ordinary(epoch).partitions[0]
    assert (claimed.next_offset, claimed.until) == (30, None)
    store(epoch, 30, 40, "task-1")
    assert settled_offsets(source) == {0: [(0, 40)]}


def test_an_ordinary_reader_that_is_overtaken_is_refused_and_claims_again(source: Source) -> None:
    """What it read of a partition meanwhile is read again, up to where the other one has begun."""
    epoch = start(source)
    ordinary(epoch, first_run=True, starts={0: 0})
    store(begin(source), 50, 60)
    with pytest.raises(PublishRefused) as caught:
        store(epoch, 0, 100, "task-1")
    assert (caught.value.refusal.code, caught.value.refusal.stored) == ("offsets", {0: None})
    claimed = ordinary(epoch).partitions[0]
    assert (claimed.next_offset, claimed.until) == (0, 50)


def test_a_record_that_kills_its_readers_is_suspected(source: Source) -> None:
    """Each start since the last publish counts; those of other readers do not."""

    def attempts(epoch: int) -> int:
        message = ClaimRequest(epoch=epoch, topic_id=TOPIC, partitions=[0], new_process=True)
        answer = claims.claim_within(task_id=READ, number=0, request=message, ranges=[(0, 0, 100)])
        return answer.partitions[0].attempts

    assert [attempts(begin(source)) for _ in range(3)] == [1, 2, 3]
    epoch = begin(source)
    store(epoch, 0, 10)
    assert attempts(epoch) == 0
    assert attempts(begin(source)) == 1


def test_where_a_reader_began_is_kept(source: Source) -> None:
    """What lies between a bounded read and that place is no lag."""
    epoch = start(source)
    ordinary(epoch, first_run=True, starts={0: 1_000})
    store(begin(source), 0, 10)
    store(epoch, 1_000, 1_100, "task-1")
    assert source.keys.get().began_at == 1_000
    io_config = parse_supervisor_spec(kafka_spec("flights", topic="topic")).spec.ioConfig
    log = TopicOffsets(TOPIC, {0: 0}, {0: 1_150}, {0: 1_150})
    assert record_lag(source.datasource, io_config, "supervisor", log).total == 50
    claims.reset_stored_offsets(source, [], {0: 500}, "somebody")
    assert source.keys.get().began_at == 500
    claims.reset_stored_offsets(source, [], None, "somebody")
    assert source.keys.get().began_at is None


def test_a_bounded_read_ahead_of_a_reader_takes_nothing_else_from_its_lag(source: Source) -> None:
    """Nor does one that is ahead of where a reset has put it."""
    epoch = start(source)
    ordinary(epoch, first_run=True, starts={0: 0})
    store(begin(source), 30, 40)
    io_config = parse_supervisor_spec(kafka_spec("flights", topic="topic")).spec.ioConfig
    log = TopicOffsets(TOPIC, {0: 0}, {0: 100}, {0: 100})
    assert record_lag(source.datasource, io_config, "supervisor", log).total == 90
    store(epoch, 0, 30, "task-1")
    claims.reset_stored_offsets(source, [], {0: 10}, "somebody")
    store(begin(source), 50, 60)
    assert record_lag(source.datasource, io_config, "supervisor", log).total == 80


@pytest.mark.parametrize("bounded_read", [True, False])
def test_what_a_reader_has_skipped_is_not_before_its_start(source: Source, bounded_read: bool) -> None:
    """Whatever else is settled of its partition: nothing, or what a bounded read has read below and above."""
    start(source)
    reader = User.objects.create_superuser("reader")
    claims.store_first_offsets(source, {0: 1_000})
    assert claims.skip_stored_offsets(source, [], {0: 0}, {0: 2_000}, "why") == {0: (1_000, 2_000)}
    if bounded_read:
        store(begin(source), 0, 10)
        store(begin(source), 1_800, 1_900)

    def explained(offset: int) -> str:
        return record_fate(reader, topic=source.topic, partition=0, offset=offset)[0].explanation

    assert "reading of this partition began at offset 1000." in explained(500)
    assert [explained(offset)[:8] for offset in (1_000, 1_500, 1_999)] == ["Skipped:"] * 3
    assert explained(2_000).startswith("Not settled yet")
    claims.reset_stored_offsets(source, [], {0: 500}, "somebody")
    assert explained(700).startswith("Not settled yet"), "from there on it is read again"


def test_where_a_share_group_began_is_kept_when_a_bounded_read_starts(db: None) -> None:
    make_receipt_partitions()
    group = make_source("flights", group="supervisor")
    epoch = start(group)
    send(request(epoch, {0: [(1_000, 1_100)]}))
    bounded = begin(group)
    pieces(bounded, (0, 0, 10))
    store(bounded, 0, 10)
    pieces(bounded, (0, 0, 10))
    assert group.keys.get().began_at == 1_000
