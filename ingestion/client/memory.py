"""An in-memory control plane: the same answers without a server. The contract tests hold it to the real one."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass, field

from ingestion.client.errors import PublishRefused, Unacceptable
from ingestion.specs import offsets
from ingestion.specs.inputs.bounded import MAX_OFFSET
from ingestion.specs.messages.column_ids import ColumnId, ColumnsAnswer, ColumnsRequest, assign_ids
from ingestion.specs.messages.protocol import (
    AbandonAnswer,
    AbandonRequest,
    Assignment,
    ClaimAnswer,
    Claimed,
    ClaimRequest,
    Directive,
    EndRequest,
    HeartbeatAnswer,
    HeartbeatRequest,
    ParseExceptionTotals,
    PublishAnswer,
    PublishRequest,
    Refusal,
    SettledAnswer,
    SettledRequest,
    StartAnswer,
    StartRequest,
)
from ingestion.specs.time_column import TIME_ID


class MemoryColumns:
    """``requests`` keeps every request, in order."""

    def __init__(self) -> None:
        self.requests: list[ColumnsRequest] = []
        self._ids: dict[tuple[str, str], ColumnId] = {}
        self._lock = threading.Lock()

    def ids(self, request: ColumnsRequest) -> ColumnsAnswer:
        """Those of these columns; new ones get theirs now. Raises ``Unacceptable`` for too many at once."""
        if request.excess:
            raise Unacceptable(request.excess)
        with self._lock:
            self.requests.append(request)
            new = {(c.name, c.type): c for c in request.columns if (c.name, c.type) not in self._ids}
            last = max((column_id.last for column_id in self._ids.values()), default=TIME_ID)
            self._ids.update(zip(new, assign_ids(new.values(), last), strict=True))
            return ColumnsAnswer(ids=[self._ids[c.name, c.type] for c in request.columns])


_Ranges = list[offsets.Range]


@dataclass
class MemoryControlPlane:
    """One task's control plane. ``published`` keeps every publish that committed, in order."""

    prepared_assignment: Assignment
    directive: Directive = "continue"
    published: list[PublishRequest] = field(default_factory=list)
    heartbeats: list[HeartbeatRequest] = field(default_factory=list)
    ended: list[EndRequest] = field(default_factory=list)
    _epochs: dict[int, int] = field(default_factory=dict)
    _publishes: dict[int, int] = field(default_factory=dict)
    _answers: dict[uuid.UUID, PublishAnswer | None] = field(default_factory=dict)  # None: abandoned
    _settled: dict[tuple[str, int], _Ranges] = field(default_factory=dict)
    stored: dict[tuple[str, int], int] = field(default_factory=dict)  # (topic id, partition) → next offset
    generations: dict[tuple[str, int], int] = field(default_factory=dict)
    attempts: dict[tuple[str, int], int] = field(default_factory=dict)
    registry: MemoryColumns = field(default_factory=MemoryColumns)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def assignment(self) -> Assignment:
        return self.prepared_assignment

    def start(self, number: int, request: StartRequest) -> StartAnswer:
        with self._lock:
            self._epochs[number] = max(self._epochs.get(number, 0), request.previous_epoch) + 1
            publishes = self._publishes.get(number, 0) if request.counts_publishes else None
            epoch, totals = self._epochs[number], self._parse_exceptions()
            return StartAnswer(epoch=epoch, publishes=publishes, parse_exceptions=totals)

    def claim(self, number: int, request: ClaimRequest) -> ClaimAnswer:
        with self._lock:
            self._fence(number, request.epoch)
            if self.prepared_assignment.bounded:
                return self._claim_within(request)
            if request.first_run == (not self.stored):
                for partition, start in request.starts.items():
                    self.stored.setdefault((request.topic_id, partition), start)
            for partition, reset in request.resets.items():
                key = (request.topic_id, partition)
                if self.stored.get(key) == reset.stored:
                    self.stored[key] = reset.to
                    remaining = offsets.subtracted(self._settled.get(key, []), [(reset.to, reset.stored)])
                    self._settled[key] = remaining
            for key in [(request.topic_id, p) for p in request.partitions]:
                self.generations[key] = self.generations.get(key, 0) + request.new_generation
                self.attempts[key] = self.attempts.get(key, 0) + request.new_process
            return ClaimAnswer(
                partitions={p: self._claimed((request.topic_id, p)) for p in request.partitions},
                first_run=not self.stored,
            )

    def _claimed(self, key: tuple[str, int]) -> Claimed:
        generation, attempts = self.generations.get(key, 0), self.attempts.get(key, 0)
        if key not in self.stored:
            return Claimed(next_offset=None, generation=generation, attempts=attempts)
        start, end = offsets.subtracted([(self.stored[key], MAX_OFFSET)], self._settled.get(key, []))[0]
        self.stored[key] = start
        until = None if end == MAX_OFFSET else end
        return Claimed(next_offset=start, until=until, generation=generation, attempts=attempts)

    def _claim_within(self, request: ClaimRequest) -> ClaimAnswer:
        left: dict[int, _Ranges] = {}
        for partition in request.partitions:
            ranges = [(r.start, r.end) for r in self.prepared_assignment.ranges if r.partition == partition]
            left[partition] = offsets.subtracted(ranges, self._settled.get((request.topic_id, partition), []))
        claimed = {
            p: Claimed(next_offset=ranges[0][0], until=ranges[0][1], generation=0)
            if ranges
            else Claimed(next_offset=None, generation=0)
            for p, ranges in left.items()
        }
        return ClaimAnswer(partitions=claimed, first_run=False)

    def settled(self, number: int, request: SettledRequest) -> SettledAnswer:
        with self._lock:
            return SettledAnswer(settled=self._overlap(request.topic_id, request.offsets))

    def columns(self, request: ColumnsRequest) -> ColumnsAnswer:
        return self.registry.ids(request)

    def publish(self, number: int, request: PublishRequest) -> PublishAnswer:
        with self._lock:
            self._fence(number, request.epoch)
            if request.publish_id in self._answers:
                return self._repeat_answer(request.publish_id)
            settling = _ranges_to_settle(request)
            duplicates = self._overlap(request.topic_id, settling)
            if duplicates and not request.progress:
                raise PublishRefused(Refusal(code="duplicates", detail="settled already", duplicates=duplicates))
            if not self.prepared_assignment.bounded:
                self._check_advance(request)
            if duplicates:
                stored = dict.fromkeys(duplicates)
                raise PublishRefused(Refusal(code="offsets", detail="settled by another reader", stored=stored))
            if not self.prepared_assignment.bounded:
                self._advance(request)
            for partition, ranges in settling.items():
                key = (request.topic_id, partition)
                self._settled[key] = offsets.merged([*self._settled.get(key, []), *ranges])
            self.published.append(request)
            self._publishes[number] = self._publishes.get(number, 0) + 1
            brings_some = request.counters.unparseable or request.counters.processed_with_error
            answer = PublishAnswer(
                publish_id=request.publish_id,
                segment_ids=[str(uuid.uuid4()) for _ in request.segments],
                parse_exceptions=self._parse_exceptions() if brings_some else None,
            )
            self._answers[request.publish_id] = answer
            return answer

    def abandon(self, number: int, request: AbandonRequest) -> AbandonAnswer:
        with self._lock:
            self._fence(number, request.epoch)
            return AbandonAnswer(committed=self._answers.setdefault(request.publish_id, None) is not None)

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatAnswer:
        self.heartbeats.append(request)
        stored = {i.number: (self._epochs.get(i.number, 0), self._publishes.get(i.number, 0)) for i in request.indexers}
        io_config = self.prepared_assignment.spec.ioConfig
        keeps_offsets = io_config.traits.keeps_offsets and not self.prepared_assignment.bounded
        ahead = {i.number: i.epoch for i in request.indexers if keeps_offsets and i.is_ahead(*stored[i.number])}
        indexers = self.prepared_assignment.indexers
        return HeartbeatAnswer(directive=self.directive, indexers=indexers, start_again=ahead or None)

    def end(self, request: EndRequest) -> None:
        self.ended.append(request)

    def _parse_exceptions(self) -> ParseExceptionTotals:
        counters = [p.counters for p in self.published]
        return ParseExceptionTotals(
            seen=sum(c.unparseable + c.processed_with_error for c in counters),
            saved=sum(len(p.faulty) for p in self.published),
        )

    def _fence(self, number: int, epoch: int) -> None:
        if self._epochs.get(number) != epoch:
            raise PublishRefused(Refusal(code="fenced", detail=f"epoch {epoch} is over"))

    def _check_advance(self, request: PublishRequest) -> None:
        keys = {(request.topic_id, p): a for p, a in request.progress.items()}
        old = {k[1] for k, a in keys.items() if a.generation not in (None, self.generations.get(k, 0))}
        mismatched = {k[1] for k, a in keys.items() if self.stored.get(k) != a.start}
        stored = {p: self.stored.get((request.topic_id, p)) for p in old or mismatched}
        if old:
            raise PublishRefused(Refusal(code="generation", detail="went to another member", stored=stored))
        if mismatched:
            raise PublishRefused(Refusal(code="offsets", detail="other offsets are stored", stored=stored))

    def _advance(self, request: PublishRequest) -> None:
        keys = {(request.topic_id, p): a for p, a in request.progress.items()}
        self.stored.update({k: a.end for k, a in keys.items()})
        self.attempts.update(dict.fromkeys(keys, 0))

    def _repeat_answer(self, publish_id: uuid.UUID) -> PublishAnswer:
        answer = self._answers[publish_id]
        if answer is None:
            raise PublishRefused(Refusal(code="abandoned", detail="given up"))
        return answer

    def _overlap(self, topic_id: str, ranges_by_partition: dict[int, _Ranges]) -> dict[int, _Ranges]:
        overlap = {}
        for partition, ranges in ranges_by_partition.items():
            settled = self._settled.get((topic_id, partition), [])
            common = offsets.subtracted(ranges, offsets.subtracted(ranges, settled))
            if common:
                overlap[partition] = common
        return overlap


def _ranges_to_settle(request: PublishRequest) -> dict[int, _Ranges]:
    ended: dict[int, _Ranges] = {}
    for segment in request.segments:
        for partition, ranges in segment.offsets.items():
            ended.setdefault(partition, []).extend(ranges)
    for partition, o in request.outcomes.items():
        ended.setdefault(partition, []).extend([*o.thrown_away, *o.unparseable, *o.empty, *o.gap, *o.skipped])
    return {p: offsets.merged(r) for p, r in ended.items() if r}
