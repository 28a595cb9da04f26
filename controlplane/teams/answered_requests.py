"""Requests that may arrive twice: what was answered to a key, kept for a day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.utils import timezone

from controlplane.common.errors import Conflict
from controlplane.teams.models import AnsweredRequest, User

KEPT_FOR = timedelta(days=1)
BATCH_SIZE = 1000


def take_key(user: User, key: str, digest: str) -> tuple[AnsweredRequest, bool]:
    """The request of this key, and whether it is new. Called in the transaction that does what is asked for.

    A second request of the same key waits here until the first one has ended. Raises ``Conflict`` when the key was
    used for another request.
    """
    now = timezone.now()
    AnsweredRequest.objects.filter(user=user, key=key, created_at__lte=now - KEPT_FOR).delete()
    row, is_new = AnsweredRequest.objects.get_or_create(
        user=user, key=key, defaults={"digest": digest, "created_at": now}
    )
    if row.digest != digest:
        raise Conflict(f"You used the Idempotency-Key {key!r} for another request. Use another key.")
    return row, is_new


def keep_answer(row: AnsweredRequest, status: int, body: Any, headers: Mapping[str, str]) -> None:
    """For requests of the same key that follow."""
    row.status, row.body, row.headers = status, body, dict(headers)
    row.save(update_fields=["status", "body", "headers"])


def delete_old() -> int:
    """Delete answers whose day is over. Returns how many."""
    deleted = 0
    old = AnsweredRequest.objects.filter(created_at__lte=timezone.now() - KEPT_FOR)
    while keys := list(old.values_list("pk", flat=True)[:BATCH_SIZE]):
        deleted += AnsweredRequest.objects.filter(pk__in=keys).delete()[0]
    return deleted
