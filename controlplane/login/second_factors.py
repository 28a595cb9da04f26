"""A person's second factors: which there are, and taking them away."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allauth.mfa.models import Authenticator
from django.db import transaction
from django.db.models import F

from controlplane.common.errors import Conflict, NotFound
from controlplane.common.text import storable
from controlplane.connections.secrets import SecretsLost, reseal
from controlplane.login.models import Session
from controlplane.teams import audit
from controlplane.teams.models import ApiToken, User
from controlplane.teams.permissions import require_site_admin

LABELS = {"totp": "Authenticator app", "recovery_codes": "Recovery codes", "webauthn": "Passkey"}
_SEALED_KEYS = ("secret", "seed")


@dataclass(frozen=True)
class Factor:
    """One of a person's second factors."""

    id: int
    kind: str
    name: str
    created_at: datetime
    last_used_at: datetime | None
    left: int | None = None  # of recovery codes those that are not used


def list_factors(user: User) -> list[Factor]:
    """The user's own, the oldest first."""
    return [_to_factor(a) for a in Authenticator.objects.filter(user=user).order_by("created_at", "pk")]


def _to_factor(row: Authenticator) -> Factor:
    name = row.data.get("name", "") if row.type == Authenticator.Type.WEBAUTHN else LABELS[row.type]
    left = len(row.wrap().get_unused_codes()) if row.type == Authenticator.Type.RECOVERY_CODES else None
    return Factor(row.pk, row.type, name, row.created_at, row.last_used_at, left)


@transaction.atomic
def remove_factor(*, user: User, factor_id: int) -> Factor:
    """Take one of the user's own away, and with the last one the recovery codes. Raises ``NotFound``."""
    mine = Authenticator.objects.select_for_update().filter(user=user)
    row = mine.filter(pk=factor_id).exclude(type=Authenticator.Type.RECOVERY_CODES).first()
    if row is None:
        raise NotFound("You have no such second factor.")
    removed = _to_factor(row)
    row.delete()
    if not mine.exclude(type=Authenticator.Type.RECOVERY_CODES).exists():
        mine.delete()
    _record(user, "remove_second_factor", removed.kind)
    return removed


def record_added(user: User, kind: str) -> None:
    """Say in the audit trail that the user has one more; in the transaction that adds it."""
    _record(user, "add_second_factor", kind)


def _record(user: User, action: str, kind: str) -> None:
    audit.record(user=user, team=None, target="person", target_id=user.get_username(), action=action, kind=kind)


@transaction.atomic
def remove_all_factors(*, user: User, username: str) -> int:
    """Help somebody who has lost their second factor: all go, and with them sessions and tokens. Returns how many.

    Raises ``NotAllowed`` (only a site admin may), ``NotFound``, ``Conflict`` (oneself: that needs a fresh login).
    """
    require_site_admin(user)
    if username == user.username:
        raise Conflict("Remove your own second factors on the page Your account.")
    person = User.objects.select_for_update().filter(username=username).first() if storable(username) else None
    if person is None:
        raise NotFound(f"There is no user {username!r}.")
    removed: int = Authenticator.objects.filter(user=person).delete()[0]
    if removed:
        # What was lost may be in somebody's hands.
        User.objects.filter(pk=person.pk).update(logins_ended=F("logins_ended") + 1)
        Session.objects.filter(user=person).delete()
        ApiToken.objects.filter(user=person).delete()
        audit.record(user=user, team=None, target="person", target_id=username, action="remove_second_factors")
    return removed


def rotate_second_factors() -> tuple[int, int]:
    """Seal all secrets with the present key. Returns how many were sealed, and how many no key opens."""
    rotated = lost = 0
    for key in Authenticator.objects.exclude(type=Authenticator.Type.WEBAUTHN).values_list("pk", flat=True):
        with transaction.atomic():
            row = Authenticator.objects.select_for_update().filter(pk=key).first()
            if row is None:
                continue
            try:
                row.data |= _resealed(row.data)
            except SecretsLost:
                lost += 1
                continue
            row.save(update_fields=["data"])
            rotated += 1
    return rotated, lost


def _resealed(data: dict[str, Any]) -> dict[str, str]:
    return {name: reseal(data[name]) for name in _SEALED_KEYS if name in data}
