"""One of each thing of alerts, all of team alpha."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from controlplane.alerts.models import Alert, Event, Receiver, Rule, Silence
from controlplane.connections.secrets import seal
from tests.support.django_cast import STARTED, Cast

HOOK = {"url": "http://127.0.0.1:1/", "secret": "a-secret-of-a-test"}


@dataclass(frozen=True)
class Alerting:
    """``alert`` fires by ``rule``, which tells ``receiver``, where nobody listens; ``silence`` lasts for long."""

    alert: Alert
    rule: Rule
    receiver: Receiver
    silence: Silence

    def number(self, pattern: str) -> int:
        """The id of what an address is about."""
        found = {"rules": self.rule.pk, "receivers": self.receiver.pk, "silences": self.silence.pk}
        return next((pk for part, pk in found.items() if f"/{part}/" in pattern), self.alert.pk)


def alerting(cast: Cast) -> Alerting:
    """Made when it is first asked for."""
    team = cast.alpha
    usual = {"kind": "webhook", "shown": "https://example.com/…", "secrets": seal(HOOK)}
    receiver, _ = Receiver.objects.get_or_create(team=team, name="on-call", defaults=usual)
    rule, _ = Rule.objects.get_or_create(team=team, name="flights-late", kind="unhealthy")
    rule.receivers.add(receiver)
    since = {"begins_at": STARTED, "ends_at": STARTED + timedelta(days=36500), "created_by": "owner"}
    silence, _ = Silence.objects.get_or_create(team=team, reason="flights rest", rule=rule, defaults=since)
    about = {"team": team, "rule": rule, "about": "supervisor", "subject": "flights", "datasource": "flights"}
    fires = {"state": "firing", "since": STARTED, "cause": "It fails.", "episode": 1}
    alert, made = Alert.objects.get_or_create(**about, defaults=fires)
    if made:
        said = {"rule_name": rule.name, "kind": rule.kind, "transition": "fired", "at": STARTED, "since": STARTED}
        Event.objects.create(**about, **said, episode=1, cause="It fails.", silenced="flights rest")
    return Alerting(alert, rule, receiver, silence)
