# ruff: noqa: B027 - a source says only what is its own: the rest of its methods do nothing
"""The protocol of a source in its two kinds, and the batch it hands out."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ingestion.errors import IngestionError
from ingestion.specs.messages.protocol import Advance, Leases, Outcomes

Ints = npt.NDArray[np.int64]
NO_LEASES = Leases()
ACCEPT, RELEASE, REJECT = 1, 2, 3  # KIP-932's acknowledgement types


class SourceProblem(IngestionError):
    """The source can't go on by itself; the message says why."""


class ReadRefused(SourceProblem):
    """Kafka says that this login may not read; the message says what is missing."""


class TopicChanged(IngestionError):
    """The topic's id is another one now: what is held must not be published under the old id."""


class OffsetsUnavailable(SourceProblem):
    """The stored offsets are not there any more (or not yet), and the spec does not say to go on elsewhere."""

    permanent = True


@dataclass(frozen=True)
class Batch:
    """Records, columnar: index ``i`` of every column is the same record.

    Columns other than payloads may be read lazily, and cost nothing unless they are looked at.
    """

    partitions: Ints
    offsets: Ints
    delivery_counts: Ints
    payloads: Sequence[bytes | None]
    keys: Sequence[bytes | None]
    timestamps_ms: Sequence[int | None]
    deadline: float  # when the records are no longer ours, in ``time.monotonic`` seconds
    # Name and value of each of a record's headers, in their order; empty when the source has none at all.
    headers: Sequence[Sequence[tuple[str, bytes | None]]] = ()
    held: Any = None  # the source's own
    # Offsets that end without a record (empty, gap, skipped), by partition.
    extra: dict[int, Outcomes] = field(default_factory=dict)
    last_chance: bool = False  # released, some of the records would not be delivered again
    # Of a source with stored offsets, the part of each partition that the batch covers whole.
    progress: dict[int, Advance] = field(default_factory=dict)
    suspect: bool = False  # these may be the records that earlier processes died of

    def __len__(self) -> int:
        return len(self.payloads)

    def offset_spans(self) -> list[tuple[int, int, int]]:
        """Of each partition in it, by number: partition, its first offset, its last offset + 1."""
        spans = []
        for partition in sorted(set(self.partitions.tolist())):
            partition_offsets = self.offsets[self.partitions == partition]
            spans.append((partition, int(partition_offsets.min()), int(partition_offsets.max()) + 1))
        return spans

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()


class LazyColumn(Sequence[Any]):
    """A column that is read only where it is needed."""

    def __init__(self, messages: list[Any], read: Callable[[Any], Any]) -> None:
        self._messages = messages
        self._read = read

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, index: Any) -> Any:
        return self._read(self._messages[index])


class Source(ABC):
    """What the loop needs of every place that records come from; see the package for the story, and for the two kinds.

    One thread, the loop's, calls it, in this order: ``open``, then ``poll`` and what the kind allows after it, then
    ``close``. A method returns at once unless it says that it blocks.
    """

    @abstractmethod
    def open(self) -> None:
        """Join; records may come some seconds later. Called once, before anything else.

        A source with stored offsets may block here until the control plane and Kafka have said where it goes on, and
        raise what ``rewind`` does.
        """

    @abstractmethod
    def poll(self, timeout_s: float) -> Batch | None:
        """The next batch, or None when there is none within ``timeout_s``. None says nothing about a later call.

        Blocks for about that long, and longer while partitions are taken up (see ``rewind``). Never called while an
        earlier batch of a leased source has neither been acknowledged nor lapsed, nor after ``drain``. Raises
        ``SourceProblem`` when it can't go on, and what ``rewind`` does.
        """

    def exhausted(self) -> bool:
        """Whether there will never be another batch. Asked only after a ``poll`` that returned None."""
        return False

    def pause(self) -> None:
        """Ask for no more records until ``resume``; what has been handed over by then may still come out of ``poll``.

        Of use where records are asked for beside the loop. Called twice, it changes nothing; nor after ``drain``.
        """

    def resume(self) -> None:
        """Ask for records again; without a ``pause`` before, it changes nothing."""

    @abstractmethod
    def close(self) -> None:
        """Leave; what is still held is left to the source's own rules. Nothing but ``close`` is called afterwards.

        Blocks until it has left, for some seconds at most. Called also when ``open`` has failed, and safe to call
        twice. Raises ``SourceProblem`` when it has not left in time: then it goes with the process.
        """

    @property
    def problem(self) -> str:
        """What the source last complained of; empty when all is well, or has been for a while."""
        return ""

    @property
    def refused(self) -> bool:
        """Whether Kafka refuses to let it read, or read a part, as ``problem`` says."""
        return False


class LeasedSource(Source):
    """Records are held for so long only (``Batch.deadline``), and others wait for them: each batch ends by itself."""

    @abstractmethod
    def acknowledge(self, batch: Batch, verdicts: Ints) -> None:
        """Say of each record of the batch, by its index, ACCEPT, RELEASE or REJECT.

        Called once for a batch, and never for one that has lapsed; for those of ``drain`` too. The source's other side
        hears of it later: what it refuses then is counted in ``ack_failures``, not raised.
        """

    @abstractmethod
    def lapse(self, batch: Batch) -> None:
        """Give the batch up without an outcome: its records come again, to whoever asks, one delivery later.

        Blocks until they may, which is until after the batch's deadline. Called once for a batch, in place of
        ``acknowledge``.
        """

    @abstractmethod
    def drain(self) -> list[Batch]:
        """Stop for good, and hand out what is held, to be acknowledged like any other batch.

        Blocks until nobody is asked for records any more, for half a minute at most. Called once; ``poll`` never after.
        """

    @property
    def ack_failures(self) -> int:
        """How many partitions' acknowledgements were refused so far."""
        return 0

    @property
    def leases(self) -> Leases:
        """What became of what was lent so far; of a share group alone."""
        return NO_LEASES


class StoredOffsetSource(Source):
    """Where each partition goes on is stored with what is published; nobody waits for what is read, so it may gather.

    An offset here is always the next one: the first that is not published, or not read.
    """

    whole = False  # whether nobody sees a publish before its last one: then only size makes one due, and no time

    @abstractmethod
    def rewind(self, partitions: Iterable[int]) -> None:
        """What was read of these since the last publish is given up: go on at their stored offsets.

        Those that it does not read (any more) are passed over. Blocks until the control plane has answered. Raises
        ``OffsetsUnavailable`` when they are not in the log, ``TopicChanged`` when it is another topic's,
        ``SourceProblem`` when Kafka does not answer. Never called once the indexer was told to end.
        """

    @abstractmethod
    def published(self, ends: Mapping[int, int]) -> None:
        """Partition → its stored offset from now on. Called after each publish of this indexer, before ``poll``."""

    def notice_replicas(self) -> None:
        """Ask now whether another replica has published; ``lost`` says of what. Blocks until there is an answer."""

    @abstractmethod
    def lost(self) -> Mapping[int, int | None]:
        """Partitions of which what is in progress is void, since this was last asked; each is said once.

        Each went to another member (None), or is stored up to this offset by another replica. The source has gone on
        behind it already: ``rewind`` is not called for these.
        """

    @property
    @abstractmethod
    def waiting(self) -> int | None:
        """How many records wait behind those that were taken, as far as was known at the last ``poll``; None while
        the end of some partition is not known."""
