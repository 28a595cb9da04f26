"""Messages to real servers: their forms, what is made of an answer, and where they may go."""

from __future__ import annotations

import hashlib
import hmac
import socket
import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.alerts import receivers
from controlplane.alerts.models import Delivery, Receiver
from controlplane.alerts.posting import post
from controlplane.alerts.sending import send_due
from controlplane.common.errors import Conflict, InvalidInput
from controlplane.teams.models import AuditEntry
from ingestion.specs.kafka.addresses import AddressPolicy
from tests.support.alert_rounds import SECRET, hook, ill, look_and_send, now_due, receiver_of, rule_of, well
from tests.support.django_cast import Cast, browsing_as, speaking_as
from tests.support.hooks import Hook, hook_server
from tests.support.mailbox import mail_server

__all__ = ["hook"]  # a fixture


def test_a_webhook_is_signed_and_its_secret_is_nowhere(cast: Cast, hook: Hook) -> None:
    """Row 31 of the security checklist."""
    rule_of(cast, "unhealthy", receiver_of(cast, hook))
    ill()
    look_and_send()
    [got] = hook.got
    parts = dict(part.split("=", 1) for part in got.headers["x-headgate-signature"].split(","))
    signed = hmac.new(SECRET.encode(), f"{parts['t']}.".encode() + got.body, hashlib.sha256).hexdigest()
    assert parts["v1"] == signed
    assert got.headers["x-headgate-delivery"] == got.told["id"] == str(Delivery.objects.get().uuid)
    shown = speaking_as(cast, "owner").get("/api/v1/alerts/receivers/").content.decode()
    assert SECRET not in shown
    assert SECRET not in Receiver.objects.get().secrets
    assert SECRET not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize("kind", ["webhook", "slack"])
def test_of_an_address_the_host_alone_is_shown(cast: Cast, kind: str) -> None:
    """The address is often the secret: whoever has it can post in the team's name."""
    address, secret = "https://example.com:8443/hooks/T1/a-secret?key=another", SECRET if kind == "webhook" else ""
    made = {"name": "chat", "kind": kind, "url": address, "secret": secret}
    receiver = receivers.create_receiver(user=cast.users["owner"], **made)
    for role in ("viewer", "owner"):
        shown = speaking_as(cast, role).get(f"/api/v1/alerts/receivers/{receiver.pk}/").json()
        assert shown["address"] == "https://example.com:8443/…"
        assert "a-secret" not in browsing_as(cast, role).get("/alerts/receivers/").content.decode()


def test_slack_gets_its_form_and_its_address_is_not_shown(cast: Cast, hook: Hook) -> None:
    receiver = receiver_of(cast, hook, kind="slack")
    rule_of(cast, "unhealthy", receiver, name="a <b> & c")
    ill()
    look_and_send()
    [got] = hook.got
    assert set(got.told) == {"text"}
    assert got.told["text"].startswith("*Firing: a &lt;b&gt; &amp; c: flights*")
    assert "x-headgate-signature" not in got.headers
    assert receiver.shown.endswith("/…") and "hook" not in receiver.shown


def test_mail_says_it_too_and_a_no_of_its_server_is_a_no(cast: Cast, settings: Any) -> None:
    to = ["one@example.com", "two@example.com"]
    receiver = receivers.create_receiver(user=cast.users["owner"], name="mail", kind="email", addresses=to)
    rule_of(cast, "unhealthy", receiver)
    with mail_server(settings) as mailbox:
        ill()
        look_and_send()
        look_and_send()
        [mail] = mailbox.messages
        assert mail["To"] == "one@example.com, two@example.com"
        assert mail["Subject"] == "Firing: unhealthy: flights"
        assert str(Delivery.objects.get().uuid) in mail["Message-ID"]
        assert "3 tasks have all failed" in mailbox.newest()
        mailbox.refuses = "554 no spam"
        well(cast)
        look_and_send()
        refused = Delivery.objects.get(event__transition="ended")
        assert refused.state == "refused" and "554 no spam" in refused.error
        mailbox.refuses = "451 later"
        ill()
        look_and_send()
        later = Delivery.objects.order_by("pk").last()
        assert later is not None and later.state == "waiting" and "451 later" in later.error


@pytest.mark.parametrize(
    ("status", "headers", "state"),
    [
        (500, {}, "waiting"),
        (429, {"Retry-After": "120"}, "waiting"),
        (400, {}, "refused"),
        (410, {}, "refused"),
        (302, {"Location": "http://127.0.0.1:1/"}, "refused"),
    ],
)
def test_what_a_receiver_answers(cast: Cast, hook: Hook, status: int, headers: dict[str, str], state: str) -> None:
    """Row 31 of the security checklist."""
    receiver = receiver_of(cast, hook)
    rule_of(cast, "unhealthy", receiver)
    ill()
    hook.answer = (status, headers)
    look_and_send()
    delivery = Delivery.objects.get()
    assert (delivery.state, len(hook.got)) == (state, 1)
    assert str(status) in delivery.error
    receiver.refresh_from_db()
    send_due()
    assert len(hook.got) == 1  # not at once, or never
    if state == "waiting":
        assert receiver.next_try_at is not None and receiver.failures == 1
        paused_s = (receiver.next_try_at - timezone.now()).total_seconds()
        assert paused_s > (100 if headers else 0)
        hook.answer = (200, {})
        now_due()
        send_due()
        assert len({got.told["id"] for got in hook.got}) == 1
        assert Delivery.objects.get().state == "sent"
        assert Receiver.objects.get().failures == 0


def test_a_receiver_that_is_down_holds_no_other_up_and_is_given_up_at_last(cast: Cast, hook: Hook) -> None:
    with hook_server() as other:
        down = receiver_of(cast, other, "down")
    rule_of(cast, "unhealthy", down, receiver_of(cast, hook))
    ill()
    look_and_send()
    assert hook.events == ["fired"]
    shown = speaking_as(cast, "viewer").get(f"/api/v1/alerts/receivers/{down.pk}/").json()
    assert (shown["failures"], shown["waiting"]) == (1, 1)
    assert "nothing listens there" in shown["last_error"]
    Delivery.objects.filter(receiver=down).update(created_at=timezone.now() - timedelta(hours=25))
    now_due()
    send_due()
    assert Delivery.objects.get(receiver=down).state == "given_up"


def test_a_huge_answer_is_not_read(cast: Cast, hook: Hook) -> None:
    """Row 31 of the security checklist."""
    hook.body = b"x" * 50_000_000
    outcome = receivers.test_receiver(user=cast.users["owner"], receiver=receiver_of(cast, hook))
    assert outcome.ok


def test_a_receiver_that_says_nothing_is_not_waited_for(hook: Hook) -> None:
    hook.holds = threading.Event()
    outcome = post(hook.url, b"{}", {}, within_s=0.5)
    assert (outcome.ok, outcome.permanent) == (False, False)
    assert "in time" in outcome.text


def test_a_receiver_that_drips_is_not_waited_for_either() -> None:
    """Each byte comes soon enough; all of them would take a minute."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            line, _ = server.accept()
            with line, suppress(OSError):
                while not stop.wait(0.05):
                    line.sendall(b"H")

        dripping = threading.Thread(target=drip)
        dripping.start()
        outcome = post(f"http://127.0.0.1:{server.getsockname()[1]}/", b"{}", {}, within_s=0.5)
        stop.set()
        dripping.join()
    assert (outcome.ok, outcome.permanent) == (False, False)


def test_whoever_took_a_message_and_died_has_it_sent_again_with_its_id(cast: Cast, hook: Hook) -> None:
    rule_of(cast, "unhealthy", receiver_of(cast, hook))
    ill()
    look_and_send()
    # As a worker leaves it that was killed when the receiver had taken the message.
    later = timezone.now() + timedelta(seconds=60)
    Delivery.objects.update(state="waiting", ended_at=None, next_at=later)
    Receiver.objects.update(leased_until=later)
    send_due()
    assert len(hook.got) == 1
    now_due()
    send_due()
    assert [got.told["id"] for got in hook.got] == [hook.got[0].told["id"]] * 2
    assert Delivery.objects.get().attempts == 2


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"url": "ftp://127.0.0.1/"}, "url"),
        ({"url": "http://user:x@127.0.0.1/"}, "url"),
        ({"url": "http://169.254.169.254/"}, "url"),
        ({"url": "http://[::1"}, "url"),
        ({"url": "http://127.0.0.1/\r\nX: y"}, "url"),
        ({"url": ""}, "url"),
        ({"secret": "short"}, "secret"),
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"kind": "email"}, "addresses"),
        ({"kind": "email", "addresses": ["nobody"]}, "addresses[0]"),
        ({"kind": "email", "addresses": ["a@example.com"] * 21}, "addresses"),
    ],
)
def test_a_bad_receiver_is_refused(cast: Cast, more: dict[str, Any], path: str) -> None:
    good = {"name": "n", "kind": "webhook", "url": "http://127.0.0.1:8080/", "secret": SECRET}
    with pytest.raises(InvalidInput) as refused:
        receivers.create_receiver(user=cast.users["owner"], **{**good, **more})
    assert [f.path for f in refused.value.errors] == [path]
    assert not Receiver.objects.exists()


def test_the_address_policy_is_asked_when_written_and_when_sent(cast: Cast, hook: Hook, settings: Any) -> None:
    """Row 31 of the security checklist."""
    receiver = receiver_of(cast, hook)
    settings.ADDRESS_POLICY = AddressPolicy()
    with pytest.raises(InvalidInput, match="fault"):
        receiver_of(cast, hook, "another")
    outcome = receivers.test_receiver(user=cast.users["owner"], receiver=receiver)
    assert (outcome.ok, outcome.permanent, hook.got) == (False, True, [])
    assert "loopback" in outcome.text


def test_a_secret_does_not_go_to_another_address(cast: Cast, hook: Hook) -> None:
    """Row 31 of the security checklist."""
    owner, receiver = cast.users["owner"], receiver_of(cast, hook)
    with pytest.raises(InvalidInput):
        receivers.change_receiver(user=owner, receiver=receiver, name="n", url="http://127.0.0.1:9/")
    changed = receivers.change_receiver(user=owner, receiver=receiver, name="renamed")
    assert receivers.test_receiver(user=owner, receiver=changed).ok
    assert "x-headgate-signature" in hook.got[0].headers
    with pytest.raises(Conflict):
        receivers.test_receiver(user=owner, receiver=changed)
