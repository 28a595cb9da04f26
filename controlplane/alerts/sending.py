"""Sends what waits: each receiver by itself, one message after the other.

A worker takes a receiver by its lease, and a message by the number of its attempt: whoever was thought dead and comes
back records nothing. One that dies between sending and recording leaves the message to be sent again, with its id.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from controlplane.alerts import posting
from controlplane.alerts.messages import SIGNATURE, Message, mail_text, message_of, signature, slack_body, webhook_body
from controlplane.alerts.models import Delivery, Receiver
from controlplane.alerts.posting import Outcome
from controlplane.common import mail as mail_server
from controlplane.common.changes import Change, notify_pages
from controlplane.common.database import try_advisory_lock
from controlplane.connections.secrets import SecretsLost, unseal

_LOCK = 0x53454E44
AT_ONCE = 16
LEASE = timedelta(seconds=60)  # longer than any try
ROUND_S = 20.0  # after that no further message is begun
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 900.0
GIVE_UP_AFTER = timedelta(hours=24)


@dataclass(frozen=True)
class ClaimedDelivery:
    """A message that this worker has taken."""

    receiver: Receiver
    delivery: Delivery
    attempt: int


def send_waiting() -> int:
    """How many messages were tried. One worker at a time: others have more to do than to wait for receivers."""
    with try_advisory_lock(_LOCK) as mine:
        return send_due() if mine else 0


def send_due() -> int:
    """How many messages were tried. Receivers are served side by side: a slow one holds nobody up."""
    deadline, tried = time.monotonic() + ROUND_S, 0
    with ThreadPoolExecutor(AT_ONCE, "alert") as pool:
        running: dict[Future[Outcome], ClaimedDelivery] = {}
        for receiver in _free_receivers():
            claimed = _claim(receiver)
            if claimed is not None:
                running[pool.submit(_deliver, claimed)] = claimed
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                claimed, tried = running.pop(future), tried + 1
                goes_on = _record_outcome(claimed, future.result()) and time.monotonic() < deadline
                following = _claim_next(claimed.receiver) if goes_on else None
                if following is not None:
                    running[pool.submit(_deliver, following)] = following
                else:
                    _release(claimed.receiver)
    return tried


def _free_receivers() -> list[Receiver]:
    """Those with something that is due, and that nobody serves now."""
    now = timezone.now()
    due = Delivery.objects.filter(receiver=OuterRef("pk"), state=Delivery.State.WAITING, next_at__lte=now)
    free = Receiver.objects.filter(_is_free(now), Exists(due), team__deleted_at=None).select_related("team")
    return list(free.order_by(F("next_try_at").asc(nulls_first=True), "pk")[: 4 * AT_ONCE])


def _is_free(now: datetime) -> Q:
    leased = Q(leased_until=None) | Q(leased_until__lte=now)
    return leased & (Q(next_try_at=None) | Q(next_try_at__lte=now))


def _claim(receiver: Receiver) -> ClaimedDelivery | None:
    """The receiver, and its first message; None when another worker has it, or nothing is due."""
    now = timezone.now()
    if not Receiver.objects.filter(_is_free(now), pk=receiver.pk).update(leased_until=now + LEASE):
        return None
    claimed = _claim_next(receiver)
    if claimed is None:
        _release(receiver)
    return claimed


def _claim_next(receiver: Receiver) -> ClaimedDelivery | None:
    """Its next message, taken by a conditional update; of one alert they go in order."""
    now = timezone.now()
    before = Delivery.objects.filter(
        receiver=receiver.pk,
        state=Delivery.State.WAITING,
        pk__lt=OuterRef("pk"),
        event__rule=OuterRef("event__rule"),
        event__about=OuterRef("event__about"),
        event__subject=OuterRef("event__subject"),
    )
    waiting = Delivery.objects.filter(receiver=receiver.pk, state=Delivery.State.WAITING, next_at__lte=now)
    waiting = waiting.exclude(Exists(before)).select_related("event__team")
    for delivery in waiting.order_by("next_at", "pk")[:1]:
        mine = Delivery.objects.filter(pk=delivery.pk, state=Delivery.State.WAITING, attempts=delivery.attempts)
        if mine.update(attempts=delivery.attempts + 1, next_at=now + LEASE):
            Receiver.objects.filter(pk=receiver.pk).update(leased_until=now + LEASE)
            return ClaimedDelivery(receiver, delivery, delivery.attempts + 1)
    return None


def _release(receiver: Receiver) -> None:
    Receiver.objects.filter(pk=receiver.pk).update(leased_until=None)


def _deliver(claimed: ClaimedDelivery) -> Outcome:
    """In a thread of its own: nothing here asks the database."""
    return send_message(claimed.receiver, message_of(claimed.delivery.event, str(claimed.delivery.uuid)))


def send_message(receiver: Receiver, message: Message) -> Outcome:
    """One try, ten seconds at most."""
    if receiver.kind == Receiver.Kinds.EMAIL:
        return mail(receiver.addresses, message)
    try:
        secrets = unseal(receiver.secrets)
    except SecretsLost as lost:
        return Outcome(False, lost.detail, permanent=True)
    slack = receiver.kind == Receiver.Kinds.SLACK
    body = slack_body(message) if slack else webhook_body(message)
    headers = {"X-Headgate-Delivery": message.id, "X-Headgate-Event": message.event}
    if secrets.get("secret"):
        headers[SIGNATURE] = signature(secrets["secret"], body, posting.unix_time())
    return posting.post(secrets["url"], body, headers)


def _record_outcome(claimed: ClaimedDelivery, outcome: Outcome) -> bool:
    """Write down what came of it, unless somebody else has taken it since. Whether the receiver may be told more."""
    now = timezone.now()
    mine = Delivery.objects.filter(pk=claimed.delivery.pk, state=Delivery.State.WAITING, attempts=claimed.attempt)
    receiver = Receiver.objects.filter(pk=claimed.receiver.pk)
    notify_pages(Change(team=claimed.receiver.team_id, urgent=True))
    if outcome.ok:
        receiver.update(failures=0, last_error="", failing_since=None, next_try_at=None, sent_at=now)
        return bool(mine.update(state=Delivery.State.SENT, ended_at=now, error=""))
    error = outcome.text[:500]
    if outcome.permanent:
        receiver.update(last_error=error)
        return bool(mine.update(state=Delivery.State.REFUSED, ended_at=now, error=error))
    if now - claimed.delivery.created_at >= GIVE_UP_AFTER:
        mine.update(state=Delivery.State.GIVEN_UP, ended_at=now, error=error)
    failures = (receiver.values_list("failures", flat=True).first() or 0) + 1
    receiver_pause, message_pause = (_pause(n, outcome) for n in (failures, claimed.attempt))
    since = claimed.receiver.failing_since or now
    receiver.update(failures=failures, last_error=error, failing_since=since, next_try_at=now + receiver_pause)
    mine.update(error=error, next_at=now + max(receiver_pause, message_pause))
    return False


def _pause(failures: int, outcome: Outcome) -> timedelta:
    """Twice as long each time, up to a quarter of an hour; longer if the receiver asks for it."""
    usual = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, 10))
    spread = usual * (0.8 + 0.2 * random.random())  # noqa: S311 - so that not all come back at once
    return timedelta(seconds=max(spread, outcome.retry_after_s or 0))


def check_address(host: str, port: int) -> None:
    """Raise ``AddressRefused`` where nothing may be sent; ``AddressUnknown`` while a name leads nowhere."""
    settings.ADDRESS_POLICY.resolve(host, port)


def mail(addresses: Sequence[str], message: Message) -> Outcome:
    """To all of them at once. Its Message-ID holds the id by which a repeat can be told."""
    headers = {"Message-ID": f"<{message.id}@headgate>", "X-Headgate-Delivery": message.id}
    try:
        mail_server.send(to=addresses, subject=message.title, body=mail_text(message), headers=headers)
    except mail_server.MailFailed as failed:
        return Outcome(False, failed.detail, permanent=failed.permanent)
    except ValidationError as error:
        return Outcome(False, "; ".join(error.messages), permanent=True)
    return Outcome(True, "The mail server accepted it.")
