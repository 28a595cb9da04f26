"""What the headers of a dead letter say of its record, by three writers; and what an import does with it."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.quarantine.dead_letter_origins import Origin, origin_of
from controlplane.supervisors.dead_letter_rounds import outcome_of

# KIP-1191; Kafka Connect's ``errors.deadletterqueue.context.headers.enable``; Spring's ``KafkaHeaders``.
KAFKA = {"topic": b"orders", "partition": b"3", "offset": b"17", "group": b"readers", "delivery.count": b"5"}
CONNECT = {"topic": b"orders", "partition": b"3", "offset": b"17", "exception.message": b"No schema"}
SPRING = {
    "original-topic": b"orders",
    "original-partition": b"\x00\x00\x00\x03",
    "original-offset": b"\x00\x00\x00\x00\x00\x00\x00\x11",
    "exception-fqcn": b"java.lang.NullPointerException",
}


def headers(prefix: str, named: dict[str, bytes | None], **more: Any) -> list[tuple[str, bytes | None]]:
    return [(prefix + name.replace("_", "."), value) for name, value in {**named, **more}.items()]


def kafka(**more: Any) -> Origin | None:
    return origin_of(headers("__dlq.errors.", {**KAFKA}, **more))


def test_each_writer_is_understood() -> None:
    assert kafka(message=b"Offset rejected by client.") == Origin(
        "Kafka", "orders", 3, 17, reason="Offset rejected by client.", group="readers", deliveries=5
    )
    assert origin_of(headers("__connect.errors.", {**CONNECT})) == Origin(
        "Kafka Connect", "orders", 3, 17, reason="No schema"
    )
    assert origin_of(headers("kafka_dlt-", {**SPRING})) == Origin(
        "Spring", "orders", 3, 17, reason="java.lang.NullPointerException"
    )


@pytest.mark.parametrize(
    "more",
    [
        {"topic": None},
        {"topic": b""},
        {"group": None},
        {"partition": b"-1"},
        {"partition": b"2147483648"},
        {"partition": b"\x00\x00\x00\x03"},
        {"offset": b""},
        {"offset": b"1e3"},
        {"offset": b"9" * 30},
        {"offset": "\u0663".encode()},
    ],
)
def test_what_names_no_place_says_nothing(more: dict[str, Any]) -> None:
    assert kafka(**more) is None


def test_numbers_of_spring_are_javas() -> None:
    negative = {"original-offset": b"\xff" * 8}
    short = {"original-partition": b"\x03"}
    assert origin_of(headers("kafka_dlt-", {**SPRING, **negative})) is None
    assert origin_of(headers("kafka_dlt-", {**SPRING, **short})) is None


def test_bytes_that_are_no_text_do_no_harm() -> None:
    found = kafka(message=b"a\x00b\xff", delivery_count=b"\xff")
    assert found is not None and (found.reason, found.deliveries) == ("a\ufffdb\ufffd", 0)
    assert found.sentence == "Kafka gave this record up: a\ufffdb\ufffd"


def test_a_header_that_stands_twice_counts_as_written_last() -> None:
    twice = [*headers("__dlq.errors.", {**KAFKA}), ("__dlq.errors.offset", b"18")]
    found = origin_of(twice)
    assert found is not None and found.offset == 18


@pytest.mark.parametrize(
    ("held", "ended", "outcome"),
    [
        (False, {"stored"}, "stored"),
        (True, {"unparseable", "stored"}, "stored"),
        (True, {"unparseable"}, "quarantined"),
        (True, set(), "quarantined"),
        (False, {"unparseable"}, "quarantined"),  # it was purged: a person did not want it
        (False, {"stored", "duplicate"}, "stored"),
        (False, {"thrown_away"}, "settled"),
        (False, {"settled"}, "settled"),
        (False, {"gap"}, "imported"),
        (False, {"skipped"}, "imported"),
        (False, {"empty", "duplicate"}, "settled"),
        (False, {"empty"}, "imported"),
        (False, set(), "waiting"),
    ],
)
def test_what_became_of_the_offset_decides(held: bool, ended: set[str], outcome: str) -> None:
    assert outcome_of(held, ended) == outcome
