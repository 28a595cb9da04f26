"""Rules over what is in the store, and messages to a real web server: each once, whatever happens between."""

from __future__ import annotations

import hashlib
import hmac
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.alerts import receivers, services
from controlplane.alerts.evaluating import evaluate
from controlplane.alerts.models import Alert, Delivery, Event, Receiver, Rule, Silence
from controlplane.alerts.posting import post
from controlplane.alerts.sending import send_due
from controlplane.common.errors import Conflict, InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.segments.models import IndexerFence, Publish, QuarantinedRecord, Source, SourceEvent
from controlplane.supervisors.models import State, Supervisor
from controlplane.tasks.models import Task
from controlplane.teams.models import AuditEntry, Team
from controlplane.teams.roles import Scope
from ingestion.specs.addresses import AddressPolicy
from ingestion.specs.protocol import Outcomes
from tests.integration.test_overview import quarantine
from tests.integration.test_standings import COARSE_S, sample
from tests.support.django_cast import Cast, serving, speaking_as
from tests.support.hooks import Hook, hook_server
from tests.support.mailbox import mail_server
from tests.support.publishes import make_source, request, send, start

SECRET = "a secret of sixteen or more"


@pytest.fixture
def hook() -> Iterator[Hook]:
    with hook_server() as served:
        yield served


def receiver_of(cast: Cast, hook: Hook, name: str = "hook", kind: str = "webhook") -> Receiver:
    secret = {"secret": SECRET} if kind == "webhook" else {}
    return receivers.create_receiver(user=cast.users["owner"], name=name, kind=kind, url=hook.url, **secret)


def rule_of(cast: Cast, kind: str = "unhealthy", *to: Receiver, **more: Any) -> Rule:
    usual = {"name": kind, "hold_s": 0, "clear_s": 0, "receivers": [r.pk for r in to]}
    return services.create_rule(user=cast.users["owner"], kind=kind, **{**usual, **more})


def ill() -> None:
    Supervisor.objects.update(state=State.UNHEALTHY_TASKS, failures=3)


def well(cast: Cast) -> None:
    """It keeps up with its topic, as was just seen."""
    Supervisor.objects.update(state=State.RUNNING, failures=0)
    sample(cast.source, timedelta(), 0)


def look_and_send() -> None:
    evaluate()
    send_due()


def now_due() -> None:
    """All pauses are over."""
    Receiver.objects.update(next_try_at=None, leased_until=None)
    Delivery.objects.filter(state="waiting").update(next_at=timezone.now())


def test_it_is_told_once_that_it_fires_and_once_that_it_is_over(cast: Cast, hook: Hook) -> None:
    rule = rule_of(cast, "unhealthy", receiver_of(cast, hook))
    ill()
    for _ in range(3):
        look_and_send()
    assert hook.events == ["fired"]
    well(cast)
    for _ in range(3):
        look_and_send()
    assert hook.events == ["fired", "ended"]
    first, second = (got.told for got in hook.got)
    assert first["rule"] == {"id": rule.pk, "name": "unhealthy", "kind": "unhealthy"}
    assert first["subject"] == {"kind": "supervisor", "name": "flights"}
    assert first["link"] == "/supervisors/flights/"
    assert "3 tasks have all failed" in first["text"]
    assert first["episode"] == second["episode"]
    assert first["id"] != second["id"]
    ill()
    look_and_send()
    assert hook.events == ["fired", "ended", "fired"]
    assert hook.got[2].told["episode"] != first["episode"]


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


def test_what_is_not_known_is_not_called_well(cast: Cast) -> None:
    rule_of(cast, "unhealthy")
    rule_of(cast, "behind")
    evaluate()  # its topic has no sample
    assert set(Alert.objects.values_list("state", flat=True)) == {"unknown"}
    ill()
    evaluate()
    Supervisor.objects.update(state=State.RUNNING, failures=0)
    evaluate()  # it is not known how it does
    assert Alert.objects.get(rule__kind="unhealthy").state == "firing"


def test_behind_for_long(cast: Cast) -> None:
    rule_of(cast, "behind", params={"age_s": 1200})
    sample(cast.source, timedelta(minutes=10), 0, resolution_s=COARSE_S)
    sample(cast.source, timedelta(seconds=30), 49_000)
    sample(cast.source, timedelta(), 50_000)
    evaluate()
    assert Alert.objects.get().state == "ok"  # for ten minutes
    Rule.objects.update(params={"age_s": 300})
    evaluate()
    alert = Alert.objects.get()
    assert (alert.state, alert.value) == ("firing", 50_000)
    assert "50,000 offsets behind for 10 min" in alert.text


def test_no_data_and_not_complete(cast: Cast) -> None:
    rule_of(cast, "no_data")
    rule_of(cast, "incomplete")
    evaluate()
    states = dict(Alert.objects.values_list("rule__kind", "state"))
    assert states == {"no_data": "firing", "incomplete": "unknown"}  # the cast's are of long ago
    IndexerFence.objects.update(last_publish_at=timezone.now())
    Source.objects.update(complete_until=timezone.now() - timedelta(hours=2), looked_at=timezone.now())
    evaluate()
    states = dict(Alert.objects.values_list("rule__kind", "state"))
    assert states == {"no_data": "ok", "incomplete": "firing"}


def test_quarantine_of_any_cause_and_of_one(cast: Cast) -> None:
    now = timezone.now()
    rule_of(cast, "quarantined", params={"most": 30, "window_s": 600})
    cause = QuarantinedRecord.objects.get().cause
    rule_of(cast, "quarantined", name="of one", params={"most": 1, "window_s": 600, "cause": cause})
    quarantine(cast, range(100, 200), "long ago", now - timedelta(hours=2))
    quarantine(cast, range(29), "Unexpected end at byte {}", now - timedelta(minutes=5))
    evaluate()
    assert set(Alert.objects.values_list("state", flat=True)) == {"ok"}
    quarantine(cast, range(29, 30), "Unexpected end at byte {}", now - timedelta(minutes=5))
    # The same fault as the cast's record.
    quarantine(cast, range(300, 301), "Malformed JSON at byte 12", now)
    evaluate()
    assert dict(Alert.objects.values_list("rule__name", "state")) == {"quarantined": "firing", "of one": "firing"}


def test_parse_errors_by_count_and_by_share(cast: Cast) -> None:
    """Of what was really published within the window."""
    source = make_source("orders", topic_id="topic-id-9", group="orders-group")
    send(request(start(source), {0: [(0, 15)]}, {0: Outcomes(unparseable=[(15, 20)])}, topic_id="topic-id-9"))
    about = {"datasource": "orders", "kind": "parse_errors"}
    for name, most, percent in (("4", 4, 0), ("5", 5, 0), ("25 %", 4, 25), ("26 %", 4, 26)):
        rule_of(cast, name=name, params={"most": most, "percent": percent}, **about)
    evaluate()
    found = dict(Alert.objects.values_list("rule__name", "state"))
    assert found == {"4": "firing", "5": "ok", "25 %": "firing", "26 %": "ok"}
    assert "5 of 20 records (25.0 %) of the last 10 min" in Alert.objects.get(rule__name="4").text
    Publish.objects.update(created_at=timezone.now() - timedelta(minutes=11))
    evaluate()
    assert set(Alert.objects.values_list("state", flat=True)) == {"ok"}


def test_an_alarm(cast: Cast) -> None:
    rule_of(cast, "alarm")
    SourceEvent.objects.update(created_at=timezone.now() - timedelta(hours=2))
    evaluate()
    assert Alert.objects.get().state == "ok"
    SourceEvent.objects.update(created_at=timezone.now())
    evaluate()
    assert Alert.objects.get().state == "firing"


def test_each_complete_hour_is_told_once(cast: Cast, hook: Hook) -> None:
    rule_of(cast, "complete", receiver_of(cast, hook))
    hour = timezone.now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=5)
    for minutes in (30, 30, 59, 60, 75, 190):
        Source.objects.update(complete_until=hour + timedelta(minutes=minutes))
        look_and_send()
    ends = [got.told["interval"]["end"] for got in hook.got]
    assert ends == [f"{hour + timedelta(hours=n):%Y-%m-%dT%H:%M:%S}Z" for n in (1, 2, 3)]
    assert set(hook.events) == {"complete"}


def test_what_fires_in_a_silence_is_sent_once_when_it_ends(cast: Cast, hook: Hook) -> None:
    rule = rule_of(cast, "unhealthy", receiver_of(cast, hook))
    operator = cast.users["operator"]
    until = timezone.now() + timedelta(hours=1)
    made = services.silence(user=operator, team=cast.alpha, reason="we know", ends_at=until, rule=rule)
    ill()
    look_and_send()
    look_and_send()
    assert hook.got == []
    assert Event.objects.get().silenced == "we know"
    services.end_silence(user=operator, silence=made)
    for _ in range(3):
        look_and_send()
    assert hook.events == ["fired"]
    assert Event.objects.count() == 1


def test_what_begins_and_ends_in_a_silence_is_history_alone(cast: Cast, hook: Hook) -> None:
    rule_of(cast, "unhealthy", receiver_of(cast, hook))
    until = timezone.now() + timedelta(hours=1)
    services.silence(
        user=cast.users["operator"], team=cast.alpha, reason="r", ends_at=until, datasource=cast.datasource
    )
    ill()
    look_and_send()
    well(cast)
    look_and_send()
    Silence.objects.update(ends_at=timezone.now())
    look_and_send()
    assert hook.got == []
    assert [e.transition for e in Event.objects.order_by("id")] == ["fired", "ended"]


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


def test_a_rule_that_goes_ends_what_it_said(cast: Cast, hook: Hook) -> None:
    owner, receiver = cast.users["owner"], receiver_of(cast, hook)
    rule = rule_of(cast, "unhealthy", receiver)
    ill()
    look_and_send()
    services.change_rule(user=owner, rule=rule, name="off", enabled=False, receivers=[receiver.pk])
    look_and_send()
    assert hook.events == ["fired", "ended"]
    services.change_rule(user=owner, rule=rule, name="on", hold_s=0, receivers=[receiver.pk])
    look_and_send()
    services.delete_rule(user=owner, rule=rule)
    look_and_send()
    assert hook.events == ["fired", "ended", "fired", "ended"]
    assert "deleted by owner" in hook.got[3].told["text"]
    assert Event.objects.count() == 4


def test_who_is_added_to_a_rule_that_fires_is_told(cast: Cast, hook: Hook) -> None:
    owner, first = cast.users["owner"], receiver_of(cast, hook)
    rule = rule_of(cast, "unhealthy", first)
    ill()
    look_and_send()
    with hook_server() as other:
        second = receiver_of(cast, other, "second")
        services.change_rule(user=owner, rule=rule, name="n", receivers=[first.pk, second.pk], hold_s=0, clear_s=0)
        look_and_send()
        assert (hook.events, other.events) == (["fired"], ["fired"])
        assert other.got[0].told["episode"] == hook.got[0].told["episode"]
        well(cast)
        look_and_send()
        assert (hook.events[1:], other.events[1:]) == (["ended"], ["ended"])


def test_nothing_is_sent_for_a_team_that_was_deleted(cast: Cast, hook: Hook) -> None:
    rule_of(cast, "unhealthy", receiver_of(cast, hook))
    ill()
    evaluate()
    Team.objects.filter(pk=cast.alpha.pk).update(deleted_at=timezone.now())
    look_and_send()
    assert (hook.got, Alert.objects.count()) == ([], 0)


def test_a_terminated_supervisor_is_over(cast: Cast, hook: Hook) -> None:
    rule_of(cast, "unhealthy", receiver_of(cast, hook))
    ill()
    look_and_send()
    Supervisor.objects.update(terminated_at=timezone.now())
    look_and_send()
    assert hook.events == ["fired", "ended"]


def test_what_waits_goes_with_its_receiver_and_its_datasource(cast: Cast, hook: Hook) -> None:
    receiver = receiver_of(cast, hook)
    of_one = rule_of(cast, "unhealthy", receiver, datasource="flights")
    ill()
    evaluate()
    assert Delivery.objects.filter(state="waiting").count() == 1
    receivers.delete_receiver(user=cast.users["owner"], receiver=receiver)
    look_and_send()
    assert (hook.got, Delivery.objects.count()) == ([], 0)
    assert Alert.objects.get(rule=of_one).state == "firing"
    Task.objects.all().delete()
    cast.datasource.delete()
    assert evaluate() == 0
    assert not Rule.objects.exists() and Event.objects.count() == 1


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


def test_many_rules_are_as_many_statements_as_few(cast: Cast) -> None:
    def statements() -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            evaluate()
        return len(asked)

    rules = [rule_of(cast, kind) for kind in ("unhealthy", "behind", "no_data", "parse_errors", "quarantined", "alarm")]
    ill()
    few = statements()
    made = Datasource.objects.bulk_create(Datasource(name=f"d{n}", team=cast.alpha) for n in range(100))
    kinds = [rule.kind for rule in rules]
    Rule.objects.bulk_create(
        Rule(team=cast.alpha, name=f"r{n}", kind=kinds[n % 6], params=rules[n % 6].params, datasource=made[n % 100])
        for n in range(200)
    )
    assert statements() <= few + 4  # the first writes, and these in batches
    assert statements() <= few


def test_acknowledging(cast: Cast) -> None:
    rule_of(cast, "unhealthy")
    ill()
    evaluate()
    address = f"/api/v1/alerts/{Alert.objects.get().pk}/acknowledge/"
    operator: Client = speaking_as(cast, "operator")
    assert operator.post(address).json()["acknowledged_by"] == "operator"
    assert operator.post(address).status_code == 409
    assert list(AuditEntry.objects.filter(action="acknowledge").values_list("target_id", flat=True)) == ["unhealthy"]


@pytest.mark.parametrize(("datasource", "seen"), [("flights", 1), ("another", 0)])
def test_a_token_for_a_datasource_sees_what_is_told_of_it_alone(cast: Cast, datasource: str, seen: int) -> None:
    rule_of(cast, "unhealthy")
    ill()
    evaluate()
    program = serving(cast, Scope.OPERATE, datasource)
    for place, count in (("", seen), ("history/", seen), ("rules/", 0), ("receivers/", 0)):
        assert len(program.get(f"/api/v1/alerts/{place}").json()["results"]) == count
    acknowledged = program.post(f"/api/v1/alerts/{Alert.objects.get().pk}/acknowledge/")
    assert acknowledged.status_code == (200 if seen else 404)


def test_history_by_rest(cast: Cast, hook: Hook) -> None:
    rule = rule_of(cast, "unhealthy", receiver_of(cast, hook))
    ill()
    look_and_send()
    viewer = speaking_as(cast, "viewer")
    [event] = viewer.get(f"/api/v1/alerts/history/?rule={rule.pk}&event=fired&subject=flights").json()["results"]
    assert [d["state"] for d in event["deliveries"]] == ["sent"]
    assert viewer.get("/api/v1/alerts/history/?event=ended").json()["results"] == []
    outsider = speaking_as(cast, "outsider")
    for place in ("", "history/", "rules/", "receivers/", "silences/"):
        assert outsider.get(f"/api/v1/alerts/{place}").json()["results"] == []
