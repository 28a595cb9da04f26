"""Times as statements have them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_of(at_us: int | None) -> datetime | None:
    """Microseconds since 1970 as a time."""
    return None if at_us is None else _EPOCH + timedelta(microseconds=at_us)
