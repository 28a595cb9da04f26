"""Which record times are taken: the late and early message rejection of an ioConfig."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

import numpy as np
import numpy.typing as npt

from ingestion.specs.inputs.io_config import IOConfig

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class MessageWindow:
    """Half-open ``[earliest, latest)``, aware times in UTC; None is unbounded. An empty window takes no record."""

    earliest: datetime | None = None
    latest: datetime | None = None

    @classmethod
    def of(cls, io_config: IOConfig, begin: datetime, end: datetime) -> Self:
        """Late is what is earlier than its period before ``begin``, early what is later than its period after ``end``.

        Both are aware times. A period that leads out of the calendar leaves its side unbounded. The times of a bounded
        read apply, too.
        """
        start = io_config.lateMessageRejectionStartDateTime
        late, early = io_config.lateMessageRejectionPeriod, io_config.earlyMessageRejectionPeriod
        bounds = io_config.boundedStreamConfig
        first, last = (bounds.minimumMessageTime, bounds.maximumMessageTime) if bounds else (None, None)
        earliest = (start if late is None else _shift_time(begin, -late), first)
        latest = (
            None if early is None else _shift_time(end, early),
            None if last is None else _shift_time(last, _MILLISECOND),
        )
        return cls(
            earliest=max((time for time in earliest if time is not None), default=None),
            latest=min((time for time in latest if time is not None), default=None),
        )

    @property
    def earliest_ms(self) -> int | None:
        """First millisecond since 1970 that is inside."""
        return None if self.earliest is None else _ceil_ms(self.earliest)

    @property
    def latest_ms(self) -> int | None:
        """First millisecond since 1970 that is no longer inside."""
        return None if self.latest is None else _ceil_ms(self.latest)

    def holds(self, ms: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of these times, in milliseconds since 1970, are inside."""
        inside = np.ones(len(ms), np.bool_)
        if self.earliest_ms is not None:
            inside &= ms >= self.earliest_ms
        if self.latest_ms is not None:
            inside &= ms < self.latest_ms
        return inside


def _shift_time(time: datetime, by: timedelta) -> datetime | None:
    try:
        return time.astimezone(UTC) + by
    except OverflowError:
        return None


def _ceil_ms(time: datetime) -> int:
    return -((_EPOCH - time) // _MILLISECOND)


UNBOUNDED = MessageWindow()
