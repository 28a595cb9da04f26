"""Each form and button of alerts' pages, clicked through to what comes of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from playwright.sync_api import expect

from controlplane.alerts import receivers, services
from controlplane.alerts.evaluating import evaluate
from controlplane.alerts.models import Alert, Event, Receiver, Rule, Silence
from controlplane.alerts.sending import send_due
from controlplane.connections.secrets import unseal
from controlplane.lag.models import LagSample
from controlplane.sources.models import Source, SourceEvent
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.states import Detail
from tests.browser.site import Visit
from tests.integration.test_health_of_supervisors import sample
from tests.support.alerting import Alerting, alerting
from tests.support.hooks import hook_server

SECRET = "canary-4711-canary"


def _there(visit: Visit) -> Alerting:
    """What the site began with, made again if it is gone."""
    found = alerting(visit.site.cast)
    Alert.objects.filter(pk=found.alert.pk).update(state="firing", acknowledged_at=None, acknowledged_by="")
    return found


def acknowledge_an_event(visit: Visit) -> None:
    """From home to the question; after it home has nothing to say of the alarm."""
    visit.become("operator")
    event = visit.site.cast.event
    SourceEvent.objects.filter(pk=event.pk).update(acknowledged_at=None, acknowledged_by="", created_at=timezone.now())
    for answer in ("Cancel", "Acknowledge"):
        visit.open("/")
        visit.page.locator("[data-problem=gap]").get_by_role("link", name="Acknowledge").click()
        if answer == "Cancel":
            visit.page.get_by_role("button", name="Cancel").click()
            visit.page.wait_for_url("**/events/")
        else:
            visit.press("Acknowledge")
            visit.told("The alarm of flights is acknowledged.")
    event.refresh_from_db()
    assert event.acknowledged_by == "operator"
    visit.open("/")
    expect(visit.page.locator("[data-problem=gap]")).to_have_count(0)


def acknowledge(visit: Visit) -> None:
    visit.become("operator")
    there = _there(visit)
    visit.open("/alerts/")
    visit.press("Acknowledge")
    visit.told("flights-late of flights is acknowledged.")
    assert Alert.objects.get(pk=there.alert.pk).acknowledged_by == "operator"
    expect(visit.button("Acknowledge")).to_have_count(0)


def make_a_rule(visit: Visit) -> None:
    """From a datasource's page."""
    there = _there(visit)
    Rule.objects.filter(name="No data").delete()
    visit.open("/datasources/flights/")
    visit.page.get_by_role("link", name="Alert me").click()
    expect(visit.page.get_by_label("Datasource", exact=True)).to_have_value("flights")
    visit.page.get_by_label("For longer than (s)").fill("7200")
    visit.page.get_by_label("on-call (Webhook)").check()
    visit.press("Create")
    visit.told("The rule No data was created")
    made = Rule.objects.get(name="No data")
    assert (made.kind, made.params, made.datasource) == ("no_data", {"age_s": 7200}, visit.site.cast.datasource)
    assert list(made.receivers.all()) == [there.receiver]


def change_a_rule(visit: Visit) -> None:
    there = _there(visit)
    visit.open(f"/alerts/rules/{there.rule.pk}/")
    visit.page.get_by_label("Ends after (s)").fill("300")
    visit.page.get_by_label("Enabled", exact=True).uncheck()
    visit.press("Save")
    visit.told("The rule flights-late is changed.")
    changed = Rule.objects.get(pk=there.rule.pk)
    assert (changed.clear_s, changed.enabled) == (300, False)
    Rule.objects.update(enabled=True)


def delete_a_rule(visit: Visit) -> None:
    there = _there(visit)
    visit.open(f"/alerts/rules/{there.rule.pk}/")
    visit.press("Delete…")
    visit.button("Cancel", visit.page.get_by_role("dialog")).click()
    expect(visit.page.get_by_role("dialog")).to_be_hidden()
    visit.answer("Delete", "Delete")
    visit.told("It is deleted.")
    assert not Rule.objects.filter(pk=there.rule.pk).exists()
    assert Event.objects.filter(rule_name="flights-late").exists()


def delete_a_rule_on_a_page(visit: Visit) -> None:
    there = _there(visit)
    visit.open(f"/alerts/rules/{there.rule.pk}/delete/")
    visit.press("Cancel")
    visit.page.wait_for_url("**/alerts/rules/")
    visit.open(f"/alerts/rules/{there.rule.pk}/delete/")
    visit.press("Delete")
    visit.told("It is deleted.")
    assert not Rule.objects.filter(pk=there.rule.pk).exists()


def make_a_receiver(visit: Visit) -> None:
    Receiver.objects.filter(name="made").delete()
    visit.open("/alerts/receivers/-/new/?kind=webhook")
    visit.page.get_by_label("Name", exact=True).fill("made")
    visit.page.get_by_label("Address", exact=True).fill("http://127.0.0.1:9/hook?key=1")
    visit.page.get_by_label("Secret", exact=True).fill(SECRET)
    visit.press("Create")
    visit.told("The receiver made was created.")
    made = Receiver.objects.get(name="made")
    assert made.shown == "http://127.0.0.1:9/…"
    assert unseal(made.secrets) == {"url": "http://127.0.0.1:9/hook?key=1", "secret": SECRET}


def change_a_receiver(visit: Visit) -> None:
    """What is stored of it is not filled in again, and is kept."""
    make_a_receiver(visit)
    made = Receiver.objects.get(name="made")
    visit.open(f"/alerts/receivers/{made.pk}/")
    expect(visit.page.get_by_label("Secret", exact=True)).to_have_value("")
    visit.page.get_by_label("Name", exact=True).fill("renamed")
    visit.press("Save")
    visit.told("The receiver renamed is changed.")
    made.refresh_from_db()
    assert (made.name, unseal(made.secrets)["secret"]) == ("renamed", SECRET)
    made.delete()


def delete_a_receiver(visit: Visit) -> None:
    there = _there(visit)
    visit.open(f"/alerts/receivers/{there.receiver.pk}/")
    visit.press("Delete…")
    visit.button("Cancel", visit.page.get_by_role("dialog")).click()
    visit.answer("Delete", "Delete")
    visit.told("It is deleted.")
    assert not Receiver.objects.filter(pk=there.receiver.pk).exists()


def delete_a_receiver_on_a_page(visit: Visit) -> None:
    there = _there(visit)
    visit.open(f"/alerts/receivers/{there.receiver.pk}/delete/")
    visit.press("Cancel")
    visit.page.wait_for_url("**/alerts/receivers/")
    visit.open(f"/alerts/receivers/{there.receiver.pk}/delete/")
    visit.press("Delete")
    visit.told("It is deleted.")
    assert not Receiver.objects.filter(pk=there.receiver.pk).exists()


def send_a_test(visit: Visit) -> None:
    there = _there(visit)
    with hook_server() as hook:
        visit.open("/alerts/receivers/")
        visit.press("Send a test")
        visit.told("nothing listens there")
        change = {"url": hook.url, "secret": SECRET}
        receivers.change_receiver(
            user=visit.site.cast.users["owner"], receiver=there.receiver, name="on-call", **change
        )
        Receiver.objects.update(tested_at=None)
        visit.press("Send a test")
        visit.told("It answered 200 OK.")
        assert hook.events == ["test"]


def filter_the_history(visit: Visit) -> None:
    _there(visit)
    visit.open("/alerts/history/")
    visit.page.get_by_label("Event").select_option("ended")
    visit.press("Filter")
    expect(visit.page.get_by_text("No events match these filters.")).to_be_visible()
    visit.page.get_by_label("Event").select_option("fired")
    visit.page.get_by_label("Supervisor or datasource").fill("flights")
    visit.press("Filter")
    expect(visit.page.locator("[data-event=fired]").first).to_be_visible()


def end_a_silence(visit: Visit) -> None:
    there = _there(visit)
    visit.open("/alerts/silences/")
    row = visit.page.locator(f"[data-silence='{there.silence.pk}']")
    row.get_by_role("button", name="End silence").click()
    visit.told("The silence has ended")
    ended = Silence.objects.get(pk=there.silence.pk)
    assert (ended.holds, ended.ended_by) == (False, "owner")
    ended.delete()


def one_that_fires_is_silenced_and_ends(visit: Visit) -> None:
    """From the supervisor that fails to the message that it is over, on a real receiver."""
    owner, cast = visit.site.cast.users["owner"], visit.site.cast
    Rule.objects.all().delete()
    Receiver.objects.all().delete()
    Silence.objects.all().delete()
    Event.objects.all().delete()
    with hook_server() as hook:
        to = receivers.create_receiver(
            user=owner, team_name="alpha", name="real", kind="webhook", url=hook.url, secret=SECRET
        )
        made: dict[str, Any] = {"name": "ill", "kind": "unhealthy", "hold_s": 0, "clear_s": 0, "receivers": [to.pk]}
        services.create_rule(user=owner, datasource="flights", **made)
        Supervisor.objects.filter(pk="flights").update(detailed_state=Detail.UNHEALTHY_TASKS, failures=3)
        visit.become("operator")
        visit.open("/alerts/rules/")
        _look()
        visit.open("/alerts/")
        expect(visit.page.locator("[data-alert=flights][data-state=firing]")).to_contain_text("all failed")
        expect(visit.page.get_by_role("link", name="Alerts")).to_contain_text("1")
        visit.page.get_by_role("link", name="Silence", exact=True).click()
        visit.page.get_by_label("Reason").fill("we are on it")
        visit.press("Silence")
        visit.told("The silence has begun")
        _well(cast.source.pk)
        _look()
        Supervisor.objects.filter(pk="flights").update(detailed_state=Detail.UNHEALTHY_TASKS, failures=3)
        _look()
        _look()
        assert hook.events == ["fired", "ended"]  # the second time it is silent
        visit.open("/alerts/silences/")
        visit.press("End silence")
        _look()
        assert hook.events == ["fired", "ended", "fired"]
        _well(cast.source.pk)
        _look()
        visit.open("/alerts/")
        expect(visit.page.get_by_text("No alerts are firing")).to_be_visible()
        visit.open("/alerts/history/")
        expect(visit.page.locator("[data-event]")).to_have_count(4)
        assert hook.events == ["fired", "ended", "fired", "ended"]


def _look() -> None:
    evaluate()
    send_due()


def _well(source: int) -> None:
    Supervisor.objects.filter(pk="flights").update(detailed_state=Detail.RUNNING, failures=0)
    LagSample.objects.filter(source=source).delete()
    sample(Source.objects.get(pk=source), timedelta(), 0)
