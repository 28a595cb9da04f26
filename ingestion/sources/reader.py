"""An ordinary consumer that reads assigned partitions in order and says of every offset what is there.

Whatever lies between two records (transaction markers, aborted and compacted records) ends as ``empty``, so that the
offsets of a batch are whole: from where the last one ended to where this one does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ingestion.sources.base import Batch, Ints, LazyColumn, SourceProblem
from ingestion.sources.client_problems import ALL_PARTITIONS, UNREADABLE, ClientProblems, is_of_unused_group
from ingestion.sources.stored_offsets import StartPosition
from ingestion.sources.topic import REFRESH_MS
from ingestion.specs import offsets
from ingestion.specs.inputs.group_config import Isolation
from ingestion.specs.kafka.properties import librdkafka_properties, quick_to_reconnect
from ingestion.specs.messages.protocol import Advance, Outcomes

MAX_RECORDS = 20_000  # of a batch
FEWEST_RECORDS = 100
BATCH_BYTES = 8 * 1024 * 1024
CLOSE_S = 10.0
MAX_PROBES = 8  # side by side
PROBE_S = 0.2  # at a time
REFUSED_RETRY_S = 10.0  # whether what Kafka refused is read by now
FOREVER = float("inf")
_OUT_OF_RANGE = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)


class LostPosition(Exception):
    """What the consumer reads of these partitions is not what comes next: take them up again where they are stored."""

    def __init__(self, partitions: set[int]) -> None:
        self.partitions = partitions
        super().__init__(f"partitions {sorted(partitions)}")


class Reader:
    """Not thread-safe. ``group``: the consumer group that deals the partitions out; None: the caller assigns them."""

    def __init__(
        self,
        topic: str,
        properties: Mapping[str, str],
        isolation: Isolation,
        group: str | None,
        client_id: str,
        poll_s: float,
        **config: Any,
    ) -> None:
        self.topic = topic
        self._config = {
            "queued.max.messages.kbytes": 2 * 1024,  # a small record needs several times its size here
            "fetch.queue.backoff.ms": 20,  # looks so often whether there is room again; by itself once a second
            "fetch.wait.max.ms": 100,
            "topic.metadata.refresh.interval.ms": REFRESH_MS,
            **quick_to_reconnect(properties),
            **librdkafka_properties(properties),
            "client.id": client_id,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "log_level": 0,  # librdkafka says the same at every attempt: see problem
        }
        self._in_group = group is not None
        # librdkafka wants a name; with partitions assigned, nothing is asked of the group.
        self.consumer = Consumer({**self._config, **config, "group.id": group or "unused", "error_cb": self._on_error})
        self._poll_s = poll_s
        self._next: dict[int, int] = {}  # where each partition goes on
        self._generations: dict[int, int | None] = {}
        self._untils: dict[int, int] = {}  # of those that are not read on: where they stop
        self._stopped_at: dict[int, int] = {}  # those that have been read until there
        self._new_partitions: set[int] = set()  # taken up, and nothing was read yet
        self._reached_ends: dict[int, int] = {}  # where each partition's end was last met
        self._lost_positions: set[int] = set()
        self._suspect: set[int] = set()  # until something of it is published
        self._skipped: list[Batch] = []
        self._max_records = MAX_RECORDS
        self.client_problems = ClientProblems(topic, group or "")
        self._refetched_at = 0.0
        self._probes: dict[int, Consumer] = {}  # by partition: see _plausible
        self._leaving: threading.Thread | None = None
        self.waiting: int | None = None  # records in the log, as far as the broker has said, at the last read

    @property
    def partitions(self) -> set[int]:
        return set(self._next)

    @property
    def stopped_at(self) -> Mapping[int, int]:
        """By partition, where it was read to its end: it is read no more until it is taken up again."""
        return self._stopped_at

    def generation(self, partition: int) -> int | None:
        """That under which the partition is read."""
        return self._generations.get(partition)

    def add(self, starts: Mapping[int, StartPosition]) -> list[TopicPartition]:
        """Take these partitions up; returns what to assign to the consumer."""
        for partition, start in starts.items():
            self._next[partition] = start.offset
            self._generations[partition] = start.generation
            self._new_partitions.add(partition)
            if start.until is not None:
                self._untils[partition] = start.until
            if start.suspect:
                self._suspect.add(partition)
            if start.skipped is not None:
                advance = Advance(start=start.stored, end=start.offset, generation=start.generation)
                none = np.zeros(0, dtype=np.int64)
                self._skipped.append(_make_batch([], none, none, {partition: start.skipped}, {partition: advance}))
            self._stop_at_end(partition)
        return [TopicPartition(self.topic, p, s.offset) for p, s in starts.items()]

    def forget(self, partitions: Iterable[int]) -> None:
        """Read these no more."""
        for partition in partitions:
            self.client_problems.clear_partitions([partition])
            self._next.pop(partition, None)
            self._untils.pop(partition, None)
            self._stopped_at.pop(partition, None)
            self._reached_ends.pop(partition, None)
            self._new_partitions.discard(partition)
            self._lost_positions.discard(partition)
            self._suspect.discard(partition)
            if partition in self._probes:
                self._probes.pop(partition).close()
            self._skipped = [b for b in self._skipped if partition not in b.progress]

    def published(self, partitions: Iterable[int]) -> None:
        """Something of these is published: they are no longer suspect."""
        self._suspect.difference_update(partitions)

    def read(self, timeout_s: float) -> Batch | None:
        """The next batch. Raises ``LostPosition`` and ``SourceProblem``."""
        if self._lost_positions:
            raise LostPosition(set(self._lost_positions))
        if self._skipped:
            return self._skipped.pop(0)
        self._refetch()
        try:
            polled = self.consumer.consume(self._max_records, min(timeout_s, self._poll_s))
            log_ends = self._known_ends()
        except KafkaException as error:
            raise SourceProblem(f"Reading {self.topic}: {error.args[0].str()}") from None
        messages, ends, unreadable = self._sort_polled(polled)
        if messages:
            self.client_problems.clear_connection_problems()
        batch = self._as_batch(messages, ends) if polled else None
        for partition in unreadable & self.partitions:
            self._try_rewind(partition)
        self.waiting = self._count_remaining(log_ends, ends)
        return batch

    def _refetch(self) -> None:
        """Of what Kafka refused: a record, or the end of its partition, then says that it is read."""
        refused = set(self._next)
        if ALL_PARTITIONS not in self.client_problems.refused:
            refused.intersection_update(self.client_problems.refused)
        if refused and time.monotonic() - self._refetched_at > REFUSED_RETRY_S:
            self._refetched_at = time.monotonic()
            for partition in refused:
                with suppress(KafkaException):  # it is on its way to another member, or here
                    self._rewind(partition)

    def _rewind(self, partition: int) -> None:
        """To where the partition goes on: what was fetched of it meanwhile is dropped."""
        self.consumer.seek(TopicPartition(self.topic, partition, self._next[partition]))

    def _try_rewind(self, partition: int) -> None:
        try:
            self._rewind(partition)
        except KafkaException:
            self._lost_positions.add(partition)

    def _known_ends(self) -> dict[int, int]:
        """Of each partition the end that the last fetch told of, not asked for now; below 0 before there was one."""
        places = [TopicPartition(self.topic, p) for p in self._next]
        return {p.partition: self.consumer.get_watermark_offsets(p, cached=True)[1] for p in places}

    def _count_remaining(self, log_ends: Mapping[int, int], reached_ends: Mapping[int, int]) -> int | None:
        """How much is there to read. ``reached_ends``: ends that were met now: behind them nothing is committed yet."""
        self._reached_ends.update(reached_ends)
        left = {
            p: min(end, self._untils.get(p, end)) - self._next[p]
            for p, end in log_ends.items()
            if self._reached_ends.get(p) != self._next[p] and p not in self._stopped_at
        }
        return None if any(log_ends[p] < 0 for p in left) else sum(max(0, records) for records in left.values())

    def _stop_at_end(self, partition: int) -> None:
        """What comes behind it is not read: it is another's, or settled already."""
        if self._next[partition] >= self._untils.get(partition, self._next[partition] + 1):
            self._stopped_at[partition] = self._untils[partition]

    def _sort_polled(self, polled: list[Any]) -> tuple[list[Any], dict[int, int], set[int]]:
        """The records, by partition where its end was met, and of which partitions something can't be read.

        What comes behind that is left out: librdkafka passes over a batch whose checksum is wrong.
        """
        if not self.client_problems.refused and all(m.error() is None for m in polled):
            return polled, {}, set()
        records, ends = [], {}
        unreadable: set[int] = set()
        for message in polled:
            error, partition = message.error(), message.partition()
            if partition in unreadable and message.topic() is not None:
                continue
            if error is None:
                records.append(message)
                self.client_problems.clear_partitions([partition, ALL_PARTITIONS])
            elif error.code() == KafkaError._PARTITION_EOF:
                ends[partition] = message.offset()
                self.client_problems.clear_partitions([partition, ALL_PARTITIONS])
            elif error.code() in _OUT_OF_RANGE:
                self._lost_positions |= {partition} & self.partitions
            elif message.topic() is None:
                self._on_error(error)
            elif partition in self._next:
                self.client_problems.add_error(error, partition)
                unreadable |= {partition} if error.code() in UNREADABLE else set()
        return records, ends, unreadable

    def _as_batch(self, messages: list[Any], ends: dict[int, int]) -> Batch | None:
        places = np.array([m.partition() for m in messages], dtype=np.int64)
        numbers = np.array([m.offset() for m in messages], dtype=np.int64)
        extra: dict[int, Outcomes] = {}
        progress: dict[int, Advance] = {}
        present = _distinct(places)
        for partition in sorted({*present, *ends}):
            partition_offsets = numbers if present == [partition] else numbers[places == partition]
            end = self._end_of(partition, partition_offsets, ends.get(partition))
            if end is None:
                continue
            start, end = self._next[partition], min(end, self._untils.get(partition, end))
            partition_offsets = partition_offsets[partition_offsets < end]
            if end - start > len(partition_offsets):
                extra[partition] = Outcomes(empty=_gaps_between(start, partition_offsets, end))
            progress[partition] = Advance(start=start, end=end, generation=self._generations[partition])
            self._next[partition] = end
            self._stop_at_end(partition)
        if not progress:
            return None
        messages, places, numbers = _select_below({p: a.end for p, a in progress.items()}, messages, places, numbers)
        batch = _make_batch(messages, places, numbers, extra, progress)
        if self._suspect & progress.keys():
            batch = replace(batch, suspect=True)
        self._max_records = self._records_that_fit(batch.payloads)
        return batch

    def _end_of(self, partition: int, numbers: Ints, log_end: int | None) -> int | None:
        """Where this part of a partition ends; None when there is nothing new, or it is not what comes next."""
        if partition not in self._next or partition in self._lost_positions or partition in self._stopped_at:
            return None  # on its way when the partition was taken away
        start = self._next[partition]
        first = int(numbers[0]) if len(numbers) else log_end
        last = int(numbers[-1]) + 1 if len(numbers) else start
        end = max(last, log_end or 0)
        if end <= start:
            return None
        in_order = len(numbers) < 2 or bool((np.diff(numbers) > 0).all())
        # A partition may be taken up within the very poll that reads of it; what was left out there comes first.
        in_order &= not any(partition in batch.progress for batch in self._skipped)
        plausible = in_order and first is not None and first >= start and self._is_plausible(partition, start, first)
        if plausible is None:  # not known yet: what was read comes again, and the look has gone on meanwhile
            self._try_rewind(partition)
            return None
        if not plausible:
            self._lost_positions.add(partition)
            return None
        self._new_partitions.discard(partition)
        return end

    def _is_plausible(self, partition: int, start: int, first: int) -> bool | None:
        """Whether a partition that was just taken up really holds nothing before ``first``; None: not known yet.

        A consumer hands out what it fetched before a rebalance too; taken for what comes next, all before it would be
        lost. Asked of a consumer of its own, which goes on from call to call: aborted records may be many.
        """
        if partition not in self._new_partitions or first == start:
            return True
        if partition not in self._probes:
            if len(self._probes) >= MAX_PROBES:
                return None
            probe = self._probes[partition] = Consumer({**self._config, "group.id": "unused"})
            probe.assign([TopicPartition(self.topic, partition, start)])
        message = self._probes[partition].poll(PROBE_S)
        while message is not None and is_of_unused_group(message.error()):
            message = self._probes[partition].poll(PROBE_S)
        if message is None:
            return None
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            self.client_problems.add_error(error, partition)
            return None
        self._probes.pop(partition).close()
        return bool(message.offset() >= first)

    def _records_that_fit(self, payloads: Any) -> int:
        """How many records of this size a batch may have."""
        if len(payloads) < FEWEST_RECORDS:
            return self._max_records
        sample = payloads[:: max(1, len(payloads) // FEWEST_RECORDS)]
        size = sum(len(p or b"") for p in sample) / len(sample)
        return int(max(FEWEST_RECORDS, min(MAX_RECORDS, BATCH_BYTES // max(1.0, size))))

    def _on_error(self, error: Any) -> None:
        if self._in_group or not is_of_unused_group(error):
            self.client_problems.add_error(error)

    def close(self) -> None:
        """Leave; safe to call twice. Raises ``SourceProblem`` when the client does not come to an end.

        It waits until the broker has answered its last commits: while that is away for as long, and at times for ever.
        """
        if self._leaving is None:
            self._leaving = threading.Thread(target=self._leave, name="leaving", daemon=True)
            self._leaving.start()
        self._leaving.join(CLOSE_S)
        if self._leaving.is_alive():
            raise SourceProblem(f"Reading {self.topic}: the client has not closed within {CLOSE_S:.0f} s")

    def _leave(self) -> None:
        for probe in self._probes.values():
            with suppress(KafkaException, RuntimeError):
                probe.close()
        try:
            self.consumer.close()
        except (KafkaException, RuntimeError):
            pass  # closed already, or the broker is away: nothing is held there


def _distinct(places: Ints) -> list[int]:
    if len(places) and places[0] == places[-1] and (places == places[0]).all():
        return [int(places[0])]
    return [int(p) for p in np.unique(places)]


def _select_below(
    ends: Mapping[int, int], messages: list[Any], places: Ints, numbers: Ints
) -> tuple[list[Any], Ints, Ints]:
    """Those of these partitions, each up to its end."""
    is_selected = np.zeros(len(places), dtype=bool)
    for partition, end in ends.items():
        is_selected |= (places == partition) & (numbers < end)
    if is_selected.all():
        return messages, places, numbers
    return (
        [m for m, selected in zip(messages, is_selected.tolist(), strict=True) if selected],
        places[is_selected],
        numbers[is_selected],
    )


def _gaps_between(start: int, present: Ints, end: int) -> list[offsets.Range]:
    """The offsets of ``[start, end)`` that are not among ``present`` (ascending)."""
    edges = np.concatenate(([start - 1], present, [end]))
    holes = np.flatnonzero(np.diff(edges) > 1)
    return [(int(edges[i]) + 1, int(edges[i + 1])) for i in holes.tolist()]


def _make_batch(
    messages: list[Any], places: Ints, numbers: Ints, extra: dict[int, Outcomes], progress: dict[int, Advance]
) -> Batch:
    return Batch(
        partitions=places,
        offsets=numbers,
        delivery_counts=np.ones(len(messages), dtype=np.int64),
        payloads=[m.value() for m in messages],
        keys=LazyColumn(messages, lambda m: m.key()),
        timestamps_ms=LazyColumn(messages, lambda m: m.timestamp()[1] if m.timestamp()[0] else None),
        headers=LazyColumn(messages, lambda m: m.headers() or ()),
        deadline=FOREVER,
        extra=extra,
        progress=progress,
    )
