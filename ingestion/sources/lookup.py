"""Looks for records in a topic: one by its place, or all with a key that were written in a time, up to a bound.

No group is joined and nothing is committed. Kafka's index of times says between which offsets to look; records that
lie outside them although their time does not, since producers write times as they like, are not found.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from ingestion.sources.base import SourceProblem
from ingestion.sources.client_problems import is_of_unused_group
from ingestion.sources.peek import Limits, Span, TopicLocation, consumer_config, list_offsets, query_topic
from ingestion.specs.messages.lookup import MAX_FOUND, LookedAt, LookupOrder

POLL_RECORDS = 1000  # records


@dataclass
class Lookup:
    """Kafka's messages, and what was looked at."""

    topic_id: str
    log: dict[int, Span]
    spans: dict[int, Span]
    end_offsets: dict[int, int] = field(default_factory=dict)
    found: list[Any] = field(default_factory=list)
    scanned: int = 0
    size_bytes: int = 0
    stopped_by: str = ""

    @property
    def looked(self) -> list[LookedAt]:
        return [
            LookedAt(partition=p, start=low, upto=self.end_offsets.get(p, low), end=high, log_start=self.log[p][0])
            for p, (low, high) in sorted(self.spans.items())
        ]


def look_up(location: TopicLocation, order: LookupOrder) -> Lookup:
    """Raises ``NoSuchTopic``, ``SourceProblem``."""
    limits = Limits(order.most_scanned, order.most_bytes, time.monotonic() + order.timeout_ms / 1000)
    topic, by_time = query_topic(
        location, limits, lambda admin, partitions: _offsets_by_time(admin, partitions, location, order, limits)
    )
    lookup = Lookup(topic.topic_id, topic.log, _spans(order, topic.log, by_time))
    _scan(location, order, limits, lookup)
    return lookup


def _offsets_by_time(
    admin: Any, partitions: list[TopicPartition], place: TopicLocation, order: LookupOrder, limits: Limits
) -> tuple[dict[int, int], dict[int, int]]:
    """By Kafka's index of times: the first offsets at or after both ends of the time; -1 where there is none."""
    if order.offset is not None:
        return {}, {}
    first, last = (
        list_offsets(admin, partitions, OffsetSpec.for_timestamp(max(0, at)), place.isolation, limits)
        for at in (order.from_ms, order.to_ms)
    )
    return first, last


def _spans(order: LookupOrder, log: dict[int, Span], by_time: tuple[dict[int, int], dict[int, int]]) -> dict[int, Span]:
    """Which offsets to look at."""
    if order.offset is not None:
        low, high = log.get(order.partition or 0, (0, 0))
        is_in_log = low <= order.offset < high
        return {order.partition or 0: (order.offset, order.offset + 1)} if is_in_log else {}
    first, last = by_time
    chosen = {p: span for p, span in log.items() if order.partition in (None, p)}
    spans = {p: (_clamp_offset(first[p], high), _clamp_offset(last[p], high)) for p, (_, high) in chosen.items()}
    return {p: (low, high) for p, (low, high) in spans.items() if low < high}


def _clamp_offset(offset: int, end: int) -> int:
    return end if offset < 0 else min(offset, end)


def _scan(location: TopicLocation, order: LookupOrder, limits: Limits, lookup: Lookup) -> None:
    left = dict(lookup.spans)
    if not left:
        return
    errors: list[str] = []
    consumer = Consumer(consumer_config(location.properties, location.isolation, errors))
    try:
        consumer.assign([TopicPartition(location.topic, p, low) for p, (low, _) in left.items()])
        while left and not lookup.stopped_by:
            for message in consumer.consume(min(POLL_RECORDS, limits.rows - lookup.scanned), 0.05):
                if _take_message(message, order, left, lookup):
                    consumer.pause([TopicPartition(location.topic, message.partition())])
            lookup.stopped_by = _stopped_by(limits, lookup) if left else ""
    except KafkaException as error:
        raise SourceProblem(f"Reading {location.topic}: {error.args[0].str()}") from None
    finally:
        consumer.close()
    if not lookup.scanned and lookup.stopped_by == "time" and errors:
        raise SourceProblem(f"{location.topic} can't be read: {errors[-1]}")


def _take_message(message: Any, order: LookupOrder, left: dict[int, Span], lookup: Lookup) -> bool:
    """Look at a message; whether its partition needs no more."""
    partition, error = message.partition(), message.error()
    if is_of_unused_group(error):
        return False
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise SourceProblem(f"Reading partition {partition}: {error.str()}")
    if partition not in left:
        return True
    end = left[partition][1]
    if error is None and message.offset() < end:
        lookup.scanned += 1
        lookup.size_bytes += len(message.value() or b"") + len(message.key() or b"")
        lookup.end_offsets[partition] = message.offset() + 1
        if _matches(message, order) and len(lookup.found) <= MAX_FOUND:
            lookup.found.append(message)
    if error is not None or message.offset() >= end - 1:
        lookup.end_offsets[partition] = end
        del left[partition]
        return True
    return False


def _matches(message: Any, order: LookupOrder) -> bool:
    if order.offset is not None:
        return bool(message.offset() == order.offset)
    kind, at = message.timestamp()
    return message.key() == order.key and (not kind or order.from_ms <= at < order.to_ms)


def _stopped_by(limits: Limits, lookup: Lookup) -> str:
    if len(lookup.found) > MAX_FOUND:
        return "found"
    if lookup.scanned >= limits.rows:
        return "records"
    if lookup.size_bytes >= limits.size_bytes:
        return "bytes"
    return "" if limits.seconds_left else "time"
