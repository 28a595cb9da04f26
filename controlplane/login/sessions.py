"""The store of sessions (``SESSION_ENGINE``): Django's in the database, with a list for each user."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from controlplane.common.client_address import current_address, current_browser
from controlplane.common.errors import NotFound
from controlplane.login.models import Session
from controlplane.teams.models import User
from controlplane.teams.permissions import require_person

SEEN_EVERY = timedelta(minutes=1)
BATCH_SIZE = 5_000  # rows of one deletion


class SessionStore(DatabaseStore):
    """Says of each session whose it is, from where, and when it was last used."""

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def _get_session_from_db(self) -> Any:
        row = super()._get_session_from_db()  # type: ignore[misc]  # the stubs lack it
        now = timezone.now()
        if row is not None and row.seen_at < now - SEEN_EVERY:
            Session.objects.filter(pk=row.pk).update(seen_at=now, address=current_address() or None)
        return row

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        row: Any = super().create_model_instance(data)
        row.user_id = data.get(SESSION_KEY)
        row.seen_at = timezone.now()
        row.address = current_address() or None
        row.browser = current_browser()
        row.created_at = timezone.now()
        if self.session_key:
            created_at = Session.objects.filter(pk=self.session_key).values_list("created_at", flat=True).first()
            row.created_at = created_at or row.created_at
        return row


@dataclass(frozen=True)
class OpenSession:
    """One of a user's logins. ``id`` names it without opening it."""

    id: str
    address: str | None
    browser: str
    created_at: datetime
    seen_at: datetime
    is_current: bool


def list_sessions(user: User, current_key: str | None = None) -> list[OpenSession]:
    """The user's sessions that still count, the last used first."""
    auth_hash = user.get_session_auth_hash()
    rows = Session.objects.filter(user=user, expire_date__gt=timezone.now()).order_by("-seen_at", "pk")
    alive = [row for row in rows if constant_time_compare(row.get_decoded().get(HASH_SESSION_KEY, ""), auth_hash)]
    return [
        OpenSession(_public_id(row.pk), row.address, row.browser, row.created_at, row.seen_at, row.pk == current_key)
        for row in alive
    ]


def end_session(*, user: User, session_id: str) -> None:
    """End one of the user's own sessions. Raises ``NotFound``, ``NotAllowed``."""
    require_person(user, "end sessions")
    keys = Session.objects.filter(user=user).values_list("pk", flat=True)
    key = next((key for key in keys if constant_time_compare(_public_id(key), session_id)), None)
    if key is None:
        raise NotFound(f"You have no session {session_id!r}.")
    Session.objects.filter(pk=key).delete()


def end_other_sessions(*, user: User, current_key: str | None) -> int:
    """End all of the user's sessions but one (with None: all). Returns how many. Raises ``NotAllowed``."""
    require_person(user, "end sessions")
    others = Session.objects.filter(user=user).exclude(pk=current_key or "")
    return others.delete()[0]


def delete_expired() -> int:
    """Delete sessions whose time is over, those of nobody too: they open nothing. Returns how many."""
    dropped = 0
    while keys := list(
        Session.objects.filter(expire_date__lte=timezone.now()).values_list("pk", flat=True)[:BATCH_SIZE]
    ):
        dropped += Session.objects.filter(pk__in=keys, expire_date__lte=timezone.now()).delete()[0]
    return dropped


def _public_id(key: str) -> str:
    """The key itself opens the session: it is shown to nobody."""
    return salted_hmac("controlplane.login.session", key, algorithm="sha256").hexdigest()[:16]
