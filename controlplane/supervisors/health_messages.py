"""How a supervisor's health writes numbers and times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.tasks.slot_waits import SlotWait

_LONGEST = 300
FIRST_TASK_TEXT = "Its first task starts within seconds. The processes `worker` and `beat` must be running."


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


def no_runs_text(since: datetime, tasks: int) -> str:
    """Of one that has no rounds any more; ``tasks``: how many of it have not ended."""
    effect = "Its task continues to read" if tasks else "No task starts"
    check = "Check that the processes `worker` and `beat` are running."
    return f"Its last run was at {utc(since)}. {check} {effect} meanwhile."


def shortened(text: str) -> str:
    """The beginning of an error, without the stop at its end."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def too_few_slots_text(room: SlotWait) -> str:
    """What to do about a task that no pool of this size can hold."""
    return (
        f"It needs {count(room.needed, 'slot')}, but this installation has {room.size or 0:,}. "
        "Reduce taskCount, or raise HEADGATE_WORKER_CAPACITY."
    )
