# ruff: noqa: B027 - a source says only what is its own: the rest of its methods do nothing
"""The source protocol and the batch it hands out."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ingestion.errors import IngestionError
from ingestion.specs.protocol import Advance, Leases, Outcomes

Ints = npt.NDArray[np.int64]
NO_LEASES = Leases()
ACCEPT, RELEASE, REJECT = 1, 2, 3  # KIP-932's acknowledgement types


class SourceProblem(IngestionError):
    """The source can't go on by itself; the message says why."""


class TopicChanged(IngestionError):
    """The topic's id is another one now: what is held must not be published under the old id."""


class OffsetsUnavailable(SourceProblem):
    """The stored offsets are not there any more (or not yet), and the spec does not say to go on elsewhere."""

    permanent = True


@dataclass(frozen=True)
class Batch:
    """Records, columnar: index ``i`` of every column is the same record.

    Columns other than payloads may be read lazily, and cost nothing unless they are looked at. ``headers``: name and
    value of each of a record's headers, in their order; empty when the source has none at all.
    ``held`` is the source's own; ``deadline`` (``time.monotonic`` seconds) is when the records are no longer ours;
    ``extra`` are offsets that end without a record (empty, gap, skipped), by partition. ``last_chance``: released, some
    of the records would not be delivered again. ``progress``: of a source with stored offsets, the part of each
    partition that the batch covers whole. ``suspect``: these may be the records that earlier processes died of.
    """

    partitions: Ints
    offsets: Ints
    delivery_counts: Ints
    payloads: Sequence[bytes | None]
    keys: Sequence[bytes | None]
    timestamps_ms: Sequence[int | None]
    deadline: float
    headers: Sequence[Sequence[tuple[str, bytes | None]]] = ()
    held: Any = None
    extra: dict[int, Outcomes] = field(default_factory=dict)
    last_chance: bool = False
    progress: dict[int, Advance] = field(default_factory=dict)
    suspect: bool = False

    def __len__(self) -> int:
        return len(self.payloads)

    def hulls(self) -> list[tuple[int, int, int]]:
        """Of each partition in it, by number: partition, its first offset, its last offset + 1."""
        found = []
        for partition in sorted(set(self.partitions.tolist())):
            here = self.offsets[self.partitions == partition]
            found.append((partition, int(here.min()), int(here.max()) + 1))
        return found

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
    """A place records come from. One thread, the loop's, calls it. What a source has no use for does nothing.

    ``gathers``: batches may wait for others before they are published, since nobody else waits for their records.
    """

    gathers = False

    @abstractmethod
    def open(self) -> None:
        """Join; returns at once. Records may come some seconds later."""

    @abstractmethod
    def take(self, timeout_s: float) -> Batch | None:
        """The next batch, or None after ``timeout_s``. Raises ``SourceProblem`` when it can't go on."""

    def acknowledge(self, batch: Batch, verdicts: Ints) -> None:
        """Say of each record of the batch ACCEPT, RELEASE or REJECT. What the source refuses is counted, not raised."""

    @abstractmethod
    def lapse(self, batch: Batch) -> None:
        """Give the batch up without an outcome: its records come again, to whoever asks. Blocks until they may."""

    def rewind(self, partitions: Iterable[int]) -> None:
        """Of a source that gathers: go back to what is stored of these, since what was read of them is given up."""

    def published(self, ends: dict[int, int]) -> None:
        """Of a source that gathers: each partition is published up to this offset, which is stored now."""

    @property
    def waiting(self) -> int | None:
        """Of a source that gathers: how many records waited in the topic at the last ``take``, by what is known of its
        end; None while that is not known of every partition.
        """
        return None

    def look(self) -> None:
        """Of a source that gathers: ask now whether another replica has published; ``lost`` says of what."""

    def lost(self) -> Mapping[int, int | None]:
        """Partitions of which what is in progress is void, since this was last asked.

        Each went to another member (None), or is stored up to this offset by another replica and goes on there.
        """
        return {}

    def exhausted(self) -> bool:
        """Whether there will never be another batch."""
        return False

    def pause(self) -> None:
        """Poll no more until ``resume``."""

    def resume(self) -> None:
        """Poll again."""

    def drain(self) -> list[Batch]:
        """Stop polling and hand out what is held, so that it can be published or released."""
        return []

    @abstractmethod
    def close(self) -> None:
        """Leave; what is still held is left to the source's own rules. Safe to call twice.

        Raises ``SourceProblem`` when it has not left after a while: then it goes with the process.
        """

    @property
    def ack_failures(self) -> int:
        """How many partitions' acknowledgements were refused so far."""
        return 0

    @property
    def leases(self) -> Leases:
        """Of a share group: what became of what was lent so far."""
        return NO_LEASES

    @property
    def problem(self) -> str:
        """What the source last complained of; empty when all is well."""
        return ""
