"""A reader: one consumer that polls, writes, and acknowledges what the source process says is settled.

It speaks with the source process over a pipe, asks one question at a time, and works on until it needs the answer:

=====================================  ================================================
``("may", counts)``                    whether to poll: ``POLL``, ``PAUSE`` or ``STOP``
``("propose", parts)``                 a ``Task``: the file to write, and what to drop
``("stored", number, rows, bytes)``    nothing: what follows is asked after it
``("failed", text, kind)``             nothing: the query fails
=====================================  ================================================

When the pipe ends, so does the reader, and what it holds goes back to the group.
"""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import AcknowledgeType, KafkaException

from headgate.folders import Folder, open_folder
from headgate.sharegroup.buffer_store import Settled, is_owner
from headgate.sharegroup.columns import as_batch, as_file
from ingestion.failpoints import reach
from ingestion.share_consumer import ShareGroupConsumer
from ingestion.specs.kafka.client_messages import NO_RIGHT, share_groups_off
from ingestion.specs.offsets import Range, ranges_of

POLL, PAUSE, STOP = "poll", "pause", "stop"
POLL_S = 0.5
PAUSE_S = 0.1
COMMIT_S = 10.0
WRITE_RETRY_S = (0.1, 0.5, 2.0, 5.0)


@dataclass(frozen=True)
class Orders:
    """What a reader is started with; it goes through the pipe, since it holds passwords."""

    config: dict[str, Any]  # the consumer's
    topics: list[str]
    location: str
    claim: str
    with_headers: bool
    delivery_limit: int
    fail_on_poison: bool


@dataclass(frozen=True)
class Task:
    """What to do with a poll: ``name`` is None when all of it was settled before."""

    number: int
    name: str | None
    settles: Settled
    dropped: list[list[Range]]  # for each (topic, partition) that was proposed


@dataclass
class Counts:
    """What a reader did since it last said so."""

    polled: int = 0
    acknowledged: int = 0
    redelivered: int = 0
    duplicates_dropped: int = 0
    rejected: int = 0
    ack_failures: int = 0
    hold_ms: float = 0.0  # from poll to acknowledgement, of all polls together
    polls: int = 0
    client_problem: str = ""
    last: dict[tuple[str, int], int] = field(default_factory=dict)  # the highest offset polled of a partition


def run(link: Connection) -> None:
    """Read until the source process says stop, or is gone."""
    orders: Orders = link.recv()
    try:
        Reader(orders, link).run()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except Exception as error:
        try:
            link.send(("failed", _error_text(error), type(error).__name__))
        except OSError:
            return
    finally:
        link.close()


def _error_text(error: Exception) -> str:
    if not isinstance(error, KafkaException):
        return str(error) or type(error).__name__
    reason: Any = error.args[0]
    if why := share_groups_off(reason):
        return why
    if reason.name() == "GROUP_ID_NOT_FOUND":  # Kafka's word for one of another kind
        return f"shareGroupId names a group of another kind, a consumer group, say: name another one ({reason.str()})"
    if reason.name() in NO_RIGHT:
        return f"this login may not read the share group, or a topic: it needs READ on both ({reason.str()})"
    return str(reason.str())


def _is_final(reason: Any) -> bool:
    """Whether Kafka has said no: the client calls it retriable even then, for rights may be given."""
    return bool(reason.fatal() or not reason.retriable() or reason.name() in NO_RIGHT)


class ClaimLost(Exception):
    """Another query has claimed the location."""


class Poisoned(Exception):
    """A record came as often as the group lets it, and ``onPoison`` is ``fail``."""


class Reader:
    """Lives on one thread."""

    def __init__(self, orders: Orders, link: Connection) -> None:
        self._orders = orders
        self._link = link
        self._consumer = ShareGroupConsumer(orders.config, orders.topics, self._on_answer, self._on_error)
        self._place: Folder = open_folder(orders.location)
        pa.array([])  # pyarrow looks for pandas at the first, which takes a while: not with a poll in hand
        self._counts = Counts()
        self._is_requested = False

    def run(self) -> None:
        """Until it is told to stop."""
        try:
            while (order := self._permission()) != STOP:
                if order == PAUSE:
                    self._commit()
                    time.sleep(PAUSE_S)
                    continue
                try:
                    self._consumer.join()
                    self._round()
                except KafkaException as error:
                    self._counts.client_problem = _error_text(error)
                    if _is_final(error.args[0]):
                        raise
                    time.sleep(1.0)
            self._commit()
            self._permission()
        finally:
            self._consumer.close()

    def _request_permission(self) -> None:
        """Whether to poll on, with what was counted since the last time."""
        self._link.send(("may", self._counts))
        self._counts = Counts()
        self._is_requested = True

    def _permission(self) -> Any:
        """The answer, asked for by now or before."""
        if not self._is_requested:
            self._request_permission()
        self._is_requested = False
        return self._link.recv()

    def _on_error(self, error: Any) -> None:
        self._counts.client_problem = str(error.str())

    def _on_answer(self, partition: int, offsets: set[int], error: KafkaException | None) -> None:
        """What the broker refused it delivers again."""
        if error is None:
            self._counts.acknowledged += len(offsets)
        else:
            self._counts.ack_failures += len(offsets)

    def _round(self) -> None:
        messages = self._consumer.poll(POLL_S)
        if not messages:
            return
        reach("polled")
        poison = self._settle(messages)
        reach("settled")
        self._counts.hold_ms += (time.monotonic() - self._consumer.polled_at) * 1000
        self._counts.polls += 1
        self._request_permission()
        self._consumer.acknowledge(messages, _kinds(len(messages), poison))

    def _settle(self, messages: Sequence[Any]) -> set[int]:
        """Make sure that all of them are settled; which of them, by their place, are poison."""
        offsets, partitions = _int_array(m.offset() for m in messages), _int_array(m.partition() for m in messages)
        topics = [m.topic() for m in messages] if len(self._orders.topics) > 1 else None
        groups = _groups(messages[0].topic(), topics, partitions)
        self._link.send(("propose", [(*key, ranges_of(offsets[where].tolist())) for key, where in groups]))
        batch = as_batch(messages, self._orders.with_headers)
        deliveries = batch["delivery_count"].to_numpy()
        self._counts.polled += len(messages)
        self._counts.redelivered += int((deliveries > 1).sum())
        self._counts.last.update({key: int(offsets[where].max()) for key, where in groups})
        task: Task = self._link.recv()
        reach("proposed")
        new = np.ones(len(messages), dtype=bool)
        for (_, where), dropped in zip(groups, task.dropped, strict=True):
            for start, end in dropped:
                new[where] &= (offsets[where] < start) | (offsets[where] >= end)
        self._counts.duplicates_dropped += int((~new).sum())
        if task.name is None:
            self._check_claim()
            return set()
        poison = new & (deliveries >= self._orders.delivery_limit)
        if poison.any():
            self._reject(batch.filter(pa.array(poison)), task.name)
        self._write(batch if (new & ~poison).all() else batch.filter(pa.array(new & ~poison)), task.name, task)
        return set(np.flatnonzero(poison).tolist())

    def _write(self, batch: pa.RecordBatch, name: str, task: Task) -> None:
        file = as_file(batch, {"settles": json.dumps(task.settles), "rows": str(batch.num_rows)})
        _write_with_retry(self._place, f"files/{name}", file)
        reach("written")
        self._check_claim()
        self._link.send(("stored", task.number, batch.num_rows, file.size))

    def _check_claim(self) -> None:
        if not is_owner(self._place, self._orders.claim):
            raise ClaimLost("another query has taken this buffer location over")

    def _reject(self, batch: pa.RecordBatch, name: str) -> None:
        """Poison records, as Parquet, before anything is said to the broker."""
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_batches([batch]), sink)
        _write_with_retry(self._place, f"rejected/{name.removesuffix('.arrow')}.parquet", sink.getvalue())
        self._counts.rejected += batch.num_rows
        if self._orders.fail_on_poison:
            topic, partition, offset = (batch[c][0].as_py() for c in ("topic", "partition", "offset"))
            raise Poisoned(
                f"offset {offset} of partition {partition} of {topic} was delivered {self._orders.delivery_limit} "
                "times, as often as the group allows, and onPoison is fail; it is kept in rejected/ of its buffer"
            )

    def _commit(self) -> None:
        try:
            self._consumer.commit(COMMIT_S)
        except KafkaException as error:
            self._counts.client_problem = _error_text(error)


def _int_array(values: Iterable[int]) -> Any:
    return np.fromiter(values, np.int64)


def _groups(topic: str, topics: list[str] | None, partitions: Any) -> list[tuple[tuple[str, int], Any]]:
    """Where in a poll each topic's partitions are, as masks or slices."""
    if topics is None or topics.count(topic) == len(topics):
        if (partitions == partitions[0]).all():
            return [((topic, int(partitions[0])), slice(None))]
        return [((topic, int(p)), partitions == p) for p in np.unique(partitions)]
    names = np.array(topics)
    return [((str(t), int(p)), (names == t) & (partitions == p)) for t, p in {*zip(topics, partitions, strict=True)}]


def _kinds(count: int, poison: set[int]) -> list[int] | None:
    """Of acknowledgements: poison is rejected, all else accepted."""
    if not poison:
        return None
    return [AcknowledgeType.REJECT if index in poison else AcknowledgeType.ACCEPT for index in range(count)]


def _write_with_retry(folder: Folder, name: str, content: Any) -> None:
    for pause in WRITE_RETRY_S:
        try:
            folder.write(name, content)
            return
        except OSError:
            time.sleep(pause)
    folder.write(name, content)


def run_all(links: Sequence[Connection]) -> None:
    """A thread for each reader, in this process, until all have ended."""
    threads = [threading.Thread(target=run, args=(link,), daemon=True) for link in links]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
