"""How many applications wait for tasks on each host, for people. Each host says it; it is not in the metadata store.

What Valkey loses, or a host has not said for a while, is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
import redis
from django.conf import settings
from django.core.cache import cache

from controlplane.common.applications import process_in
from controlplane.tasks import spares
from controlplane.tasks.models import Host

PERIOD_S = 10.0
_KEPT_S = 60


@dataclass(frozen=True)
class WaitingApplication:
    """One that can take a task."""

    host: str
    since: datetime  # it was started then
    memory_bytes: int | None  # of its processes, shared memory counted once; None if they do not say it


def store(folders: Sequence[Path]) -> None:
    """Of this host, those that wait now. Raises ``redis.RedisError``."""
    rows = [(spares.record_of(folder)[1], _memory(folder)) for folder in folders]
    cache.set(_key(settings.HOST_NAME), rows, _KEPT_S)


def waiting_applications() -> list[WaitingApplication]:
    """Of all hosts, by host, the oldest first; none where Valkey does not answer."""
    names = {_key(name): name for name in Host.objects.order_by("name").values_list("name", flat=True)}
    try:
        found = cache.get_many(names) if names else {}
    except redis.RedisError:
        return []
    return [
        WaitingApplication(name, datetime.fromtimestamp(since, UTC), memory)
        for key, name in names.items()
        for since, memory in sorted(found.get(key, []))
    ]


def _key(host: str) -> str:
    return f"tasks.spares.{host.encode().hex()}"


def _memory(folder: Path) -> int | None:
    identity = process_in(folder)
    first = identity.find() if identity is not None else None
    with suppress(psutil.Error, AttributeError):  # it ends just now; or this system does not tell shared memory
        if first is not None:
            return sum(p.memory_full_info().pss for p in (first, *first.children(recursive=True)))
    return None
