"""Rules over what is in the store, and messages to a real web server: each once, whatever happens between."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.alerts import receivers, services
from controlplane.alerts.evaluating import evaluate
from controlplane.alerts.models import Alert, Delivery, Event, Rule, Silence
from controlplane.datasources.models import Datasource
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from controlplane.teams.models import AuditEntry, Team
from controlplane.teams.roles import Scope
from tests.support.alert_rounds import hook, ill, look_and_send, receiver_of, rule_of, well
from tests.support.django_cast import Cast, serving, speaking_as
from tests.support.hooks import Hook, hook_server

__all__ = ["hook"]  # a fixture


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
    assert "3 tasks have all failed" in first["cause"]
    assert first["action"] and first["text"] == f"{first['cause']} {first['action']}"
    assert (second["action"], second["text"]) == ("", second["cause"]), "what has ended needs nobody"
    assert first["episode"] == second["episode"]
    assert first["id"] != second["id"]
    ill()
    look_and_send()
    assert hook.events == ["fired", "ended", "fired"]
    assert hook.got[2].told["episode"] != first["episode"]


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
