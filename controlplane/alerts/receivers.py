"""Writes of receivers, and their test. Team admins write them; their addresses of the web and secrets are sealed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from controlplane.alerts import sending
from controlplane.alerts.messages import Message
from controlplane.alerts.models import Receiver
from controlplane.alerts.posting import Outcome
from controlplane.alerts.validation import check_name, check_new, invalid_input, name_faults, record
from controlplane.common.errors import Conflict, FieldError, Unavailable
from controlplane.common.fair_queue import FairPlaces, NoPlace
from controlplane.common.text import storable
from controlplane.connections.secrets import seal, unseal
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require, team_for_new
from controlplane.teams.services import lock_team
from ingestion.specs.kafka.addresses import AddressRefused, AddressUnknown

MAX_RECEIVERS = 100  # of a team
MAX_ADDRESSES = 20
MIN_SECRET, LONGEST_SECRET, LONGEST_URL = 16, 200, 1000
places = FairPlaces(places=6, per_user=2, waiting=4)


def create_receiver(
    *,
    user: User,
    team_name: str | None = None,
    name: str,
    kind: str,
    addresses: Sequence[str] = (),
    url: str = "",
    secret: str = "",
) -> Receiver:
    """Where messages go. Its address of the web and its secret are sealed. Needs the role admin.

    Raises ``InvalidInput`` with every fault, ``NotAllowed``, ``Conflict`` (the name is taken).
    """
    team = team_for_new(user, team_name)
    receiver = Receiver(team=team, kind=kind, created_by=user)
    _write_receiver(receiver, name, addresses, url, secret)
    with transaction.atomic():
        lock_team(team)
        check_new(Receiver, receiver, MAX_RECEIVERS, "receiver of alerts")
        receiver.save()
        record(user, receiver, "create_receiver", kind=kind)
    return receiver


def change_receiver(
    *, user: User, receiver: Receiver, name: str, addresses: Sequence[str] = (), url: str = "", secret: str = ""
) -> Receiver:
    """Another name or address. An address of the web that is left out stays, and with it the secret that is left out.

    What failed before says nothing now: it is tried again at once. Raises as ``create_receiver`` does.
    """
    require(user, Action.ADMINISTER, receiver.team)
    with transaction.atomic():
        lock_team(receiver.team)
        locked = Receiver.objects.select_for_update(of=("self",)).select_related("team").get(pk=receiver.pk)
        before = _audit_fields(locked)
        _write_receiver(locked, name, addresses, url, secret)
        check_name(Receiver, locked, "receiver of alerts")
        locked.failures, locked.last_error, locked.failing_since, locked.next_try_at = 0, "", None, None
        locked.save()
        locked.deliveries.filter(state="waiting", next_at__gt=timezone.now()).update(next_at=timezone.now())
        record(user, locked, "change_receiver", before=before, after=_audit_fields(locked))
    return locked


def _audit_fields(receiver: Receiver) -> dict[str, Any]:
    """What the audit trail tells of a receiver: nothing that nobody is shown."""
    return {"name": receiver.name, "addresses": receiver.addresses, "address": receiver.shown}


@transaction.atomic
def delete_receiver(*, user: User, receiver: Receiver) -> None:
    """With what waits for it. Needs the role admin."""
    require(user, Action.ADMINISTER, receiver.team)
    record(user, receiver, "delete_receiver")
    receiver.delete()


def _write_receiver(receiver: Receiver, name: str, addresses: Sequence[str], url: str, secret: str) -> None:
    faults = name_faults(name)
    receiver.name = name
    if receiver.kind == Receiver.Kinds.EMAIL:
        faults += _mail_faults(addresses)
        receiver.addresses, receiver.shown, receiver.secrets = list(addresses), "", ""
    else:
        stored = unseal(receiver.secrets) if not url else {}
        url, secret = url or stored.get("url", ""), secret or stored.get("secret", "")
        needs_secret = receiver.kind == Receiver.Kinds.WEBHOOK
        faults += _web_faults(url) or _secret_faults(secret, needs_secret)
        receiver.addresses, receiver.shown = [], "" if faults else _shown_url(url)
        receiver.secrets = seal({"url": url, "secret": secret} if needs_secret else {"url": url})
    if faults:
        raise invalid_input("receiver", faults)


def _mail_faults(addresses: Sequence[str]) -> list[FieldError]:
    if not 1 <= len(addresses) <= MAX_ADDRESSES:
        return [FieldError("/addresses", f"must be 1 to {MAX_ADDRESSES} addresses", "addresses")]
    faults = []
    for n, address in enumerate(addresses):
        try:
            validate_email(address)
        except ValidationError:
            faults.append(FieldError(f"/addresses/{n}", "is not an e-mail address", f"addresses[{n}]"))
    return faults


def _web_faults(url: str) -> list[FieldError]:
    """A fault of the form, or what the address policy says; a name that is not known now may be known later."""
    fault = ""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        plain = url.isascii() and url.isprintable() and " " not in url and len(url) <= LONGEST_URL
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or not plain:
            fault = "must be an address such as https://example.com/hook, without a login"
        else:
            sending.check_address(parts.hostname, port)
    except (ValueError, AddressRefused) as error:
        fault = str(error)
    except AddressUnknown:
        pass
    return [FieldError("/url", fault, "url")] if fault else []


def _secret_faults(secret: str, needed: bool) -> list[FieldError]:
    if not needed and not secret:
        return []
    if not needed:
        return [FieldError("/secret", "must be empty: Slack checks no signature", "secret")]
    fits = MIN_SECRET <= len(secret) <= LONGEST_SECRET and storable(secret)
    message = f"must have {MIN_SECRET} to {LONGEST_SECRET} characters; enter it again with a new address"
    return [] if fits else [FieldError("/secret", message, "secret")]


def _shown_url(url: str) -> str:
    """Its host alone: path and query of a webhook's address often are its secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/…"[:300]


def test_receiver(*, user: User, receiver: Receiver) -> Outcome:
    """Send it a message that says that it is a test; what came of it. Needs the role admin.

    Raises ``NotAllowed``, ``Conflict`` (one was sent a moment ago), ``Unavailable`` (too many at once).
    """
    require(user, Action.ADMINISTER, receiver.team)
    now = timezone.now()
    mine = Receiver.objects.filter(Q(tested_at=None) | Q(tested_at__lt=now - timedelta(seconds=2)), pk=receiver.pk)
    if not mine.update(tested_at=now):
        raise Conflict("A test was just sent. Wait two seconds.")
    try:
        with places.place(user.pk, 5.0):
            return sending.send_message(receiver, _test_message(user, receiver, now))
    except NoPlace:
        raise Unavailable("Other tests are running. Try again in a few seconds.") from None


def _test_message(user: User, receiver: Receiver, now: datetime) -> Message:
    return Message(
        id=f"test-{receiver.pk}-{int(now.timestamp() * 1000)}",
        at=now,
        event="test",
        team=receiver.team.name,
        rule={"id": None, "name": receiver.name, "kind": "test"},
        about="",
        subject="",
        datasource="",
        episode=0,
        since=now,
        value=None,
        cause=f"{user.get_username()} sent this test message. Nothing is wrong.",
    )
