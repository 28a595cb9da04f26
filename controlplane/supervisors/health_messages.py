"""How a supervisor's health writes numbers and times, and what it says in several places."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.common.health import Code, Health

_LONGEST = 300
CHECK_PROCESSES = "Check that the processes `worker` and `beat` are running."
FIX_CAUSE = "Fix the cause that the error names."
FIRST_TASK = Health.of(
    Code.STARTING,
    "Its first task starts within seconds.",
    "If it does not start, check that the processes `worker` and `beat` are running.",
)


@dataclass(frozen=True)
class Idleness:
    """Of an idle supervisor: since when nothing has come, and how often Kafka is asked."""

    since: datetime | None
    period: timedelta

    @property
    def text(self) -> str:
        return (
            f"All is settled and no records arrived since {utc(self.since)}, so no task runs. Headgate asks Kafka "
            f"every {duration_text(self.period)}; the first new record starts a task."
        )


def count(number: int, noun: str) -> str:
    """``1 row``, ``1,204 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def indexer_count(number: int) -> str:
    """``1 indexer``, ``3 indexers``."""
    return count(number, "indexer")


def attempts_text(times: int) -> str:
    """``once``, ``3 times in a row``."""
    return "once" if times == 1 else f"{times:,} times in a row"


def utc(time: datetime | None) -> str:
    """A time in UTC, down to seconds."""
    return "" if time is None else f"{time:%Y-%m-%d %H:%M:%S} UTC"


def duration_text(time: timedelta) -> str:
    """Whole seconds in the two largest units."""
    seconds = max(0, round(time.total_seconds()))
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        amount, seconds = divmod(seconds, size)
        if amount or (unit == "s" and not parts):
            parts.append(f"{amount:,} {unit}")
    return " ".join(parts[:2])


def spec_change_note(versions: tuple[int, int] | None) -> str:
    """Which of two versions of a spec is read by, and until when; empty when there is but one."""
    if versions is None:
        return ""
    return f" Its task uses version {versions[0]} of the spec until a task with version {versions[1]} runs."


def shortened(text: str) -> str:
    """The beginning of an error, without the stop at its end."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
