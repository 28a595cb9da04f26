"""What the page of rewinds shows of each: what was chosen, how far it is, and what can be done with it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controlplane.publishing.models import Rewind, RewindPart
from frontend.templatetags.headgate import short_time

State = RewindPart.State
RANGES_NAMED = 3


@dataclass(frozen=True)
class RewindRow:
    """A rewind and its parts, which must be at hand."""

    rewind: Rewind
    parts: list[RewindPart]

    @classmethod
    def of(cls, rewind: Rewind) -> RewindRow:
        return cls(rewind, list(rewind.parts.all()))

    @property
    def choice(self) -> str:
        return choice_text(self.rewind.choice)

    @property
    def progress(self) -> str:
        """How many parts are in which state, such as "2 done, 1 waiting"."""
        counts = Counter(part.state for part in self.parts)
        return ", ".join(f"{counts[state]:,} {State(state).label}" for state in State if counts[state])

    @property
    def records(self) -> int:
        return sum(part.records for part in self.parts)

    @property
    def rows_before(self) -> int:
        """Of the parts that were read."""
        return sum(part.rows_before for part in self._read)

    @property
    def rows_after(self) -> int:
        return sum(part.rows_after for part in self._read)

    @property
    def can_undo(self) -> bool:
        return any(part.state == State.DONE for part in self.parts)

    @property
    def can_cancel(self) -> bool:
        return any(part.state == State.WAITING for part in self.parts)

    @property
    def _read(self) -> list[RewindPart]:
        return [part for part in self.parts if part.state in (State.DONE, State.READ, State.UNDONE)]


def choice_text(choice: dict[str, Any]) -> str:
    """What a rewind was asked for, in words."""
    texts: list[str] = []
    if "spec_version" in choice:
        texts.append(f"stored by version {choice['spec_version']}")
    if "of_rewind" in choice:
        texts.append(f"read by rewind {choice['of_rewind']}")
    if "published" in choice:
        texts.append(f"published from {_span(choice['published'])}")
    if "offsets" in choice:
        texts.append(f"at offsets {_ranges(choice['offsets'])}")
    if "times" in choice:
        texts.append(f"with rows from {_span(choice['times'])}")
    if choice.get("others") == "own":
        texts.append("others with their own version")
    return ", ".join(texts)


def _span(times: list[str]) -> str:
    start, end = (short_time(datetime.fromisoformat(time)) for time in times)
    return f"{start} to {end} UTC"


def _ranges(by_partition: dict[str, list[list[int]]]) -> str:
    texts = [f"{p}: {start:,}–{end:,}" for p, some in by_partition.items() for start, end in some]
    more = len(texts) - RANGES_NAMED
    return "; ".join(texts[:RANGES_NAMED]) + (f" and {more:,} more" if more > 0 else "")
