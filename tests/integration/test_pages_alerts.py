"""Alerts' pages: what they say, to whom, and what they refuse."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from controlplane.alerts.evaluating import evaluate
from controlplane.alerts.models import Alert, Delivery, Event, Receiver, Rule
from controlplane.alerts.rule_kinds import KINDS
from frontend.team_scope import TEAM_KEY
from tests.support.alerting import Alerting, alerting
from tests.support.django_cast import STARTED, Cast, browsing_as

SECRET = "canary-4711-canary"


@pytest.fixture
def there(cast: Cast) -> Alerting:
    return alerting(cast)


def test_what_fires_stands_with_its_cause_and_is_counted(cast: Cast, there: Alerting) -> None:
    Alert.objects.update(cause="It <b>fails</b>.")
    page = browsing_as(cast, "viewer").get("/alerts/").content.decode()
    assert "It &lt;b&gt;fails&lt;/b&gt;." in page
    assert 'data-state="firing"' in page
    assert '<span class="site-badge">1<' in page
    assert "Acknowledge</button>" not in page  # of a viewer
    page = browsing_as(cast, "operator").get("/alerts/").content.decode()
    assert "Acknowledge</button>" in page
    assert f"?rule={there.rule.pk}&amp;datasource=flights" in page
    page = browsing_as(cast, "outsider").get("/alerts/").content.decode()
    assert "No alerts are firing" in page and "site-badge" not in page


def test_the_badge_is_of_the_chosen_team(cast: Cast, there: Alerting) -> None:
    client = browsing_as(cast, "superuser")
    session = client.session
    session[TEAM_KEY] = "beta"
    session.save()
    assert "No alerts are firing" in client.get("/alerts/").content.decode()


def test_the_page_says_when_rules_were_last_evaluated(cast: Cast, there: Alerting) -> None:
    Alert.objects.all().delete()
    viewer = browsing_as(cast, "viewer")

    def page() -> str:
        return viewer.get("/alerts/").content.decode()

    assert "The rules have not been evaluated yet" in page()  # a new rule, seconds ago
    evaluate()
    Alert.objects.all().delete()  # what the cast's supervisors are is not the point
    assert "No alerts are firing" in page()
    at = Rule.objects.get(pk=there.rule.pk).evaluated_at
    assert at is not None and f'The rules were last evaluated <time datetime="{at.isoformat()[:19]}' in page()
    assert "data-overdue" not in page()
    earlier = at - timedelta(minutes=5)
    Rule.objects.update(evaluated_at=earlier, changed_at=earlier)
    assert "No alerts were firing at the last evaluation" in page() and "data-overdue" in page()
    Rule.objects.update(changed_at=at)  # turned on, or changed, a moment ago
    assert "data-overdue" not in page()
    Rule.objects.update(evaluated_at=None, changed_at=earlier)
    assert "The rules have never been evaluated: no alert can fire." in page()
    Rule.objects.update(enabled=False)
    assert "No alerts are firing" in page() and "data-overdue" not in page()


def test_home_says_what_fires(cast: Cast, there: Alerting) -> None:
    page = browsing_as(cast, "viewer").get("/").content.decode()
    assert "1 alert fires" in page


def test_a_receiver_s_page_names_the_setting_that_makes_links_whole(cast: Cast, there: Alerting, settings: Any) -> None:
    pages = ("/alerts/receivers/", "/alerts/receivers/-/new/?kind=webhook", f"/alerts/receivers/{there.receiver.pk}/")
    owner = browsing_as(cast, "owner")
    for address, noted in [("", True), ("https://headgate.example.org", False)]:
        settings.PUBLIC_URL = address
        assert [("HEADGATE_PUBLIC_URL" in owner.get(page).content.decode()) for page in pages] == [noted] * 3


def test_history_shows_what_became_of_messages(cast: Cast, there: Alerting) -> None:
    Delivery.objects.create(
        event=Event.objects.get(),
        receiver=there.receiver,
        state="refused",
        error="It answered 410 <Gone>: it is not tried again.",
        created_at=STARTED,
        next_at=STARTED,
    )
    page = browsing_as(cast, "viewer").get("/alerts/history/").content.decode()
    assert "It answered 410 &lt;Gone&gt;" in page
    assert "Silenced: flights rest" in page
    page = browsing_as(cast, "viewer").get("/alerts/history/?kind=behind").content.decode()
    assert "No events match these filters." in page


def test_a_receiver_that_fails_says_so(cast: Cast, there: Alerting) -> None:
    Receiver.objects.update(failures=3, last_error="nothing listens there", failing_since=STARTED, next_try_at=STARTED)
    page = browsing_as(cast, "viewer").get("/alerts/receivers/").content.decode()
    assert "nothing listens there" in page
    assert "Send a test" not in page
    assert "Send a test" in browsing_as(cast, "owner").get("/alerts/receivers/").content.decode()


@pytest.mark.parametrize(
    ("address", "form", "said"),
    [
        (
            "rules/-/new/?kind=no_data",
            {"name": "n", "params_age_s": "5", "hold_s": "0", "clear_s": "0"},
            "than or equal",
        ),
        ("rules/-/new/?kind=no_data", {"params_age_s": "60", "hold_s": "0", "clear_s": "0"}, "is required"),
        (
            "rules/-/new/?kind=behind",
            {"name": "n", "params_age_s": "60", "hold_s": "0", "clear_s": "0", "datasource": "betas"},
            "is not a datasource of team alpha",
        ),
        (
            "receivers/-/new/?kind=email",
            {"name": "n", "addresses": "a@example.com, nobody"},
            "is not an e-mail address",
        ),
        (
            "receivers/-/new/?kind=webhook",
            {"name": "n", "url": "http://169.254.169.254/", "secret": SECRET},
            "metadata",
        ),
        ("receivers/-/new/?kind=webhook", {"name": "n", "url": "http://127.0.0.1:9/", "secret": "x"}, "16 to 200"),
        ("receivers/-/new/?kind=slack", {"name": "on-call", "url": "http://127.0.0.1:9/"}, "already"),
        ("silences/-/new/?datasource=flights", {"length": "5", "reason": "r"}, "valid choice"),
        ("silences/-/new/?datasource=flights", {"length": "3600", "reason": " "}, "is required"),
    ],
)
def test_a_bad_form_is_refused_at_its_field(
    cast: Cast, there: Alerting, address: str, form: dict[str, Any], said: str
) -> None:
    before = (Rule.objects.count(), Receiver.objects.count())
    answer = browsing_as(cast, "owner").post(f"/alerts/{address}", {"team": "alpha", **form})
    assert answer.status_code in (400, 409)
    page = answer.content.decode()
    assert said in page
    assert SECRET not in page
    assert (Rule.objects.count(), Receiver.objects.count()) == before


@pytest.mark.parametrize(("kind", "says"), [("slack", "incoming webhook of Slack"), ("webhook", "by POST, as JSON")])
def test_a_receivers_form_says_which_address_it_wants(cast: Cast, kind: str, says: str) -> None:
    assert says in browsing_as(cast, "owner").get(f"/alerts/receivers/-/new/?kind={kind}").content.decode()


def test_forms_offer_no_receiver_of_another_team(cast: Cast, there: Alerting) -> None:
    outsider: Client = browsing_as(cast, "outsider")
    assert "on-call" not in outsider.get("/alerts/rules/-/new/").content.decode()
    stolen = {"team": "beta", "name": "n", "hold_s": "0", "clear_s": "0", "receivers": str(there.receiver.pk)}
    assert outsider.post("/alerts/rules/-/new/", stolen).status_code == 400
    assert not Rule.objects.filter(team=cast.beta).exists()


def test_a_page_leads_to_a_rule_about_it(cast: Cast) -> None:
    owner, viewer = browsing_as(cast, "owner"), browsing_as(cast, "viewer")
    assert "?kind=no_data&amp;datasource=flights&amp;team=alpha" in owner.get("/datasources/flights/").content.decode()
    assert (
        "?kind=unhealthy&amp;datasource=flights&amp;team=alpha" in owner.get("/supervisors/flights/").content.decode()
    )
    assert "Alert me" not in viewer.get("/datasources/flights/").content.decode()


def test_a_viewer_reads_a_rule_and_changes_nothing(cast: Cast, there: Alerting) -> None:
    viewer, address = browsing_as(cast, "viewer"), f"/alerts/rules/{there.rule.pk}/"
    assert address in viewer.get("/alerts/rules/").content.decode()
    shown = viewer.get(address).content.decode()
    assert all(param.label in shown for param in KINDS[there.rule.kind].params)
    assert "can change this rule" in shown and f'action="{address}' not in shown and "Save" not in shown
    assert viewer.post(address, {"name": "other"}).status_code == 403
