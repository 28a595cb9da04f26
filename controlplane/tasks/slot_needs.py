"""A team's own limit of slots, and what to do about a task that asks for more than there is."""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.common.health import Code, Health, Kind


@dataclass(frozen=True)
class TeamSlots:
    """A team's own limit."""

    name: str
    size: int | None  # None for no limit
    used: int
    stopped: bool = False  # another quota of the team's is used up: none of its tasks may start

    @property
    def free(self) -> int | None:
        return None if self.size is None else max(0, self.size - self.used)

    def wait_health(self, needed: int) -> Health:
        """Why a task of the team has to wait."""
        if self.size is not None and needed > self.size:
            cause = f"It needs {slots_text(needed)}, but team {self.name} may use at most {self.size}."
            return _never_enough(cause, "Reduce taskCount, or ask a site administrator to raise the team's quota.")
        cause = f"It needs {slots_text(needed)}; team {self.name} uses {self.used} of {self.size}."
        return Health.of(Code.WAITING_FOR_SLOT, f"{cause} It starts when enough slots are free.")


def never_enough_slots(needed: int, size: int) -> Health:
    """Of a task that this installation can never start."""
    cause = f"It needs {slots_text(needed)}, but this installation has {size:,}."
    return _never_enough(cause, "Reduce taskCount, or raise HEADGATE_WORKER_CAPACITY.")


def _never_enough(cause: str, action: str) -> Health:
    return Health.of(Code.WAITING_FOR_SLOT, cause, action, kind=Kind.NEEDS_ATTENTION, label="never enough slots")


def slots_text(number: int) -> str:
    """``1 slot``, ``3 slots``."""
    return f"{number:,} slot{'' if number == 1 else 's'}"
