"""Reads of rules, receivers, alerts, silences and history. What is another team's is not found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db.models import Count, F, Min, Model, Prefetch, Q, QuerySet
from django.db.models.functions import Greatest
from django.utils import timezone

from controlplane.alerts.models import Alert, Delivery, Event, Receiver, Rule, Silence
from controlplane.common.errors import NotFound
from controlplane.common.text import storable
from controlplane.teams.models import User
from controlplane.teams.permissions import visible

M = TypeVar("M", bound=Model)
MAX_ID = 2**63 - 1
OVERDUE = timedelta(minutes=1)  # rules are evaluated every ten seconds


@dataclass(frozen=True)
class AlertFilter:
    """Which alerts or events; what is empty filters nothing."""

    team: str = ""
    datasource: str = ""
    subject: str = ""
    rule: int | None = None
    state: str = ""  # of alerts
    event: str = ""  # a transition, of events

    @property
    def is_storable(self) -> bool:
        return all(storable(text) for text in (self.team, self.datasource, self.subject, self.state, self.event))


@dataclass(frozen=True)
class LastEvaluation:
    """When rules were last evaluated: an alert can fire only then."""

    rules: int  # that are enabled
    at: datetime | None  # of the rule whose evaluation is the oldest; None: no rule was ever evaluated
    waits_since: datetime | None  # the same, or the rule's last change

    @property
    def is_overdue(self) -> bool:
        return self.waits_since is not None and timezone.now() - self.waits_since > OVERDUE


def list_alerts(user: User, filters: AlertFilter = AlertFilter()) -> QuerySet[Alert]:
    """How rules stand, what fires first within a team."""
    alerts = Alert.objects.filter(visible(user, "team", "datasource"), team__deleted_at=None).select_related(
        "team", "rule"
    )
    return _filtered(alerts, filters, state=filters.state).order_by("-since", "-id")


def list_firing(user: User, team: str = "") -> QuerySet[Alert]:
    """What fires, the newest first."""
    return list_alerts(user, AlertFilter(team=team, state=Alert.State.FIRING))


def count_firing(user: User, team: str = "") -> int:
    """How many alerts fire that nobody has acknowledged."""
    return list_firing(user, team).filter(acknowledged_at=None).order_by().count()


def get_alert(user: User, number: int) -> Alert:
    """Raises ``NotFound``."""
    return _get_one(list_alerts(user), number, "alert")


def list_rules(user: User, team: str = "", datasource: str = "") -> QuerySet[Rule]:
    """By team and name; each with ``team_name`` and ``list_firing``, how many of its alerts fire."""
    rules = Rule.objects.filter(visible(user, "team"), team__deleted_at=None).select_related(
        "team", "datasource", "created_by"
    )
    rules = rules.annotate(
        team_name=F("team__name"), firing=Count("alerts", filter=Q(alerts__state=Alert.State.FIRING), distinct=True)
    )
    if not storable(team) or not storable(datasource):
        return rules.none()
    filters = {"team__name": team, "datasource__name": datasource}
    rules = rules.filter(**{name: value for name, value in filters.items() if value})
    return rules.prefetch_related("receivers").order_by("team_name", "name")


def last_evaluation(user: User, team: str = "") -> LastEvaluation:
    """Of the enabled rules of one team, or of all teams that the user may see."""
    rules = Rule.objects.filter(visible(user, "team"), team__deleted_at=None, enabled=True)
    if team:
        rules = rules.filter(team__name=team) if storable(team) else rules.none()
    due = rules.aggregate(
        rules=Count("id"), at=Min("evaluated_at"), waits_since=Min(Greatest("evaluated_at", "changed_at"))
    )
    return LastEvaluation(**due)


def get_rule(user: User, number: int) -> Rule:
    """Raises ``NotFound``."""
    return _get_one(list_rules(user), number, "rule of alerts")


def list_receivers(user: User, team: str = "") -> QuerySet[Receiver]:
    """By team and name; each with ``team_name`` and ``waiting``, how many messages wait for it."""
    receivers = Receiver.objects.filter(visible(user, "team"), team__deleted_at=None).select_related(
        "team", "created_by"
    )
    waiting = Count("deliveries", filter=Q(deliveries__state=Delivery.State.WAITING), distinct=True)
    receivers = receivers.annotate(team_name=F("team__name"), waiting=waiting)
    if not storable(team):
        return receivers.none()
    return (receivers.filter(team__name=team) if team else receivers).order_by("team_name", "name")


def get_receiver(user: User, number: int) -> Receiver:
    """Raises ``NotFound``."""
    return _get_one(list_receivers(user), number, "receiver of alerts")


def list_silences(user: User, team: str = "", *, ended: bool = False) -> QuerySet[Silence]:
    """Those that hold or are to begin, or with ``ended`` all of them; the newest first."""
    silences = Silence.objects.filter(visible(user, "team"), team__deleted_at=None).select_related(
        "team", "rule", "datasource"
    )
    if not storable(team):
        return silences.none()
    silences = silences.filter(team__name=team) if team else silences
    return (silences if ended else silences.filter(ends_at__gt=timezone.now())).order_by("-id")


def get_silence(user: User, number: int) -> Silence:
    """Raises ``NotFound``."""
    return _get_one(list_silences(user, ended=True), number, "silence")


def list_events(user: User, filters: AlertFilter = AlertFilter()) -> QuerySet[Event]:
    """What rules said, the newest first, each with its messages."""
    events = Event.objects.filter(visible(user, "team", "datasource"), team__deleted_at=None).select_related("team")
    sent = Delivery.objects.select_related("receiver").order_by("pk")
    events = _filtered(events, filters, transition=filters.event).prefetch_related(Prefetch("deliveries", sent))
    return events.order_by("-id")


def _filtered(queryset: QuerySet[M], filters: AlertFilter, **also: Any) -> QuerySet[M]:
    if not filters.is_storable:
        return queryset.none()
    texts = {"team__name": filters.team, "datasource": filters.datasource, "subject": filters.subject, **also}
    texts["rule_id"] = filters.rule or ""
    return queryset.filter(**{name: value for name, value in texts.items() if value})


def _get_one(queryset: QuerySet[M], number: int, what: str) -> M:
    row = queryset.filter(pk=number).first() if 0 < number <= MAX_ID else None
    if row is None:
        raise NotFound(f"There is no {what} {number}.")
    return row
