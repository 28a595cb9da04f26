"""How long records are held and what became of their leases: buckets, sums, percentiles, warnings."""

from __future__ import annotations

import numpy as np
import pytest

from controlplane.supervisors.leases import HoldTimes, LeaseSums, hold_times, sums_of, warnings_of
from ingestion.sources.base import ACCEPT, REJECT, RELEASE
from ingestion.sources.leases import LeaseBook, PendingAcks, bucket_ms
from ingestion.specs.messages.protocol import IndexerStatus, Leases


@pytest.mark.parametrize("held_ms", [0, 0.3, 1, 1.2, 10, 199.9, 200, 7_499, 30_000, 3_600_000, 9e9])
def test_a_bucket_is_no_shorter_than_what_is_in_it_and_at_most_a_quarter_longer(held_ms: float) -> None:
    capped = min(max(held_ms, 1), 3_600_000)
    assert capped <= bucket_ms(held_ms) <= 1.25 * capped + 1


def test_there_are_fewer_buckets_than_a_heartbeat_takes() -> None:
    buckets = {bucket_ms(1.01**n) for n in range(1700)}
    assert len(buckets) < 80
    IndexerStatus(number=0, epoch=1, state="reading", leases=Leases(hold_ms=dict.fromkeys(buckets, 1)))


def test_each_poll_ends_in_the_book() -> None:
    book = LeaseBook()
    partitions = np.array([0, 0, 1, 1])
    book.count(partitions, np.array([ACCEPT, REJECT, RELEASE, ACCEPT]), 0.1)
    book.count(partitions, np.array([ACCEPT, ACCEPT, ACCEPT, REJECT]), 2.0)
    book.undo(np.array([ACCEPT, REJECT]))  # partition 1 of the second poll: refused
    book.count(partitions, None, 30.0)
    seen = book.totals
    assert (seen.acquired, seen.accepted, seen.rejected, seen.released, seen.lock_expired) == (12, 4, 1, 1, 6)
    assert seen.acquired == seen.accepted + seen.rejected + seen.released + seen.lock_expired
    assert sum(seen.hold_ms.values()) == 12
    assert seen.longest_hold_ms == 30_000


@pytest.fixture
def book() -> LeaseBook:
    """One poll is noted in it: of partition 0 offsets 1–3 (one rejected), of partition 1 offset 1."""
    book = LeaseBook()
    book.count(np.array([0, 0, 0, 1]), np.array([ACCEPT, REJECT, ACCEPT, ACCEPT]), 0.1)
    return book


@pytest.fixture
def unanswered(book: LeaseBook) -> PendingAcks:
    unanswered = PendingAcks(book)
    unanswered.expect(np.array([0, 0, 0, 1]), np.array([1, 2, 3, 1]), np.array([ACCEPT, REJECT, ACCEPT, ACCEPT]))
    return unanswered


def test_what_the_broker_takes_stays_in_the_book(book: LeaseBook, unanswered: PendingAcks) -> None:
    before = book.totals
    unanswered.answered(0, {1, 2, 3}, accepted=True)
    unanswered.answered(1, {1}, accepted=True)
    unanswered.overdue(0)  # nothing is left to be answered
    assert book.totals == before


def test_what_the_broker_refuses_had_expired_each_record_once(book: LeaseBook, unanswered: PendingAcks) -> None:
    unanswered.answered(0, {1}, accepted=True)
    unanswered.answered(0, {2, 3}, accepted=False)
    unanswered.answered(0, {2, 3}, accepted=False)  # nobody waits for these any more
    seen = book.totals
    assert (seen.accepted, seen.rejected, seen.lock_expired) == (2, 0, 2)


def test_an_overdue_answer_that_comes_after_all_counts_no_more(book: LeaseBook, unanswered: PendingAcks) -> None:
    unanswered.overdue(0)
    unanswered.answered(0, {1, 2, 3}, accepted=False)
    seen = book.totals
    assert (seen.accepted, seen.rejected, seen.lock_expired) == (1, 0, 3)


def test_answers_are_for_the_oldest_delivery_that_waits(book: LeaseBook, unanswered: PendingAcks) -> None:
    again = np.array([REJECT])  # offset 1 of partition 0 once more: its lock had run out
    book.count(np.array([0]), again, 0.1)
    unanswered.expect(np.array([0]), np.array([1]), again)
    unanswered.answered(0, {1, 2, 3}, accepted=False)
    unanswered.answered(0, {1}, accepted=True)
    seen = book.totals
    assert (seen.accepted, seen.rejected, seen.lock_expired) == (1, 1, 3)


def test_of_a_consumer_that_is_gone_nothing_is_waited_for(book: LeaseBook, unanswered: PendingAcks) -> None:
    before = book.totals
    unanswered.forget()
    unanswered.answered(0, {1, 2, 3}, accepted=False)
    unanswered.overdue(1)
    assert book.totals == before


def test_what_was_left_to_its_lock_is_not_taken_back_again(book: LeaseBook) -> None:
    book.count(np.array([0]), None, 30.0)
    before = book.totals
    unanswered = PendingAcks(book)
    unanswered.expect(np.array([0]), np.array([9]), None)
    unanswered.answered(0, {9}, accepted=False)
    assert book.totals == before


def test_sums_are_over_all_indexers() -> None:
    one = Leases(acquired=3, accepted=2, rejected=1, hold_ms={10: 3}, longest_hold_ms=9).model_dump(mode="json")
    other = Leases(acquired=1, lock_expired=1, hold_ms={10: 0, 500: 1}, longest_hold_ms=400).model_dump(mode="json")
    sums = sums_of([(one, {"1": 3}), (other, {"1": 1, "4": 1}), ({}, {})])
    assert (sums.acquired, sums.accepted, sums.rejected, sums.lock_expired) == (4, 2, 1, 1)
    assert sums.hold_ms == {10: 3, 500: 1}
    assert sums.deliveries == {1: 4, 4: 1}


def test_percentiles_are_weighted_by_records() -> None:
    sums = LeaseSums(hold_ms={10: 90, 100: 9, 5000: 1}, longest_ms=4000)
    assert hold_times(sums, 30_000) == HoldTimes(p50_ms=10, p99_ms=100, longest_ms=4000, lock_ms=30_000)
    assert hold_times(LeaseSums(hold_ms={5000: 1}, longest_ms=4000), 30_000).p99_ms == 4000
    assert hold_times(LeaseSums(), 30_000) == HoldTimes(None, None, None, 30_000)


@pytest.mark.parametrize(
    ("sums", "codes"),
    [
        (LeaseSums(hold_ms={5000: 1}, longest_ms=5000), []),  # half of the lock, and not more
        (LeaseSums(hold_ms={5001: 1}, longest_ms=5001), ["long_hold"]),
        (LeaseSums(hold_ms={10: 99, 9000: 1}, longest_ms=9000), []),  # one in a hundred
        (LeaseSums(hold_ms={10: 98, 9000: 2}, longest_ms=9000), ["long_hold"]),
        (LeaseSums(lock_expired=3), ["locks_expired"]),
        (LeaseSums(deliveries={1: 9, 4: 2}), []),
        (LeaseSums(deliveries={1: 9, 5: 2}), ["last_deliveries"]),
    ],
)
def test_an_operator_is_warned_before_locks_expire(sums: LeaseSums, codes: list[str]) -> None:
    assert [w.code for w in warnings_of(sums, hold_times(sums, 10_000), delivery_limit=5)] == codes
