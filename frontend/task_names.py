"""Short names of tasks: their ids are made of kind, supervisor, start and a suffix; the last two tell them apart."""

from __future__ import annotations

import re

_ID = re.compile(r".*_(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)(?:[.\d]*Z?)_([a-z0-9]+)\Z", re.DOTALL)
LONGEST = 28


def short_name(task_id: str) -> str:
    """``06-01 12:00 · abcdefgh``; for an id that is made otherwise its beginning and its end."""
    parts = _ID.fullmatch(task_id)
    if parts:
        day, hour, minute, _, suffix = parts.groups()
        return f"{day[5:]} {hour}:{minute} · {suffix}"
    return task_id if len(task_id) <= LONGEST else f"{task_id[:13]}…{task_id[-13:]}"
