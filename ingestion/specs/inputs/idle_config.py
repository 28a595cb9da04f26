"""When a reader has nothing more to do."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from ingestion.specs.base import CENTURY, SpecModel

_NOTHING_YET, _NOTHING_MORE = timedelta(seconds=20), timedelta(seconds=5)
_INACTIVE = timedelta(minutes=10)


class IdleConfig(SpecModel):
    """When nothing new arrives and everything is settled, a manual task ends and a supervisor becomes idle."""

    enabled: bool | None = None  # None: a manual task ends, a supervisor does not become idle
    # None: a supervisor waits for ten minutes; a task longer for the first record than for those after it.
    inactiveAfterMillis: int | None = Field(default=None, ge=1_000)

    def idle_timeout(self, has_read: bool) -> timedelta:
        """How long nothing must have come for a task. ``has_read``: whether anything has before."""
        return self._given or (_NOTHING_MORE if has_read else _NOTHING_YET)

    @property
    def inactive_after(self) -> timedelta:
        """How long nothing must have come for a supervisor."""
        return self._given or _INACTIVE

    @property
    def _given(self) -> timedelta | None:
        millis = self.inactiveAfterMillis
        return None if millis is None else timedelta(milliseconds=min(millis, CENTURY // timedelta(milliseconds=1)))
