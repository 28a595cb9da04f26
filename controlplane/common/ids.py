"""Identifiers that people read: time-ordered and unguessable enough not to collide."""

from __future__ import annotations

import secrets
import string
from datetime import datetime

_ALPHABET = string.ascii_lowercase


def task_id(kind: str, datasource: str, now: datetime) -> str:
    """``<kind>_<datasource>_<UTC time>_<8 letters>``, as Druid's task ids are built."""
    suffix = "".join(secrets.choice(_ALPHABET) for _ in range(8))
    return f"{kind}_{datasource}_{now:%Y-%m-%dT%H-%M-%S}_{suffix}"
