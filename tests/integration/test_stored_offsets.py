"""Stored offsets on a real PostgreSQL: claimed, moved by compare and set, never past what is said of them."""

from __future__ import annotations

import threading

import pytest
from django.db import connections

from controlplane.common.errors import InvalidInput
from controlplane.publishing import claims
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.models import IndexerFence, ProgressKey
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.segments.models import Segment
from controlplane.sources.models import Source, SourceEvent
from ingestion.specs.messages.protocol import Advance, ClaimAnswer, ClaimRequest, Outcomes, Reset
from ingestion.specs.source_traits import STORED_OFFSETS
from tests.support.publishes import TASK, make_source, request, send, settled_offsets, start

TOPIC = "topic-id-1"


@pytest.fixture
def source(db: None) -> Source:
    return kept_source()


def kept_source(topic_id: str = TOPIC) -> Source:
    make_receipt_partitions()
    return make_source("flights", topic_id=topic_id, group="supervisor", kind=STORED_OFFSETS.kind)


def claim(epoch: int, number: int = 0, may_reset: bool = False, **asked: object) -> ClaimAnswer:
    body = {"epoch": epoch, "topic_id": TOPIC, "partitions": [0, 1], **asked}
    message = ClaimRequest.model_validate(body)
    return claims.claim(task_id=TASK, number=number, request=message, may_reset=may_reset)


def begin(source: Source, number: int = 0, **starts: int) -> int:
    """An indexer that has claimed partitions 0 and 1, both from offset 0."""
    epoch = start(source, number)
    claim(epoch, number, first_run=True, starts={0: 0, 1: 0})
    return epoch


def stored(source: Source) -> dict[int, int | None]:
    return dict(ProgressKey.objects.filter(source=source).values_list("partition", "next_offset"))


def test_the_first_claim_knows_nothing_and_the_start_is_kept(source: Source) -> None:
    epoch = start(source)
    first = claim(epoch)
    assert first.first_run is True
    assert [c.next_offset for c in first.partitions.values()] == [None, None]
    kept = claim(epoch, first_run=True, starts={0: 5, 1: 7})
    assert {p: c.next_offset for p, c in kept.partitions.items()} == {0: 5, 1: 7}
    assert kept.first_run is False
    again = claim(epoch, first_run=True, starts={0: 100, 1: 100, 2: 100})
    assert {p: c.next_offset for p, c in again.partitions.items()} == {0: 5, 1: 7}
    assert stored(source)[2] is None, "a start that was worked out as if nothing was stored must not be kept later"


def test_a_topic_made_again_is_no_first_run(source: Source) -> None:
    begin(source)
    another = kept_source("topic-id-2")
    epoch = start(another)
    answer = claims.claim(
        task_id=TASK,
        number=0,
        request=ClaimRequest(epoch=epoch, topic_id="topic-id-2", partitions=[0]),
        may_reset=False,
    )
    assert answer.first_run is False
    assert answer.partitions[0].next_offset is None


def test_a_publish_moves_the_stored_offsets_with_its_segments(source: Source) -> None:
    epoch = begin(source)
    moved = {0: Advance(start=0, end=10), 1: Advance(start=0, end=4)}
    outcomes = {0: Outcomes(empty=[(5, 8)], thrown_away=[(8, 10)]), 1: Outcomes(gap=[(0, 4)])}
    send(request(epoch, {0: [(0, 5)]}, outcomes, progress=moved))
    assert stored(source) == {0: 10, 1: 4}
    assert settled_offsets(source) == {0: [(0, 10)], 1: [(0, 4)]}
    assert SourceEvent.objects.get().kind == SourceEvent.Kind.GAP


def test_a_publish_sent_again_moves_nothing_twice(source: Source) -> None:
    epoch = begin(source)
    what = request(epoch, {0: [(0, 5)]}, progress={0: Advance(start=0, end=5)})
    assert send(what) == send(what)
    assert stored(source)[0] == 5


@pytest.mark.parametrize(("first", "last"), [(5, 9), (0, 3), (3, 9)])
def test_a_publish_that_does_not_begin_at_the_stored_offset_changes_nothing(
    source: Source, first: int, last: int
) -> None:
    epoch = begin(source)
    send(request(epoch, {0: [(0, 4)]}, progress={0: Advance(start=0, end=4)}))
    with pytest.raises(PublishRefused) as refused:
        send(request(epoch, {0: [(first, last)]}, progress={0: Advance(start=first, end=last)}))
    assert refused.value.refusal.code == "offsets"
    assert refused.value.refusal.stored == {0: 4}
    assert stored(source)[0] == 4
    assert Segment.objects.count() == 1
    assert IndexerFence.objects.get().published == 4


@pytest.mark.parametrize(
    "progress",
    [{}, {0: Advance(start=0, end=6)}, {0: Advance(start=0, end=5), 1: Advance(start=0, end=1)}],
    ids=["none", "too far", "of another partition"],
)
def test_progress_says_what_became_of_every_offset(source: Source, progress: dict[int, Advance]) -> None:
    epoch = begin(source)
    with pytest.raises(InvalidInput):
        send(request(epoch, {0: [(0, 5)]}, progress=progress))
    assert stored(source) == {0: 0, 1: 0}


def test_a_share_group_has_no_stored_offsets(db: None) -> None:
    group = make_source("flights")
    epoch = start(group)
    with pytest.raises(InvalidInput):
        claim(epoch)
    with pytest.raises(InvalidInput):
        send(request(epoch, {0: [(0, 5)]}, progress={0: Advance(start=0, end=5)}))


def test_who_holds_an_older_generation_is_refused(source: Source) -> None:
    epoch = begin(source)
    old = claim(epoch, new_generation=True).partitions[0].generation
    other = start(source, 1)
    new = claim(other, 1, new_generation=True, partitions=[0]).partitions[0].generation
    assert new == old + 1
    with pytest.raises(PublishRefused) as refused:
        send(request(epoch, {0: [(0, 5)]}, progress={0: Advance(start=0, end=5, generation=old)}))
    assert refused.value.refusal.code == "generation"
    send(request(epoch, {1: [(0, 5)]}, progress={1: Advance(start=0, end=5, generation=old)}))
    send(request(other, {0: [(0, 5)]}, progress={0: Advance(start=0, end=5, generation=new)}), 1)
    assert stored(source) == {0: 5, 1: 5}


def test_attempts_count_processes_until_something_is_published(source: Source) -> None:
    epoch = begin(source)
    for attempts in (1, 2, 3):
        assert claim(epoch, new_process=True).partitions[0].attempts == attempts
    send(request(epoch, {0: [(0, 5)]}, progress={0: Advance(start=0, end=5)}))
    after = claim(epoch).partitions
    assert (after[0].attempts, after[1].attempts) == (0, 3)


def test_an_old_epoch_claims_nothing(source: Source) -> None:
    epoch = begin(source)
    start(source)
    with pytest.raises(PublishRefused) as refused:
        claim(epoch)
    assert refused.value.refusal.code == "fenced"


def test_a_reset_needs_leave_and_goes_back_only(source: Source) -> None:
    epoch = begin(source)
    send(request(epoch, {0: [(0, 9)]}, progress={0: Advance(start=0, end=9)}))
    back = {0: Reset(stored=9, to=4)}
    with pytest.raises(InvalidInput):
        claim(epoch, resets=back)
    with pytest.raises(InvalidInput):
        claim(epoch, may_reset=True, resets={0: Reset(stored=9, to=12)})
    assert claim(epoch, may_reset=True, resets={0: Reset(stored=8, to=4)}).partitions[0].next_offset == 9
    assert claim(epoch, may_reset=True, resets=back).partitions[0].next_offset == 4
    assert settled_offsets(source)[0] == [(0, 4)]
    event = SourceEvent.objects.get()
    assert (event.kind, event.alarm) == (SourceEvent.Kind.OFFSET_RESET, True)
    send(request(epoch, {0: [(4, 6)]}, progress={0: Advance(start=4, end=6)}))
    assert stored(source)[0] == 6


@pytest.mark.django_db(transaction=True)
def test_zombies_that_publish_the_same_range_have_one_winner() -> None:
    """Row 4 of the failure matrix: one wins each round, the other is told where the offset is; 200 rounds."""
    source = kept_source()
    epochs = {n: begin(source, n) for n in range(2)}
    won: list[int] = []
    wrong: list[BaseException] = []
    barrier = threading.Barrier(2)

    def write(number: int) -> None:
        try:
            for base in range(0, 2000, 10):
                barrier.wait(30)
                what = request(
                    epochs[number], {0: [(base, base + 10)]}, progress={0: Advance(start=base, end=base + 10)}
                )
                try:
                    send(what, number)
                    won.append(base)
                except PublishRefused as refused:
                    assert refused.refusal.code == "offsets"
                    assert refused.refusal.stored == {0: base + 10}
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
    assert sorted(won) == list(range(0, 2000, 10))
    assert stored(source)[0] == 2000
    assert sum(s.rows for s in Segment.objects.all()) == 2000


@pytest.mark.django_db(transaction=True)
def test_indexers_that_begin_together_agree_where() -> None:
    """Each has its own partition and worked out starts for all of them: one's are kept, whole; 30 topics."""
    barrier = threading.Barrier(4)
    wrong: list[BaseException] = []
    make_receipt_partitions()
    sources = [make_source(f"d{n}", f"topic-id-{n}", f"supervisor-{n}", STORED_OFFSETS.kind) for n in range(30)]
    topics = {s.topic_id: {n: start(s, n, f"task-{s.topic_id}") for n in range(4)} for s in sources}

    def begin_all(number: int) -> None:
        try:
            for topic_id, epochs in topics.items():
                barrier.wait(30)
                _begin_with_starts(topic_id, epochs[number], number)
        except BaseException as error:
            wrong.append(error)
            barrier.abort()
        finally:
            connections.close_all()

    threads = [threading.Thread(target=begin_all, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == []
    for source in sources:
        kept = stored(source)
        assert sorted(kept) == [0, 1, 2, 3]
        assert len({(o or 0) // 10 for o in kept.values()}) == 1, kept


def _begin_with_starts(topic_id: str, epoch: int, number: int) -> None:
    """What an indexer asks that finds nothing stored; its starts are told by their tens."""

    def ask(**asked: object) -> ClaimAnswer:
        message = ClaimRequest.model_validate(
            {"epoch": epoch, "topic_id": topic_id, "partitions": [number], "new_process": True, **asked}
        )
        return claims.claim(task_id=f"task-{topic_id}", number=number, request=message, may_reset=False)

    answer = ask()
    while answer.partitions[number].next_offset is None:
        starts = {p: 10 * (number + 1) + p for p in range(4)}
        answer = ask(first_run=answer.first_run, starts=starts)
