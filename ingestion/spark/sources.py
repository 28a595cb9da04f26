"""The source of an indexer by the kind of its task, and how many indexers such a source can feed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import cast

from ingestion.sources.base import LeasedSource, SourceProblem, StoredOffsetSource
from ingestion.sources.consumer_group import ConsumerGroupSource
from ingestion.sources.offset_ranges import OffsetRangeSource
from ingestion.sources.share_group import ShareGroupSource
from ingestion.sources.stored_offsets import Claim, StoredOffsets
from ingestion.sources.topic import TopicWatch, checked_properties
from ingestion.specs.inputs.io_config import IOConfig, KafkaIOConfig, ShareGroupIOConfig
from ingestion.specs.kafka.group_times import group_times
from ingestion.specs.messages.protocol import Assignment

PARTITION_CHECK_S = 10.0
AnySource = LeasedSource | StoredOffsetSource
SourceFactory = Callable[[Claim], AnySource]  # of one indexer's source, for each of its epochs
FactoryBuilder = Callable[[Assignment, int, TopicWatch], SourceFactory]
FACTORY_BUILDERS: dict[type[IOConfig], FactoryBuilder] = {}


def register_source(model: type[IOConfig]) -> Callable[[FactoryBuilder], FactoryBuilder]:
    """Register who makes the sources of an ioConfig: given the assignment, the indexer's number, and the topic."""

    def register(making: FactoryBuilder) -> FactoryBuilder:
        FACTORY_BUILDERS[model] = making
        return making

    return register


def source_factory(assignment: Assignment, number: int, watch: TopicWatch) -> SourceFactory:
    """Makes the source of one indexer for each of its epochs."""
    if assignment.bounded:
        return _bounded_factory(assignment, number, watch)
    return FACTORY_BUILDERS[type(assignment.spec.ioConfig)](assignment, number, watch)


@register_source(ShareGroupIOConfig)
def _share_group_factory(assignment: Assignment, number: int, watch: TopicWatch) -> SourceFactory:
    io_config = cast("ShareGroupIOConfig", assignment.spec.ioConfig)
    properties, policy = assignment.consumer_properties, assignment.address_policy
    return lambda claim: ShareGroupSource(
        checked_properties(properties, policy), io_config, _client_id(assignment, number)
    )


@register_source(KafkaIOConfig)
def _stored_offsets_factory(assignment: Assignment, number: int, watch: TopicWatch) -> SourceFactory:
    io_config = assignment.spec.ioConfig
    poll_s = io_config.pollTimeout / 1000
    in_group = io_config.traits.in_consumer_group
    times = group_times(io_config.consumerProperties) if in_group else {}
    client_id = _client_id(assignment, number)

    def is_mine(partition: int) -> bool:
        return partition % assignment.indexers == number

    def make_source(claim: Claim) -> StoredOffsetSource:
        stored = StoredOffsets(
            topic=io_config.topic,
            watch=watch,
            claim=claim,
            use_earliest=io_config.useEarliestOffset,
            may_reset=assignment.spec.tuningConfig.resetOffsetAutomatically,
            with_generation=in_group,
            replicas=io_config.replicas,
            isolation=io_config.isolation,
            since_ms=io_config.start.at(assignment.created_at).timestamp_ms,
        )
        checked = checked_properties(assignment.consumer_properties, assignment.address_policy)
        if in_group:
            return ConsumerGroupSource(checked, stored, assignment.group, client_id, poll_s, times)
        return OffsetRangeSource(checked, stored, is_mine, client_id, poll_s)

    return make_source


def _bounded_factory(assignment: Assignment, number: int, watch: TopicWatch) -> SourceFactory:
    """Whatever the spec's source, an ordinary reader reads the ranges: indexer n every n-th of their partitions."""
    io_config = assignment.spec.ioConfig
    partitions = sorted({r.partition for r in assignment.ranges})
    own = frozenset(partitions[number :: max(1, assignment.indexers)])

    def make_source(claim: Claim) -> StoredOffsetSource:
        stored = StoredOffsets(
            topic=io_config.topic,
            watch=watch,
            claim=claim,
            use_earliest=True,
            may_reset=False,
            isolation=io_config.isolation,
            bounded=True,
        )
        checked = checked_properties(assignment.consumer_properties, assignment.address_policy)
        poll_s = io_config.pollTimeout / 1000
        return OffsetRangeSource(checked, stored, own.__contains__, _client_id(assignment, number), poll_s, own)

    return make_source


def _client_id(assignment: Assignment, number: int) -> str:
    return f"{assignment.task_id}-{number}"


class IndexerLimit:
    """How many indexers have something to read: with partitions dealt out by number, no more than there are."""

    def __init__(self, assignment: Assignment) -> None:
        self._by_number = assignment.bounded or assignment.spec.ioConfig.traits.assigns_by_number
        self._max_indexers = assignment.indexers
        self._partitions = len({r.partition for r in assignment.ranges}) if assignment.bounded else 0
        self._ended = threading.Event()
        if self._by_number and not assignment.bounded and self._max_indexers > 1:
            watch = TopicWatch(
                assignment.consumer_properties, assignment.spec.ioConfig.topic, assignment.address_policy
            )
            threading.Thread(target=self._count_partitions, args=(watch,), name="partitions", daemon=True).start()

    def fitting(self, count: int) -> int:
        """At least one, which waits for the topic if need be; who reads which partition does not change."""
        return max(1, min(self._max_indexers, self._partitions)) if self._by_number and count else count

    def _count_partitions(self, watch: TopicWatch) -> None:
        while not self._ended.is_set():
            try:
                self._partitions = len(watch.partitions())
            except SourceProblem:
                pass  # the indexers say so
            self._ended.wait(PARTITION_CHECK_S if self._partitions else 1.0)

    def close(self) -> None:
        """Look no more."""
        self._ended.set()
