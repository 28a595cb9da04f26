"""A topic in memory, and its records as a source with stored offsets: what is not published is read again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ingestion.sources.base import Batch, StoredOffsetSource
from ingestion.sources.stored_offsets import StartPosition, StoredOffsets
from ingestion.sources.topic import LogBounds
from ingestion.specs import offsets
from ingestion.specs.inputs.group_config import Isolation
from ingestion.specs.messages.protocol import Advance, Outcomes

FOREVER = float("inf")
Records = list[tuple[int, bytes | None]]  # offset, payload


@dataclass
class _Partition:
    records: dict[int, bytes | None] = field(default_factory=dict)
    low: int = 0
    end: int = 0


class MemoryLog:
    """See ``stored_offsets.TopicMetadata``. One thread."""

    def __init__(self, partitions: int = 1, topic_id: str = "topic-id") -> None:
        self._partitions = {p: _Partition() for p in range(partitions)}
        self._topic_id = topic_id

    def append(self, payloads: Iterable[bytes | None], partition: int = 0) -> None:
        """Records at the partition's end."""
        log = self._partitions.setdefault(partition, _Partition())
        for payload in payloads:
            log.records[log.end] = payload
            log.end += 1

    def skip_offsets(self, count: int, partition: int = 0) -> None:
        """So many offsets at the partition's end hold no record, as where a transaction ended."""
        self._partitions[partition].end += count

    def remove_before(self, offset: int, partition: int = 0) -> None:
        """What retention does."""
        log = self._partitions[partition]
        log.low = offset
        log.records = {o: payload for o, payload in log.records.items() if o >= offset}

    def topic_id(self) -> str:
        return self._topic_id

    def partitions(self) -> list[int]:
        return sorted(self._partitions)

    def bounds(self, partitions: Iterable[int]) -> dict[int, LogBounds]:
        logs = {p: self._partitions[p] for p in partitions}
        return {p: LogBounds(log.low, log.end, log.end) for p, log in logs.items()}

    def first_since(self, partitions: Iterable[int], timestamp_ms: int, isolation: Isolation) -> dict[int, int]:
        """None: records in memory have no time."""
        return {}

    def read(self, partition: int, start: int, most: int) -> tuple[Records, int]:
        """So many records at most from an offset on, and where to go on: behind all that holds none, too."""
        log = self._partitions[partition]
        remaining = sorted((o, payload) for o, payload in log.records.items() if o >= start)
        records = remaining[:most]
        return records, log.end if len(records) == len(remaining) else (records[-1][0] + 1 if records else start)


class MemoryStoredSource(StoredOffsetSource):
    """See ``StoredOffsetSource``. ``stored``: of the log's topic; other replicas are looked for at each ``poll``.

    ``partitions``: those that it reads at first, by default all. ``at_end``: called when there is nothing to take.
    """

    def __init__(
        self,
        log: MemoryLog,
        stored: StoredOffsets,
        partitions: Iterable[int] | None = None,
        batch_records: int = 100,
        at_end: Callable[[], object] = lambda: None,
    ) -> None:
        self._log = log
        self._stored = stored
        self._first = log.partitions() if partitions is None else list(partitions)
        self._batch_records = batch_records
        self._at_end = at_end
        self._next: dict[int, int] = {}
        self._stored_positions: dict[int, int] = {}  # what is stored of each, as far as known here
        self._generations: dict[int, int | None] = {}
        self._suspect: set[int] = set()
        self._skipped: deque[Batch] = deque()
        self._lost: dict[int, int | None] = {}

    def open(self) -> None:
        self._start_partitions(self._stored.starts(self._first, new_process=True))

    def assign(self, partitions: Iterable[int]) -> None:
        """Read these from now on, as a consumer group deals them out: of each that is new, a generation is taken."""
        assigned = set(partitions)
        revoked = self._next.keys() - assigned
        self._forget(revoked)
        self._lost.update(dict.fromkeys(revoked))
        self._start_partitions(self._stored.starts(assigned - self._next.keys()))

    def _start_partitions(self, starts: Mapping[int, StartPosition]) -> None:
        for partition, start in starts.items():
            self._next[partition], self._stored_positions[partition] = start.offset, start.stored
            self._generations[partition] = start.generation
            if start.suspect:
                self._suspect.add(partition)
            if start.skipped is not None:
                progress = {partition: Advance(start=start.stored, end=start.offset, generation=start.generation)}
                self._skipped.append(_make_batch([], {partition: start.skipped}, progress))

    def _forget(self, partitions: Iterable[int]) -> None:
        for partition in set(partitions):
            for by_partition in (self._next, self._stored_positions, self._generations):
                by_partition.pop(partition, None)
            self._suspect.discard(partition)
            self._skipped = deque(b for b in self._skipped if partition not in b.progress)

    def poll(self, timeout_s: float) -> Batch | None:
        self.notice_replicas()
        if self._skipped:
            return self._skipped.popleft()
        rows: list[tuple[int, int, bytes | None]] = []
        extra: dict[int, Outcomes] = {}
        progress: dict[int, Advance] = {}
        for partition, start in self._next.items():
            records, end = self._log.read(partition, start, self._batch_records - len(rows))
            if end > start:
                rows += [(partition, offset, payload) for offset, payload in records]
                empty = offsets.subtracted([(start, end)], offsets.ranges_of([offset for offset, _ in records]))
                extra |= {partition: Outcomes(empty=empty)} if empty else {}
                progress[partition] = Advance(start=start, end=end, generation=self._generations[partition])
        self._next.update({p: advance.end for p, advance in progress.items()})
        if not progress:
            self._at_end()
            return None
        return _make_batch(rows, extra, progress, suspect=bool(self._suspect & progress.keys()))

    def rewind(self, partitions: Iterable[int]) -> None:
        assigned = sorted(self._next.keys() & set(partitions))
        starts = self._stored.starts(assigned, again=True)
        before = dict(self._generations)
        self._forget(assigned)
        self._start_partitions({p: s for p, s in starts.items() if s.generation == before[p]})

    def published(self, ends: Mapping[int, int]) -> None:
        self._stored_positions.update(ends)
        self._suspect.difference_update(ends)

    def notice_replicas(self) -> None:
        moved = self._stored.moved(self._stored_positions) if self._stored.replicas > 1 else {}
        if moved:
            self._lost.update(moved)
            self.rewind(moved)

    def lost(self) -> Mapping[int, int | None]:
        lost, self._lost = self._lost, {}
        return lost

    @property
    def waiting(self) -> int:
        ends = self._log.bounds(self._next)
        return sum(max(0, ends[p].high - start) for p, start in self._next.items())

    def close(self) -> None:
        """Nothing is open."""


def _make_batch(
    rows: list[tuple[int, int, bytes | None]],
    extra: dict[int, Outcomes],
    progress: dict[int, Advance],
    suspect: bool = False,
) -> Batch:
    nothing: list[None] = [None] * len(rows)
    return Batch(
        partitions=np.array([p for p, _, _ in rows], dtype=np.int64),
        offsets=np.array([offset for _, offset, _ in rows], dtype=np.int64),
        delivery_counts=np.ones(len(rows), dtype=np.int64),
        payloads=[payload for _, _, payload in rows],
        keys=nothing,
        timestamps_ms=nothing,
        deadline=FOREVER,
        extra=extra,
        progress=progress,
        suspect=suspect,
    )
