"""What each kind of rule sees in the store."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from controlplane.alerts.evaluating import evaluate
from controlplane.alerts.models import Alert, Rule
from controlplane.publishing.models import IndexerFence, Publish
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.sources.models import Source, SourceEvent
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.states import Detail
from ingestion.specs.messages.protocol import Outcomes
from tests.integration.test_health_of_supervisors import COARSE_S, sample
from tests.integration.test_overview import quarantine
from tests.support.alert_rounds import hook, ill, look_and_send, receiver_of, rule_of
from tests.support.django_cast import Cast
from tests.support.hooks import Hook
from tests.support.publishes import make_source, request, send, start

__all__ = ["hook"]  # a fixture


def test_what_is_not_known_is_not_called_well(cast: Cast) -> None:
    rule_of(cast, "unhealthy")
    rule_of(cast, "behind")
    evaluate()  # its topic has no sample
    assert set(Alert.objects.values_list("state", flat=True)) == {"unknown"}
    ill()
    evaluate()
    Supervisor.objects.update(detailed_state=Detail.RUNNING, failures=0)
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
    assert "5 of 20 records (25.0 %) in the last 10 min" in Alert.objects.get(rule__name="4").text
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
