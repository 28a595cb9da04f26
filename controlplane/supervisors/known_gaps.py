"""Known gaps of a supervisor: offsets that it has passed and that no backfill reads. A backfill can fill them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from controlplane.publishing.offset_gaps import extents, unsettled
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import sources_of
from controlplane.supervisors.models import Supervisor
from ingestion.specs import offsets
from ingestion.specs.offsets import Range

MAX_GAPS = 100  # of a partition


@dataclass(frozen=True)
class KnownGap:
    """Unsettled offsets of a partition, half-open."""

    partition: int
    start: int
    end: int

    @property
    def count(self) -> int:
        return self.end - self.start

    @property
    def text(self) -> str:
        return f"{self.partition}: {self.start}-{self.end}"


def known_gaps(supervisor: Supervisor) -> list[KnownGap]:
    """By partition and offset, at most 100 of each partition, without what retention was seen to have removed.

    With stored offsets: what lies below them and is not settled. Else what lies below the highest settled offset; Kafka
    may still deliver that.
    """
    io_config = supervisor.io_config
    if io_config.topicPattern is not None or io_config.boundedStreamConfig is not None:
        return []
    sources = sources_of(supervisor.datasource_id, io_config, supervisor.owner).filter(current=True)
    source = sources.order_by("-id").first()
    if source is None:
        return []
    found = unsettled(source, dict(_passed(source)), MAX_GAPS)
    filled = read_by_backfills(supervisor, source)
    return [
        KnownGap(partition, start, end)
        for partition, open_ in sorted(found.items())
        for start, end in offsets.subtracted(open_.ranges, filled.get(partition, []))
    ]


def _passed(source: Source) -> Iterator[tuple[int, Range]]:
    """By partition, what the reader has passed of the log, as both were last seen."""
    settled = extents(source)
    for key in source.keys.all():
        extent = settled.get(key.partition)
        log_start, last_begin, _ = source.bounds.get(str(key.partition), (0, None, None))
        if key.begin_offset is not None:
            # What lies before is not the reader's, even where others have read of it.
            begins: list[int | None] = [key.begin_offset]
        else:
            begins = [last_begin, None if extent is None else max(extent.start, key.began_at or 0)]
        known = [offset for offset in begins if offset is not None]
        end = key.next_offset if extent is None or key.next_offset is not None else extent.end
        if known and end is not None and (start := max(log_start, min(known))) < end:
            yield key.partition, (start, end)


def read_by_backfills(supervisor: Supervisor, source: Source) -> dict[int, list[Range]]:
    """By partition, what backfills read that have not been terminated."""
    filled: dict[int, list[Range]] = {}
    for backfill in supervisor.backfills.filter(terminated_at=None).with_current():
        bounded = backfill.io_config.boundedStreamConfig
        if bounded is not None and bounded.topicId == source.topic_id:
            for partition, span in bounded.ranges.items():
                filled.setdefault(partition, []).append(span)
    return filled
