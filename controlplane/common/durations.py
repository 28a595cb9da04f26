"""ISO 8601 durations as settings and commands take them."""

from __future__ import annotations

import re
from datetime import timedelta

from django.utils.dateparse import parse_duration


def duration_of(text: str) -> timedelta | None:
    """``PT24H`` or ``P7D``, not negative; None for anything else. Months and years have no fixed length."""
    if not re.fullmatch(r"P.*\d+[DHMS]", text):
        return None
    try:
        duration = parse_duration(text)
    except OverflowError:
        return None
    return duration if duration is not None and duration >= timedelta(0) else None
