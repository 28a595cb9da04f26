"""How much of a topic is not settled, by the progress of the source that reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from controlplane.connections.kafka import TopicOffsets
from controlplane.datasources.models import Datasource
from controlplane.lag import samples
from controlplane.publishing.completeness import Mark, Marks
from controlplane.publishing.models import ProgressKey
from controlplane.publishing.offset_gaps import Extent, Unsettled, extents_of, unsettled
from controlplane.publishing.settled import store_bounds
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import source_key
from ingestion.specs.inputs.io_config import IOConfig
from ingestion.specs.offsets import Range

MAX_RANGES = 100  # unsettled ranges of a partition that are told


@dataclass(frozen=True)
class TopicLag:
    """How far a reader is behind its topic."""

    partitions: dict[int, Unsettled]  # by number, between where the reader begins and the log's end
    uncommitted: int  # offsets from the first transaction on that is still open
    passed: int = 0  # of the total, what the reader has passed: only backfills read it
    has_changed: bool = False  # whether what is told of the reader may have changed by this look

    @property
    def total(self) -> int:
        return sum(p.lag for p in self.partitions.values()) + self.uncommitted

    @property
    def settled(self) -> int:
        """Offsets of the log that are."""
        return sum(p.settled for p in self.partitions.values())


def unread_offsets(datasource: Datasource | int, io_config: IOConfig, owner: str, topic: TopicOffsets) -> int:
    """How many offsets are: not those that a stored offset was moved beyond, but what a transaction still holds back.

    ``owner``: see ``sources_of``.
    """
    reader = Reader(datasource if isinstance(datasource, int) else datasource.pk, io_config, owner, topic)
    progress = _progress_of(known_readers([reader])[0])
    stored = {p: key.next_offset for p, key in progress.keys.items() if key.next_offset is not None}
    left = (
        max(0, topic.end_offsets[p] - stored[p]) if p in stored else offsets.lag
        for p, offsets in progress.lag.partitions.items()
    )
    return sum(left) + topic.uncommitted


def record_lag(
    datasource: Datasource | int, io_config: IOConfig, owner: str, topic: TopicOffsets, in_flight: int = 0
) -> TopicLag:
    """Compare what Kafka said of the topic with what is settled, and keep both for tables and charts.

    ``owner``: see ``sources_of``. ``in_flight``: records that indexers hold.
    """
    reader = Reader(datasource if isinstance(datasource, int) else datasource.pk, io_config, owner, topic)
    return record_lag_of(known_readers([reader])[0], in_flight)


@dataclass(frozen=True)
class Reader:
    """Who reads a topic, and what Kafka said of it."""

    datasource: int
    io_config: IOConfig
    owner: str  # see ``sources_of``
    topic: TopicOffsets

    @property
    def source_key(self) -> tuple[int, str, str, str, str]:
        key = source_key(self.io_config, self.owner)
        return self.datasource, key["kind"], key["group"], self.io_config.topic, self.topic.topic_id


@dataclass(frozen=True)
class KnownReader:
    """A reader, and what the store knows of it."""

    reader: Reader
    source: Source | None  # None of a topic that it has never read
    keys: dict[int, ProgressKey]
    settled: dict[int, Extent]


def known_readers(readers: Sequence[Reader]) -> list[KnownReader]:
    """In their order. Three statements, however many there are."""
    named = Source.objects.filter(
        datasource__in={r.datasource for r in readers}, topic_id__in={r.topic.topic_id for r in readers}
    ).prefetch_related("keys")
    sources = {(s.datasource_id, s.kind, s.group, s.topic, s.topic_id): s for s in named}
    settled = extents_of([s.pk for s in sources.values()])
    known = []
    for reader in readers:
        source = sources.get(reader.source_key)
        keys = {k.partition: k for k in source.keys.all()} if source else {}
        known.append(KnownReader(reader, source, keys, settled[source.pk] if source else {}))
    return known


def record_lag_of(known: KnownReader, in_flight: int = 0) -> TopicLag:
    """See ``record_lag``."""
    progress, topic = _progress_of(known), known.reader.topic
    source, keys, settled, partitions = progress.source, progress.keys, progress.settled, progress.lag.partitions
    if source is None:
        return progress.lag
    unknown = {
        p: end for p, end in topic.end_offsets.items() if not _begin_is_known(progress, keys.get(p), settled.get(p))
    }
    complete = _completeness(source, topic, partitions, keys, unknown)
    store_bounds(source, topic.start_offsets, progress.start_offsets, topic.end_offsets, topic.uncommitted, complete)
    lags = {partition: offsets.lag for partition, offsets in partitions.items()}
    # Indexers said seconds ago what they hold: where it is known what is left, they do not hold more by now.
    in_flight_now = in_flight if unknown else min(in_flight, progress.lag.total)
    passed = _passed(progress, topic)
    has_changed = samples.store_sample(source, lags, more=topic.uncommitted, in_flight=in_flight_now, passed=passed)
    return replace(progress.lag, passed=sum(passed.values()), has_changed=has_changed)


@dataclass(frozen=True)
class _ReaderProgress:
    """A reader beside its topic, by partition."""

    source: Source | None  # None of a topic that it has never read
    keys: dict[int, ProgressKey]
    settled: dict[int, Extent]
    start_offsets: dict[int, int]  # where the reader begins
    from_start: bool  # at the log's start, where a partition does not have its own
    lag: TopicLag


def _progress_of(known: KnownReader) -> _ReaderProgress:
    io_config, topic = known.reader.io_config, known.reader.topic
    source, keys, settled = known.source, known.keys, known.settled
    last_begins = {int(p): begin for p, (_, begin, _) in source.bounds.items()} if source else {}
    from_start = begins_at_start(io_config, source)
    begins = {
        p: _first_offset(io_config, from_start, topic, keys.get(p), p, settled.get(p), last_begins.get(p))
        for p in topic.end_offsets
    }
    within = {p: (begins[p], end) for p, end in topic.end_offsets.items()}
    untouched = {p: _all_unsettled(*bounds) for p, bounds in within.items()}
    partitions = untouched if source is None else unsettled(source, within, MAX_RANGES)
    return _ReaderProgress(source, keys, settled, begins, from_start, TopicLag(partitions, topic.uncommitted))


def _passed(progress: _ReaderProgress, topic: TopicOffsets) -> dict[int, int]:
    """By partition, unsettled offsets before the stored one: its reader has passed them, only backfills read them."""
    before: dict[int, Range] = {}
    for partition, key in progress.keys.items():
        offsets = progress.lag.partitions.get(partition)
        if key.next_offset is not None and offsets and offsets.ranges and offsets.ranges[0][0] < key.next_offset:
            end = min(key.next_offset, topic.end_offsets[partition])
            before[partition] = (progress.start_offsets[partition], end)
    if not before or progress.source is None:
        return {}
    return {p: offsets.lag for p, offsets in unsettled(progress.source, before, 1).items()}


def begins_at_start(io_config: IOConfig, source: Source | None) -> bool:
    """Whether a partition of which nothing is known is read from its log's start.

    At a time, a share group's other partitions came later, and so did a topic that is not its first: else Kafka was not
    asked in time, and only the broker knows where it begins.
    """
    if not io_config.traits.in_share_group or io_config.start.kind in ("earliest", "latest"):
        return io_config.useEarliestOffset
    return source is not None and (source.keys.exclude(begin_offset=None).exists() or _has_older(source))


def _has_older(source: Source) -> bool:
    """Whether the topic was deleted and created again."""
    same = Source.objects.filter(kind=source.kind, cluster_id=source.cluster_id, group=source.group, topic=source.topic)
    return same.exclude(pk=source.pk).exists()


def _completeness(
    source: Source,
    topic: TopicOffsets,
    partitions: Mapping[int, Unsettled],
    keys: Mapping[int, ProgressKey],
    unknown: Mapping[int, int],
) -> tuple[datetime | None, Marks] | None:
    """Until when it is complete by this look, and the marks that wait; None of a look whose time is not known."""
    if topic.observed_at is None:
        return None
    frontier = {
        p: offsets.ranges[0][0] if offsets.ranges else topic.end_offsets[p] for p, offsets in partitions.items()
    }
    for partition, key in keys.items():
        # Set back by hand, a stored offset lies below what was settled before.
        if key.next_offset is not None and partition in frontier:
            frontier[partition] = min(frontier[partition], key.next_offset)
    return Marks.read(source.marks).advanced(Mark(topic.observed_at, topic.log_ends), frontier, unknown)


def _all_unsettled(start: int, end: int) -> Unsettled:
    return Unsettled(0, max(0, end - start), [(start, end)] if start < end else [])


def _begin_is_known(progress: _ReaderProgress, key: ProgressKey | None, settled: Extent | None) -> bool:
    """Whether ``_first_offset`` is where it begins, and not where the log happens to end."""
    stored = key is not None and key.next_offset is not None
    return stored or progress.from_start or settled is not None


def _first_offset(
    io_config: IOConfig,
    from_start: bool,
    topic: TopicOffsets,
    key: ProgressKey | None,
    partition: int,
    settled: Extent | None,
    last_begin: int | None,
) -> int:
    """Where the reader begins on a partition: its first range or stored offset, else by its spec.

    What a bounded read has settled below is not the reader's.
    ``seen``: what the last look found. What retention takes of a share group's unread records stays unsettled until a
    repair says that it is gone: nobody else would notice. A stored offset is compared by whoever reads from it.
    """
    began_at = key.began_at if key is not None and key.began_at is not None else 0
    begin = None if key is None else key.begin_offset
    if key is not None and key.next_offset is not None:
        first = max(began_at, min(settled.start, key.next_offset)) if settled else key.next_offset
        return first if begin is None else min(first, begin)  # it has skipped what came then
    if begin is not None:
        return begin
    if not from_start:
        return max(began_at, settled.start) if settled else topic.end_offsets[partition]
    candidates = [topic.start_offsets[partition]]
    if io_config.traits.in_share_group:
        candidates += [] if last_begin is None else [last_begin]
        candidates += [] if settled is None else [settled.start]
    return min(candidates)
