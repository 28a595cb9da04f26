"""What the loop is told and what it tells: shared between the loop's thread and the one that talks to the driver."""

from __future__ import annotations

import threading
import time
from typing import Any

from ingestion.specs.counters import Counters
from ingestion.specs.messages.protocol import Directive, IndexerStatus, Leases

_RANK: dict[Directive, int] = {"continue": 0, "finish": 1, "stop": 2}


def stricter(one: Directive, other: Directive) -> Directive:
    """Of two directives the one that counts."""
    return max(one, other, key=_RANK.__getitem__)


class Control:
    """Thread-safe. A directive only ever grows stricter: continue, finish, stop."""

    def __init__(self, number: int, pid: int) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._directive: Directive = "continue"
        self._status = IndexerStatus(number=number, epoch=0, state="starting", pid=pid)
        self._commits_seen_at = 0.0
        self._lost_epoch = -1

    def update(self, directive: Directive, store_commits: bool = True, start_again: int | None = None) -> None:
        """From outside: what to do from now on, and whether the metadata store has just been seen to commit; and
        ``start_again``, an epoch of which it has lost publishes."""
        with self._changed:
            if _RANK[directive] > _RANK[self._directive]:
                self._directive = directive
            if start_again is not None:
                self._lost_epoch = start_again
            if store_commits:
                self._commits_seen_at = time.monotonic()
            self._changed.notify_all()

    @property
    def directive(self) -> Directive:
        with self._lock:
            return self._directive

    @property
    def has_lost_publishes(self) -> bool:
        """Whether the store has lost publishes of this epoch that it had answered."""
        with self._lock:
            return self._lost_epoch == self._status.epoch

    def wait_for_store(self, since: float, timeout_s: float) -> bool:
        """Wait until the store was seen to commit after ``since`` (``time.monotonic``), or stop was asked for."""
        with self._changed:
            self._changed.wait_for(lambda: self._commits_seen_at > since or self._directive == "stop", timeout_s)
            return self._commits_seen_at > since

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than until the directive changes."""
        with self._changed:
            before = self._directive
            self._changed.wait_for(lambda: self._directive != before, seconds)

    def show(self, **changes: Any) -> None:
        """Change what the next heartbeat says."""
        with self._lock:
            self._status = self._status.model_copy(update=changes)

    def new_epoch(self, epoch: int, answered: int | None = None) -> None:
        """Counters of records without a publish start again with each epoch. ``answered``: publishes before it."""
        self.show(
            epoch=epoch,
            state="reading",
            unpublished=Counters(),
            redelivery_counts={},
            leases=Leases(),
            holding=[],
            publishes=0,
            answered=answered,
            message="",
        )

    def show_reading(self, problem: str, refused: bool) -> None:
        """What its source says while it reads. ``refused``: by Kafka. A pause stays one."""
        with self._lock:
            state = self._status.state
            if state in ("reading", "refused"):
                state = "refused" if refused else "reading"
            self._status = self._status.model_copy(update={"state": state, "message": problem})

    def count_publish(self) -> None:
        """One more was taken."""
        with self._lock:
            status = self._status
            answered = None if status.answered is None else status.answered + 1
            self._status = status.model_copy(update={"publishes": status.publishes + 1, "answered": answered})

    def count_released(self, records: int, redelivered: int) -> None:
        """Records that ended as released."""
        self._count(Counters(polled=records, released=records, redelivered=redelivered))

    def count_redundant(self, records: int) -> None:
        """Records that another replica has published."""
        self._count(Counters(polled=records, redundant=records))

    def _count(self, more: Counters) -> None:
        with self._lock:
            self._status = self._status.model_copy(update={"unpublished": self._status.unpublished + more})

    def count_deliveries(self, counts: dict[int, int]) -> None:
        """Delivery count → records, of one batch."""
        with self._lock:
            totals = dict(self._status.redelivery_counts)
            for delivery, records in counts.items():
                totals[delivery] = totals.get(delivery, 0) + records
            self._status = self._status.model_copy(update={"redelivery_counts": totals})

    @property
    def status(self) -> IndexerStatus:
        with self._lock:
            return self._status
