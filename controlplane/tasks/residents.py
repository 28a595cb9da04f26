"""The life of an application that serves all datasources: launched when there is work and room, watched, ended.

Ingestion comes first: it is launched when nobody waits for a place of the pool, and told to finish once somebody does.
"""

from __future__ import annotations

import os
import secrets
import string
from datetime import datetime, timedelta
from math import floor

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.common.database import cursor
from controlplane.common.text import storable
from controlplane.spark import spark_conf
from controlplane.tasks import capacity, heartbeat_gaps, hosts, launcher
from controlplane.tasks.lifecycle import ERROR_LENGTH, token_hash
from controlplane.tasks.models import CompactionShare, Resident
from controlplane.tasks.unlisted_applications import REASON, unlisted

APPLICATION = "compact.py"
_ROUNDING = 1e-9  # 0.29 of 100 places are 29
EXIT_GRACE = timedelta(seconds=3)  # a process that ended has said so by then


def running() -> Resident | None:
    """The one that has not ended."""
    return Resident.objects.filter(ended_at=None).first()


def compaction_share() -> CompactionShare:
    """What it may take of the pool: as it was set, else as the site's settings say."""
    stored = CompactionShare.objects.first()
    return stored or CompactionShare(ratio=settings.COMPACTION_PERCENT / 100)


def slots() -> int:
    """How many jobs it may run side by side: its share of the pool, or of this machine's cores.

    One at least, unless the share is nothing: then none.
    """
    setting = compaction_share()
    places = settings.WORKER_CAPACITY or os.cpu_count() or 1
    by_ratio = max(1, floor(places * setting.ratio + _ROUNDING)) if setting.ratio > 0 else 0
    return by_ratio if setting.most is None else min(by_ratio, setting.most)


def has_old_share(resident: Resident) -> bool:
    """Whether another share was set since it was launched: it ends, and the next one has the new one."""
    return CompactionShare.objects.filter(updated_at__gt=resident.launched_at).exists()


def launch(name: str) -> Resident | None:
    """Start one, if none runs and there is room for it."""
    spark_conf.prepare_shipping()
    token = secrets.token_urlsafe(32)
    resident = _claim(name, token)
    if resident is None:
        return None
    try:
        launcher.start_resident(resident, APPLICATION, token)
    except OSError as error:
        end(resident.pk, f"The application could not be started: {error}")
        return None
    return resident


@transaction.atomic
def _claim(name: str, token: str) -> Resident | None:
    slot_count = slots()
    if not slot_count or running() is not None or not capacity.has_room_for(slot_count):
        return None
    suffix = "".join(secrets.choice(string.ascii_lowercase) for _ in range(8))
    now = timezone.now()
    return Resident.objects.create(
        pk=f"{name}_{now:%Y-%m-%dT%H-%M-%S}_{suffix}",
        token_hash=token_hash(token),
        slots=slot_count,
        launched_at=now,
        host=settings.HOST_NAME,
    )


def token_and_end(resident: str) -> tuple[str, bool]:
    """The hash of its token, empty for one that is unknown; and whether it has ended."""
    if not storable(resident):
        return "", True
    with cursor() as c:
        return c.execute(
            "SELECT token_hash, ended_at IS NOT NULL FROM tasks_resident WHERE id = %s", (resident,)
        ).fetchone() or ("", True)


def must_give_way() -> bool:
    """Whether ingestion waits for the places that it has."""
    return settings.WORKER_CAPACITY > 0 and bool(capacity.pool().waiting)


def end(resident: str, error: str = "") -> bool:
    """False when it had ended."""
    open_ones = Resident.objects.filter(pk=resident, ended_at=None)
    return bool(open_ones.update(ended_at=timezone.now(), error=error[:ERROR_LENGTH]))


def end_lost() -> None:
    """End the one that is dead or silent; what it left on this machine goes."""
    resident = running()
    if resident is None:
        return
    launcher.limit_log(resident.pk)
    error = _loss_reason(resident, timezone.now())
    if error:
        launcher.kill(resident.pk)
        end(resident.pk, error)


def patience_with(resident: Resident) -> timedelta:
    """How long it may be silent. One that has not begun, and whose host is gone, may never begin."""
    is_short = resident.last_heartbeat_at is not None or resident.host in hosts.gone()
    patience: timedelta = settings.TASK_HEARTBEAT_TIMEOUT if is_short else settings.TASK_START_TIMEOUT
    return patience


def _loss_reason(resident: Resident, now: datetime) -> str:
    last_heard = resident.last_heartbeat_at or resident.launched_at
    if now - last_heard > EXIT_GRACE and launcher.is_dead(resident.pk):
        return (
            "" if launcher.was_stopped(resident.pk) and end(resident.pk) else "Its process is gone. Its log says why."
        )
    since = heartbeat_gaps.heartbeats_accepted_since()
    if since is not None and now - max(last_heard, since) > patience_with(resident):
        return f"It was lost: no heartbeat for {(now - last_heard).total_seconds():.0f} s."
    return REASON if resident.last_heartbeat_at and unlisted([resident.pk], "residents") else ""
