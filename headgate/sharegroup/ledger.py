"""Which offsets are settled, and by which file: one book, kept by the source process, for all readers."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headgate.sharegroup.buffer_store import BufferFile, Settled, State, file_name
from ingestion.specs.offsets import Range, RangeSet

KEPT_RANGES = 10_000  # of a partition; those beyond are forgotten once they are old
OLD_S = 3600.0  # longer than the broker can go on delivering a record: locks end after minutes, and deliveries are few


@dataclass(frozen=True)
class Part:
    """Offsets of one partition within a poll."""

    key: str  # "<topic id>/<partition>"
    ranges: list[Range]


@dataclass(frozen=True)
class Verdict:
    """What a reader is to do with a poll."""

    number: int | None  # of the file to write; None: all of it was settled before
    dropped: list[list[Range]]  # for each part, what was


@dataclass(frozen=True)
class _Pending:
    owner: int
    parts: list[Part]


class Ledger:
    """Thread-safe. Numbers go up by one; ``ready`` is the first that is not certain yet."""

    def __init__(self, state: State, claim: str) -> None:
        self.store_id = state.store
        self.topics = dict(state.topics)
        self.claim = claim
        self.done = state.done
        self._next = state.next
        self._files = {f.number: f for f in state.files}
        self._settled = {key: RangeSet(ranges) for key, ranges in state.settled.items()}
        self._pending: dict[int, _Pending] = {}
        self._voids: set[int] = set()
        self._marks: list[tuple[float, dict[str, int]]] = []
        self._changed = threading.Condition()
        self._closed = False

    def known(self, parts: Iterable[Part]) -> bool:
        """Whether any of these offsets is settled, or about to be."""
        with self._changed:
            return any(self._overlaps(p) for p in parts) or self._is_pending(parts)

    def settled(self, key: str, offset: int) -> bool:
        """Whether an offset is."""
        with self._changed:
            settled_set = self._settled.get(key)
            return settled_set is not None and bool(settled_set.overlap(offset, offset + 1))

    def propose(self, owner: int, parts: Sequence[Part]) -> Verdict:
        """Give a poll a number, for those of its offsets that are not settled.

        Waits while another reader is about to settle some of them. Raises ``InterruptedError`` when it is closed.
        """
        with self._changed:
            while self._is_pending(parts):
                self._check_open()
                self._changed.wait(1.0)
            self._check_open()
            dropped = [self._overlaps(p) for p in parts]
            left = [Part(p.key, _without(p.ranges, d)) for p, d in zip(parts, dropped, strict=True)]
            if not any(p.ranges for p in left):
                return Verdict(None, dropped)
            number, self._next = self._next, self._next + 1
            self._pending[number] = _Pending(owner, left)
            return Verdict(number, dropped)

    def settles(self, number: int) -> Settled:
        """The offsets that a number's file is to settle."""
        with self._changed:
            return _by_key(self._pending[number].parts)

    def stored(self, file: BufferFile) -> None:
        """The file is there to stay."""
        with self._changed:
            for part in self._pending.pop(file.number).parts:
                settled_set = self._settled.setdefault(part.key, RangeSet())
                for start, end in part.ranges:
                    settled_set.add(start, end)
            self._files[file.number] = file
            self._changed.notify_all()

    def void(self, number: int) -> None:
        """There is no such file; the state that says so must be kept before ``ready`` passes the number."""
        with self._changed:
            self._voids.add(number)

    def forget(self, number: int) -> None:
        """The state that names a void number has been kept."""
        with self._changed:
            self._pending.pop(number, None)
            self._changed.notify_all()

    def pending_of(self, owner: int) -> list[int]:
        """Numbers whose files a reader has not reported."""
        with self._changed:
            return [n for n, p in self._pending.items() if p.owner == owner]

    @property
    def ready(self) -> int:
        """Every file with a lower number is there, or never will be."""
        with self._changed:
            return min(self._pending, default=self._next)

    def await_ready(self, beyond: int, seconds: float) -> None:
        """Wait until there is more than ``beyond``, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: min(self._pending, default=self._next) > beyond, seconds)

    def between(self, start: int, end: int) -> list[BufferFile]:
        """Files from one number to before another."""
        with self._changed:
            return [self._files[n] for n in sorted(self._files) if start <= n < end]

    def commit(self, end: int) -> None:
        """Files with lower numbers are needed no more."""
        with self._changed:
            self.done = max(self.done, end)
            for key in [n for n in self._files if n < self.done]:
                del self._files[key]
            self._voids = {n for n in self._voids if n >= self.done}
            self._changed.notify_all()

    def bytes_from(self, start: int) -> int:
        """Of the files that no micro-batch has taken."""
        with self._changed:
            return sum(f.size_bytes for n, f in self._files.items() if n >= start)

    def state(self) -> State:
        """For the store."""
        with self._changed:
            settled = {key: settled_set.ranges() for key, settled_set in self._settled.items()}
            files = [self._files[n] for n in sorted(self._files)]
            return State(self.store_id, dict(self.topics), settled, files, sorted(self._voids), self.done, self._next)

    def tidy(self, now: float) -> None:
        """Forget ranges of long ago where there are too many: markers of transactions leave a hole each."""
        with self._changed:
            self._marks.append((now, {key: settled_set.last for key, settled_set in self._settled.items()}))
            old = [mark for at, mark in self._marks if at < now - OLD_S]
            if old:
                del self._marks[: len(old) - 1]
                for key, last in old[-1].items():
                    self._settled[key].forget_below(last, KEPT_RANGES)

    def name_of(self, number: int) -> str:
        """The file's."""
        return file_name(number, self.claim)

    def close(self) -> None:
        """Whoever waits is told."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _check_open(self) -> None:
        if self._closed:
            raise InterruptedError

    def _overlaps(self, part: Part) -> list[Range]:
        settled_set = self._settled.get(part.key)
        return [o for start, end in part.ranges for o in settled_set.overlap(start, end)] if settled_set else []

    def _is_pending(self, parts: Iterable[Part]) -> bool:
        return any(
            _have_overlap(part.ranges, other.ranges)
            for part in parts
            for pending in self._pending.values()
            for other in pending.parts
            if other.key == part.key
        )


def _by_key(parts: Iterable[Part]) -> Settled:
    by_key: Settled = {}
    for part in parts:
        if part.ranges:
            by_key.setdefault(part.key, []).extend(part.ranges)
    return by_key


def _have_overlap(ranges: Sequence[Range], others: Sequence[Range]) -> bool:
    if not ranges or not others or ranges[-1][1] <= others[0][0] or others[-1][1] <= ranges[0][0]:
        return False
    return any(a < d and c < b for a, b in ranges for c, d in others)


def _without(ranges: Iterable[Range], dropped: Iterable[Range]) -> list[Range]:
    """What is left of ranges; what is dropped lies within them."""
    left = list(ranges)
    for start, end in dropped:
        left = [piece for a, b in left for piece in ((a, min(b, start)), (max(a, end), b)) if piece[0] < piece[1]]
    return left
