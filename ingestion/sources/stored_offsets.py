"""Where a source goes on whose offsets are kept in the metadata store, and what to do when they are not in the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from ingestion.sources.base import OffsetsUnavailable, TopicChanged
from ingestion.sources.topic import LogBounds
from ingestion.specs.inputs.group_config import Isolation
from ingestion.specs.messages.protocol import ClaimAnswer, Claimed, Outcomes, Reset

SUSPECT_ATTEMPTS = 3  # processes that began at the same place, of each replica


class TopicMetadata(Protocol):
    """What the topic holds, now. All of it blocks, and raises ``SourceProblem`` when there is no answer."""

    def topic_id(self) -> str | None:
        """None when it does not exist."""

    def partitions(self) -> list[int]:
        """Empty when it does not exist."""

    def bounds(self, partitions: Iterable[int]) -> dict[int, LogBounds]:
        """By partition."""

    def first_since(self, partitions: Iterable[int], timestamp_ms: int, isolation: Isolation) -> dict[int, int]:
        """By partition, the offset of the first record of this time or later; left out: there is none."""


class Claim(Protocol):
    """Asks the control plane, until it answers: see ``ClaimRequest``. ``topic_id``: whose offsets these are."""

    @property
    def topic_id(self) -> str: ...

    def __call__(
        self,
        partitions: Iterable[int],
        *,
        new_generation: bool = False,
        new_process: bool = False,
        first_run: bool = False,
        starts: Mapping[int, int] | None = None,
        resets: Mapping[int, Reset] | None = None,
    ) -> ClaimAnswer: ...


@dataclass(frozen=True)
class StartPosition:
    """Where a partition goes on."""

    offset: int
    stored: int
    generation: int | None
    suspect: bool = False  # several processes have begun here, and none has published anything
    skipped: Outcomes | None = None  # what lies between there and the stored offset, if it was reset
    until: int | None = None  # where another claim says how to go on; None: it reads on


@dataclass(frozen=True)
class StoredOffsets:
    """Where to begin with each partition, and what to do where that is gone."""

    topic: str
    watch: TopicMetadata
    claim: Claim
    use_earliest: bool  # where to begin with a topic that was never read
    may_reset: bool  # tuningConfig's word
    with_generation: bool = False
    replicas: int = 1  # how many processes begin at each place when all is well
    isolation: Isolation = "read_committed"
    since_ms: int | None = None  # it begins at the first record of this time or later instead
    bounded: bool = False  # its ranges are read, and no more: the claim says what of them is left

    def starts(
        self, partitions: Iterable[int], new_process: bool = False, again: bool = False
    ) -> dict[int, StartPosition]:
        """Where these partitions go on. ``new_process``: this one begins. ``again``: under the generation they have.

        Left out is what a bounded read has read. Raises ``OffsetsUnavailable``, ``TopicChanged`` and ``SourceProblem``.
        """
        numbers = sorted(partitions)
        if not numbers:
            return {}
        claimed = self._claimed(numbers, new_process, self.with_generation and not again)
        bounds = self.watch.bounds(claimed)
        if any(not bounds[p].low <= start.stored <= bounds[p].log_end for p, start in claimed.items()):
            self._check_topic()
        return {p: self._start(p, start, bounds[p]) for p, start in claimed.items()}

    def moved(self, expected: Mapping[int, int]) -> dict[int, int | None]:
        """Where these go on now, of those for which that is not the offset in ``expected``."""
        answer = self.claim(sorted(expected)) if expected else None
        stored = {} if answer is None else {p: c.next_offset for p, c in answer.partitions.items()}
        return {p: offset for p, offset in stored.items() if offset != expected[p]}

    def _check_topic(self) -> None:
        """Offsets that are not there may be those of a topic that was made again, which has others."""
        topic_id = self.watch.topic_id()
        if topic_id != self.claim.topic_id:
            raise TopicChanged(f"the topic's id was {self.claim.topic_id} and is {topic_id}")

    def _claimed(self, partitions: list[int], new_process: bool, new_generation: bool) -> dict[int, StartPosition]:
        """Each partition as it is stored; what has no offset is given one."""
        first = answer = self.claim(partitions, new_generation=new_generation, new_process=new_process)
        while True:
            stored = {p: c for p, c in answer.partitions.items() if c.next_offset is not None}
            missing = [p for p in partitions if p not in stored]
            if not missing or self.bounded:
                return {p: self._stored(c, first.partitions[p]) for p, c in sorted(stored.items())}
            answer = self.claim(partitions, first_run=answer.first_run, starts=self._first(missing, answer.first_run))

    def _first(self, missing: list[int], first_run: bool) -> dict[int, int]:
        """A topic that was never read begins where the spec says, all of it at once; a later partition at its start."""
        if not first_run:
            return {p: b.low for p, b in self.watch.bounds(missing).items()}
        bounds = self.watch.bounds(self.watch.partitions())
        if self.since_ms is not None:
            since = self.watch.first_since(bounds, self.since_ms, self.isolation)
            return {p: max(b.low, since.get(p, b.end(self.isolation))) for p, b in bounds.items()}
        return {p: b.low if self.use_earliest else b.end(self.isolation) for p, b in bounds.items()}

    def _stored(self, claimed: Claimed, first: Claimed) -> StartPosition:
        # The generation of the first answer: a later one may be another member's.
        generation, offset = first.generation if self.with_generation else None, claimed.next_offset or 0
        suspect = first.attempts >= SUSPECT_ATTEMPTS * self.replicas
        return StartPosition(offset, offset, generation, suspect, until=claimed.until)

    def _start(self, partition: int, start: StartPosition, log: LogBounds) -> StartPosition:
        stored, end = start.stored, log.end(self.isolation)
        if log.low <= stored <= log.log_end:  # beyond what is committed if what is not was read before
            return start
        if stored < log.low and (self.may_reset or self.bounded):
            return self._behind_gap(start, log.low, end)
        if self.bounded or not self.may_reset:
            raise OffsetsUnavailable(self._missing(partition, stored, log))
        self.claim([partition], resets={partition: Reset(stored=stored, to=end)})
        return replace(start, offset=end, stored=end, until=None)

    def _behind_gap(self, start: StartPosition, low: int, end: int) -> StartPosition:
        """Behind what retention has removed; a bounded read reads all the rest."""
        if start.until is not None:
            low, end = min(low, start.until), min(end, start.until)
        gap = Outcomes(gap=[(start.stored, low)])
        if self.bounded or self.use_earliest or low >= end:
            return replace(start, offset=low, skipped=gap)
        return replace(start, offset=end, skipped=gap.model_copy(update={"skipped": [(low, end)]}))

    def _missing(self, partition: int, stored: int, log: LogBounds) -> str:
        reason = (
            f"offsets {stored} to {log.low - 1} were removed by retention before they were read"
            if stored < log.low
            else "the broker has lost records that were stored here before"
        )
        action = (
            "Submit it again with an end that exists."
            if self.bounded
            else "Set tuningConfig.resetOffsetAutomatically to continue with the records that exist."
        )
        what = "next" if self.bounded else "stored"
        return (
            f"Topic {self.topic!r} partition {partition}: the {what} offset is {stored}, but Kafka has {log.low} to "
            f"{log.log_end}: {reason}. {action}"
        )
