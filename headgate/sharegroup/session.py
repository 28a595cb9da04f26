"""One query's share of the work outside of Spark's: claim the location, run the readers, plan, commit."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException

from headgate.errors import DataLoss, Fenced, HeadgateError, ReaderFailed
from headgate.folders import open_folder
from headgate.sharegroup.buffer_store import BEAT_S, BufferFile, claim_location
from headgate.sharegroup.ledger import Ledger
from headgate.sharegroup.options import Options
from headgate.sharegroup.pacing import SETTLE_S, Backlog, is_batch_due
from headgate.sharegroup.properties import client_config, consumer_config
from headgate.sharegroup.reader import Orders
from headgate.sharegroup.reader_pool import Team
from headgate.sharegroup.topics import CHECK_EVERY_S, TopicIds
from ingestion.failpoints import reach

SWEEP_S = 1.0
SHUTDOWN_S = 20.0

log = logging.getLogger("headgate")


_POSITION_WARNING = (
    "No record comes of share group %r, although its topics hold some. The group has a position of its own: "
    "groupAutoOffsetReset and a new checkpoint do not move it. To read these records again, use another shareGroupId, "
    "or set the position back with kafka-share-groups.sh. If another reader of the group is at work, it has them."
)


class Session:
    """Made once in a source process. Numbers are those of files: micro-batches go from one to before another."""

    def __init__(self, options: Options) -> None:
        self._options = options
        folder = open_folder(options.location)
        client, consumer = client_config(options), consumer_config(options)
        try:
            self._store, state = claim_location(folder)
        except OSError as error:
            raise ReaderFailed(f"the folder that records are to wait in can't be used: {error}") from None
        reach("claimed")
        self._place = folder
        self.ledger = Ledger(state, self._store.claim)
        self._ids = TopicIds(client, options.topics, self.ledger, options.fail_on_data_loss)
        if options.reset:
            self._ids.begin_at(options.group, options.reset)
        limit = self._ids.delivery_limit(options.group)
        location, claim = options.location, self._store.claim
        orders = Orders(
            consumer, list(options.topics), location, claim, options.with_headers, limit, options.fail_on_poison
        )
        self._team = Team(self._store, self.ledger, self._ids, orders, options.readers, options.processes)
        self._team.may_poll = self._may_poll
        self._earlier_rows = sum(f.rows for f in state.files if f.number >= state.done)  # by an earlier start
        # The location is new, and so is the checkpoint: its query may expect all from the topics' beginning.
        self._expects_all = options.reset == "earliest" and not state.settled and not state.files
        self._consumed = self.ledger.done  # what micro-batches have taken
        self._swept = self.ledger.done
        self._waits_since: float | None = None  # records, for a micro-batch that is worth its while
        self._end_offsets: dict[tuple[str, int], int] | None = None  # set: what came later may wait
        self._warning_lock = threading.Lock()
        self._stopped = threading.Event()
        self._team.save_state()  # with the topics' ids
        self._team.start()
        self._janitor = threading.Thread(target=self._maintain, daemon=True)
        self._janitor.start()
        threading.Thread(target=self._watch_topics, daemon=True).start()

    def check(self) -> None:
        """Raises why the readers can't go on, if they can't."""
        if self._team.failure is not None:
            raise self._team.failure

    def check_store(self, store: str) -> None:
        """Raises ``DataLoss`` for the checkpoint of another location."""
        if store != self.ledger.store_id:
            raise DataLoss(
                "the checkpoint is of another buffer location: give the one it was begun with, or a new checkpoint"
            )

    def latest(self, start: int, limit: int | None) -> int:
        """Where the next micro-batch may end: with whole files, of at most so many records, but one file at least."""
        self.check()
        self._consumed = max(self._consumed, start)
        if self._end_offsets is not None:
            self.await_end(lambda: self._has_enough(start, limit))
        elif not self._worth_a_batch(start):
            return start
        end, rows = start, 0
        for file in self.ledger.between(start, self.ledger.ready):
            if rows and limit is not None and rows + file.rows > limit:
                break
            end, rows = file.number + 1, rows + file.rows
        reach("planned")
        return end

    def files(self, start: int, end: int) -> list[BufferFile]:
        """Of a micro-batch, whether it runs for the first time or again."""
        self.check()
        if start < self.ledger.done and self._options.fail_on_data_loss:
            raise DataLoss("the checkpoint is older than the buffer location: files of this micro-batch were committed")
        if end > self.ledger.ready:
            raise DataLoss("the checkpoint is newer than the buffer location, of which a part is gone")
        self._consumed = max(self._consumed, end)
        return self.ledger.between(start, end)

    def commit(self, end: int) -> None:
        """Spark has committed what is before it; the files go a little later."""
        reach("committing")
        self._consumed = max(self._consumed, end)
        self.ledger.commit(end)

    def end_at_current_offsets(self) -> None:
        """From now on: what is in the topics at this moment, and then no more."""
        self._end_offsets = self._ids.end_offsets()

    def metrics(self) -> dict[str, Any]:
        """Counts since the query started, with what an earlier start had polled for it, and what waits now."""
        counts = self._team.totals.counts
        return {
            "firstRecordAt": self._team.totals.first_record_ms,
            "polled": counts.polled + self._earlier_rows,
            "acknowledged": counts.acknowledged,
            "redelivered": counts.redelivered,
            "duplicatesDropped": counts.duplicates_dropped,
            "rejected": counts.rejected,
            "acknowledgementsRefused": counts.ack_failures,
            "bytesWaiting": self.ledger.bytes_from(self._consumed),
            "holdMs": round(counts.hold_ms / counts.polls, 1) if counts.polls else 0.0,
            "readersWithRecords": len(self._team.totals.with_records),
            "readerRestarts": self._team.totals.restarts,
            "complaint": counts.client_problem,
        }

    def close(self) -> None:
        """Stop the readers and leave the location to whoever comes next."""
        self._stopped.set()
        self._team.stop()
        self._janitor.join(SHUTDOWN_S)
        try:
            if self._store.is_owned():
                self._team.save_state()
                self._store.leave()
        except OSError:
            pass  # the next one waits until nothing was heard for a while

    def await_end(self, enough: Callable[[], bool]) -> None:
        """Return when everything that there was has come, or enough of it."""
        while not self._is_over() and not enough():
            self.check()
            time.sleep(0.05)

    def _has_enough(self, start: int, limit: int | None) -> bool:
        if self._options.min_records:
            return self.ledger.ready > start and self._worth_a_batch(start)
        quiet_s = time.monotonic() - self._team.totals.last_poll
        backlog = Backlog(self._rows(start), self.ledger.bytes_from(start), quiet_s, self._has_all())
        return is_batch_due(backlog, limit, self._options.max_bytes)

    def _worth_a_batch(self, start: int) -> bool:
        """Whether there are as many records as the query wants of a micro-batch, or it has waited long enough."""
        if not self._options.min_records or self.ledger.ready == start:
            self._waits_since = None
            return True
        self._waits_since = self._waits_since or time.monotonic()
        late = time.monotonic() - self._waits_since >= self._options.max_delay_s
        if not late and self._rows(start) < self._options.min_records and self._may_poll():
            return False
        self._waits_since = None
        return True

    def _rows(self, start: int) -> int:
        return sum(f.rows for f in self.ledger.between(start, self.ledger.ready))

    def _is_over(self) -> bool:
        """All that was in the topics has been polled; or nothing comes, as others have it."""
        totals = self._team.totals
        now = time.monotonic()
        if self._has_all():
            return now - totals.last_poll > SETTLE_S
        if not totals.last_poll:
            is_stalled = self._nothing_comes()
            if is_stalled:
                self._warn_of_position()
            return is_stalled
        return now - totals.last_poll > self._options.idle_s

    def _nothing_comes(self) -> bool:
        """Since the readers were ready; to join a group takes a while."""
        totals = self._team.totals
        waits_s = time.monotonic() - totals.ready if totals.ready and not totals.last_poll else 0.0
        return waits_s > 2 * self._options.idle_s

    def _warn_of_position(self) -> None:
        """Once, where all was expected and nothing comes, although there is something: the group has read it before."""
        with self._warning_lock:  # the readers and the look at the topics may come to it at once
            if not self._expects_all or not self._nothing_comes():
                return
            self._expects_all = False
        if self._end_offsets or self._ids.end_offsets():
            log.warning(_POSITION_WARNING, self._options.group)

    def _has_all(self) -> bool:
        return all(self._has_polled(*key, end - 1) for key, end in (self._end_offsets or {}).items())

    def _has_polled(self, topic: str, partition: int, offset: int) -> bool:
        last = self._team.totals.counts.last.get((topic, partition), -1)
        return last >= offset or self.ledger.settled(f"{self.ledger.topics[topic]}/{partition}", offset)

    def _may_poll(self) -> bool:
        return self.ledger.bytes_from(self._consumed) < self._options.max_bytes

    def _watch_topics(self) -> None:
        """Notice one that was made again; apart from the readers, who would wait for Kafka's answer."""
        while not self._stopped.wait(CHECK_EVERY_S):
            try:
                self._ids.refresh()
                self._warn_of_position()
            except DataLoss as error:
                self._team.failure = self._team.failure or error
                return
            except (ReaderFailed, KafkaException, TimeoutError) as error:  # away: nothing is polled, either
                self._team.totals.counts.client_problem = str(error)

    def _maintain(self) -> None:
        """Show that this process lives, keep the state, and delete what was committed."""
        last_beat = 0.0
        while not self._stopped.wait(SWEEP_S):
            try:
                if time.monotonic() - last_beat >= BEAT_S:
                    if not self._store.is_owned():
                        raise Fenced("another query has taken this buffer location over")
                    self._store.beat()
                    last_beat = time.monotonic()
                if self.ledger.done > self._swept:
                    self._sweep(self.ledger.done)
            except HeadgateError as error:
                self._team.failure = self._team.failure or error
                return
            except OSError:
                continue  # the storage is away; readers say so when it stays away

    def _sweep(self, done: int) -> None:
        self.ledger.tidy(time.monotonic())
        self._team.save_state()
        reach("kept")
        for name in self._place.sizes("files"):
            if int(name.partition("-")[0]) < done:
                self._place.delete(f"files/{name}")
        self._store.forget_older_states()
        self._swept = done
