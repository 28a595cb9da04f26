"""Poison records that are too large for one publish."""

from __future__ import annotations

from ingestion.specs.messages.protocol import QuarantinedRecord
from ingestion.task.quarantine import fit_records


def poison(offset: int, key: bytes | None, payload: bytes | None) -> QuarantinedRecord:
    return QuarantinedRecord.model_construct(
        partition=0,
        offset=offset,
        timestamp_ms=None,
        delivery_count=1,
        reason="unparseable",
        error="It is no JSON.",
        key=key,
        payload=payload,
    )


def test_what_fits_is_whole() -> None:
    records = [poison(0, None, b"x" * 60), poison(1, b"k" * 10, b"y" * 30), poison(2, None, None)]
    assert fit_records(records, 100) == records


def test_the_longest_are_cut_to_the_same_length_and_say_so() -> None:
    records = [
        poison(0, None, b"x" * 1000),
        poison(1, b"k", b"y" * 9),
        poison(2, None, b"z" * 500),
        poison(3, None, None),
    ]
    long, short, longer, none = fit_records(records, 100)
    assert (long.payload, longer.payload) == (b"x" * 45, b"z" * 45)
    assert (short, none) == (records[1], records[3])
    assert long.error == "It is no JSON. (Only the first 45 of its 1,000 bytes are stored.)"
    assert [r.offset for r in (long, short, longer, none)] == [0, 1, 2, 3]


def test_a_long_key_leaves_room_for_the_payload() -> None:
    (cut,) = fit_records([poison(0, b"k" * 1000, b"x" * 1000)], 100)
    assert (cut.key, cut.payload) == (b"k" * 50, b"x" * 50)
    (tombstone,) = fit_records([poison(0, b"k" * 1000, None)], 100)
    assert (tombstone.key, tombstone.payload) == (b"k" * 50, None)


def test_a_batch_of_large_ones_fits_together() -> None:
    records = [poison(n, None, bytes(1000)) for n in range(1000)]
    assert sum(len(r.payload or b"") for r in fit_records(records, 100_000)) <= 100_000


def test_what_is_cut_is_said_within_the_length_of_an_error() -> None:
    [cut] = fit_records([poison(0, None, b"x" * 1000).model_copy(update={"error": "e" * 2000})], 100)
    assert len(cut.error) == 2000
    assert cut.error.endswith("e (Only the first 100 of its 1,000 bytes are stored.)")
