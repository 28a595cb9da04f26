"""A round over all rules: what is seen, what it means, and in one transaction how they stand and what is to be sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.utils import timezone

from controlplane.alerts.alert_state import AlertState, next_state
from controlplane.alerts.facts import Facts, Subject
from controlplane.alerts.models import AboutKind, Alert, Delivery, Event, Rule, Silence
from controlplane.alerts.rule_kinds import KINDS, Evaluation, Kind
from controlplane.common.changes import Change, notify_pages
from controlplane.datasources.models import Datasource
from controlplane.supervisors.models import Supervisor

LOCK = 0x414C5254
_FIELDS = ["state", "since", "bad_since", "good_since", "value", "cause", "action", "episode", "fired", "told", "mark"]
_FIELDS += ["acknowledged_at", "acknowledged_by"]
AlertKey = tuple[int, str, str]  # rule, about, subject


@dataclass
class _Round:
    """What is to be written at its end."""

    now: datetime
    silences: Sequence[Silence]
    created: list[Alert] = field(default_factory=list)
    changed: list[Alert] = field(default_factory=list)
    cleared: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    notifications: list[tuple[Event, Rule]] = field(default_factory=list)  # what is to be sent
    teams: set[int] = field(default_factory=set)  # in which something changed that a page shows

    def silence_reason(self, rule: Rule, datasource: int | None) -> str:
        """Why nothing of it is sent now; empty: it is."""
        for s in self.silences:
            if s.team_id == rule.team_id and s.rule_id in (None, rule.pk) and s.datasource_id in (None, datasource):
                return s.reason
        return ""

    def add_event(self, alert: Alert, rule: Rule, transition: str, cause: str, **more: object) -> Event:
        event = event_of(alert, rule, transition, cause, self.now)
        for name, value in more.items():
            setattr(event, name, value)
        self.events.append(event)
        self.teams.add(rule.team_id)
        return event


def event_of(alert: Alert, rule: Rule, transition: str, cause: str, now: datetime) -> Event:
    """What an alert says now, not stored yet."""
    return Event(
        team_id=rule.team_id,
        rule=rule,
        rule_name=rule.name,
        kind=rule.kind,
        about=alert.about,
        subject=alert.subject,
        datasource=alert.datasource,
        episode=alert.episode,
        transition=transition,
        at=now,
        since=alert.since,
        value=alert.value,
        cause=cause,
    )


def evaluate() -> int:
    """How many things were said. One at a time: whoever comes while another is at it does nothing."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
            if not cursor.fetchone()[0]:
                return 0
        return _evaluate_rules()


def _evaluate_rules() -> int:
    # Locked: nobody changes or deletes a rule, or says who is told, while what it says is written.
    locked = Rule.objects.select_for_update(of=("self",), no_key=True).select_related("team")
    rules = list(locked.order_by("pk").prefetch_related("receivers"))
    alerts = {_key(a): a for a in Alert.objects.select_related("fired")}
    if not rules and not alerts:
        return 0
    now = timezone.now()
    silences = list(Silence.objects.filter(begins_at__lte=now, ends_at__gt=now))
    a_round = _Round(now, silences)
    by_rule = {rule.pk: rule for rule in rules}
    rule_subjects = [(rule, subject) for rule, subjects in _subjects(rules) for subject in subjects]
    facts = Facts((KINDS[rule.kind].source, subject, rule.params) for rule, subject in rule_subjects)
    for rule, subject in rule_subjects:
        kind = KINDS[rule.kind]
        fact = facts.value(kind.source, subject, rule.params)
        verdict = kind.decide(fact, subject, rule.params, now)
        alert = alerts.pop((rule.pk, subject.about, subject.name), None) or _new_alert(rule, subject, now)
        before = _stored_values(alert)
        if kind.intervals is None:
            _update_alert(a_round, rule, subject, alert, verdict)
        else:
            _notify_intervals(a_round, rule, subject, alert, verdict, kind.intervals(fact, rule.params, alert.mark))
        if alert.pk is None:
            a_round.created.append(alert)
        elif _stored_values(alert) != before:
            a_round.changed.append(alert)
    for alert in alerts.values():
        _drop_alert(a_round, by_rule[alert.rule_id], alert)
    Rule.objects.filter(pk__in=[rule.pk for rule in rules if rule.enabled]).update(evaluated_at=now)
    return _store_round(a_round)


def _key(alert: Alert) -> AlertKey:
    return alert.rule_id, alert.about, alert.subject


def _stored_values(alert: Alert) -> tuple[object, ...]:
    """What makes it worth writing: of one that is well, its words and numbers are not."""
    shown = (alert.value, alert.cause, alert.action) if alert.state in ("firing", "unknown") else ()
    return alert.state, alert.bad_since, alert.good_since, alert.episode, alert.told, alert.mark, *shown


def _new_alert(rule: Rule, subject: Subject, now: datetime) -> Alert:
    return Alert(
        team_id=rule.team_id,
        rule=rule,
        about=subject.about,
        subject=subject.name,
        datasource=subject.datasource.name,
        state="unknown",
        since=now,
    )


def _update_alert(a_round: _Round, rule: Rule, subject: Subject, alert: Alert, verdict: Evaluation) -> None:
    previous = AlertState(alert.state, alert.since, alert.bad_since, alert.good_since) if alert.pk else None  # type: ignore[arg-type]
    holds, health = verdict.condition_holds, verdict.health
    after = next_state(
        previous, holds, a_round.now, hold=timedelta(seconds=rule.hold_s), clear=timedelta(seconds=rule.clear_s)
    )
    is_firing, was_firing = after.state == "firing", alert.state == "firing"
    if not is_firing or holds:  # until it has ended, its cause stays
        alert.cause, alert.action, alert.value = health.cause, health.action, verdict.value
    if was_firing and not is_firing:
        _end_alert(a_round, rule, alert, f"The alert has ended. {health.cause}")
    alert.state, alert.since = after.state, after.since
    alert.bad_since, alert.good_since = after.bad_since, after.good_since
    if is_firing and not was_firing:
        alert.episode, alert.told = int(a_round.now.timestamp() * 1000), False
        alert.fired = a_round.add_event(alert, rule, "fired", health.cause, action=health.action)
    if is_firing and not alert.told:
        _notify_fired(a_round, rule, subject.datasource.pk, alert)
    if is_firing != was_firing or alert.pk is None:
        a_round.teams.add(rule.team_id)


def _notify_fired(a_round: _Round, rule: Rule, datasource: int, alert: Alert) -> None:
    """At once, or when no silence holds it back any more."""
    if alert.fired is None:  # its event was old enough to be dropped
        return
    why = a_round.silence_reason(rule, datasource)
    if why:
        alert.fired.silenced = alert.fired.silenced or why
        return
    a_round.notifications.append((alert.fired, rule))
    alert.told = True


def _end_alert(a_round: _Round, rule: Rule, alert: Alert, cause: str) -> None:
    """Whoever was told that it fires is told that it is over, whatever is silent by then."""
    event = a_round.add_event(alert, rule, "ended", cause)
    if alert.told:
        a_round.notifications.append((event, rule))
    else:
        event.silenced = alert.fired.silenced if alert.fired else ""
    alert.fired, alert.told = None, False
    alert.acknowledged_at, alert.acknowledged_by = None, ""


def _notify_intervals(
    a_round: _Round,
    rule: Rule,
    subject: Subject,
    alert: Alert,
    verdict: Evaluation,
    intervals: list[tuple[datetime, datetime]],
) -> None:
    state = "unknown" if verdict.condition_holds is None else "ok"
    if alert.state != state:
        alert.state, alert.since = state, a_round.now
    alert.cause, alert.action = verdict.health.cause, verdict.health.action
    is_first = alert.mark is None
    for start, end in intervals:
        alert.mark = end
        if is_first:
            return  # what was complete before the rule saw it is not told
        alert.episode = int(end.timestamp() * 1000)
        cause = f"{subject.name} is complete from {start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC."
        why = a_round.silence_reason(rule, subject.datasource.pk)
        event = a_round.add_event(alert, rule, "complete", cause, interval_start=start, interval_end=end, silenced=why)
        if not why:
            a_round.notifications.append((event, rule))


def _drop_alert(a_round: _Round, rule: Rule, alert: Alert) -> None:
    """Its subject is there no more, or is the rule's no more."""
    if alert.state == "firing":
        why = "is turned off" if not rule.enabled else f"no longer covers {alert.subject}, or {alert.subject} is gone"
        _end_alert(a_round, rule, alert, f"The rule {why}.")
    a_round.cleared.append(alert.pk)
    a_round.teams.add(rule.team_id)


def _subjects(rules: Sequence[Rule]) -> Iterator[tuple[Rule, list[Subject]]]:
    """Of each rule that is on and of a kind that is known.

    A datasource that no supervisor fills is looked at by rules that name it alone.
    """
    active = [rule for rule in rules if rule.enabled and rule.kind in KINDS and rule.team.deleted_at is None]
    datasources = _datasources_by_team(active)
    ids = [d.pk for of_team in datasources.values() for d in of_team]
    supervisors: defaultdict[int, list[Supervisor]] = defaultdict(list)
    for s in (
        Supervisor.objects.shown_to(None).filter(datasource__in=ids, terminated_at=None).order_by("id").with_current()
    ):
        supervisors[s.datasource_id].append(s)
    for rule in active:
        covered = [d for d in datasources.get(rule.team_id, ()) if rule.datasource_id in (None, d.pk)]
        yield rule, list(_subjects_of(rule, KINDS[rule.kind], covered, supervisors))


def _datasources_by_team(rules: Sequence[Rule]) -> dict[int, list[Datasource]]:
    by_team: defaultdict[int, list[Datasource]] = defaultdict(list)
    for d in Datasource.objects.present().filter(team__in={rule.team_id for rule in rules}).order_by("pk"):
        by_team[d.team_id].append(d)
    return by_team


def _subjects_of(
    rule: Rule, kind: Kind, datasources: Sequence[Datasource], supervisors: Mapping[int, list[Supervisor]]
) -> Iterator[Subject]:
    for d in datasources:
        own_supervisors = supervisors.get(d.pk, [])
        if kind.about == AboutKind.SUPERVISOR:
            yield from (Subject(kind.about, s.pk, d, s) for s in own_supervisors)
        elif own_supervisors or rule.datasource_id is not None:
            yield Subject(kind.about, d.name, d)


def _store_round(a_round: _Round) -> int:
    Event.objects.bulk_create(a_round.events)
    create_deliveries(a_round.notifications, a_round.now)
    Alert.objects.bulk_create(a_round.created, batch_size=1000)
    Alert.objects.bulk_update(a_round.changed, _FIELDS, batch_size=500)
    if a_round.cleared:
        Alert.objects.filter(pk__in=a_round.cleared).delete()
    for team in a_round.teams:
        notify_pages(Change(team=team, urgent=True))
    return len(a_round.events)


def create_deliveries(events: Sequence[tuple[Event, Rule]], now: datetime, except_for: Collection[int] = ()) -> None:
    """A message for each receiver of the rule but these, in the caller's transaction; one that is there stays."""
    Delivery.objects.bulk_create(
        [
            Delivery(event=event, receiver=receiver, created_at=now, next_at=now)
            for event, rule in events
            for receiver in rule.receivers.all()
            if receiver.pk not in except_for
        ],
        ignore_conflicts=True,
    )
