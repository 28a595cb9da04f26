"""Writes of rules and silences. Admins write rules; operators silence and acknowledge."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from controlplane.alerts.evaluating import create_deliveries, event_of
from controlplane.alerts.models import Alert, Event, Receiver, Rule, Silence
from controlplane.alerts.rule_kinds import KINDS
from controlplane.alerts.validation import check_name, check_new, invalid_input, name_faults, record
from controlplane.common.errors import Conflict, FieldError
from controlplane.common.text import storable
from controlplane.datasources.models import Datasource
from controlplane.teams import audit
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, require, team_for_new
from controlplane.teams.services import lock_team
from ingestion.specs.limits import in_one_line

MAX_RULES, MAX_SILENCES = 500, 500  # of a team
LONGEST_HOLD_S = 86_400
LONGEST_SILENCE = timedelta(days=365)
RETENTION = timedelta(days=90)


def create_rule(
    *,
    user: User,
    team_name: str | None = None,
    name: str,
    kind: str,
    datasource: str | None = None,
    params: Any = None,
    receivers: Sequence[int] = (),
    hold_s: int | None = None,
    clear_s: int | None = None,
    enabled: bool = True,
) -> Rule:
    """A rule of the datasource's team, else of the named one, else of the user's only one. Needs the role admin.

    Raises ``InvalidInput`` with every fault, ``NotAllowed``, ``Conflict`` (the name is taken).
    """
    if datasource and not team_name and storable(datasource):
        team_name = (
            Datasource.objects.visible_to(user).filter(name=datasource).values_list("team__name", flat=True).first()
        )
    team = team_for_new(user, team_name)
    if kind not in KINDS:
        raise invalid_input("rule", [FieldError("/kind", f"must be one of {', '.join(KINDS)}", "kind")])
    rule = Rule(team=team, kind=kind, created_by=user)
    _write_rule(rule, name, datasource, params or {}, hold_s, clear_s, enabled)
    with transaction.atomic():
        lock_team(team)
        check_new(Rule, rule, MAX_RULES, "rule of alerts")
        rule.save()
        rule.receivers.set(_receivers_of(team, receivers))
        record(user, rule, "create_rule", kind=kind)
    return rule


def change_rule(
    *,
    user: User,
    rule: Rule,
    name: str,
    datasource: str | None = None,
    params: Any = None,
    receivers: Sequence[int] = (),
    hold_s: int | None = None,
    clear_s: int | None = None,
    enabled: bool = True,
) -> Rule:
    """All of it anew, but for its kind. Needs the role admin. Raises as ``create_rule`` does."""
    require(user, Action.ADMINISTER, rule.team)
    with transaction.atomic():
        lock_team(rule.team)
        locked = Rule.objects.select_for_update(of=("self",)).select_related("team").get(pk=rule.pk)
        before = _audit_fields(locked)
        _write_rule(locked, name, datasource, params or {}, hold_s, clear_s, enabled)
        check_name(Rule, locked, "rule of alerts")
        locked.save()
        notified = set(locked.receivers.values_list("pk", flat=True))
        locked.receivers.set(_receivers_of(locked.team, receivers))
        if locked.enabled:
            _notify_new_receivers(locked, notified)
        record(user, locked, "change_rule", before=before, after=_audit_fields(locked))
    return locked


def _notify_new_receivers(rule: Rule, notified: set[int]) -> None:
    """Whoever is to be told from now on hears of what fires already, as the others did."""
    now = timezone.now()
    firing = Alert.objects.filter(rule=rule, state=Alert.State.FIRING, told=True, fired__isnull=False)
    fired = [(alert.fired, rule) for alert in firing.select_related("fired") if alert.fired is not None]
    create_deliveries(fired, now, except_for=notified)


def _audit_fields(rule: Rule) -> dict[str, Any]:
    """What the audit trail tells of a rule."""
    return {
        "name": rule.name,
        "datasource": rule.datasource.name if rule.datasource else None,
        "params": rule.params,
        "hold_s": rule.hold_s,
        "clear_s": rule.clear_s,
        "enabled": rule.enabled,
        "receivers": list(rule.receivers.order_by("name").values_list("name", flat=True)),
    }


@transaction.atomic
def delete_rule(*, user: User, rule: Rule) -> None:
    """Whoever was told that it fires is told that it is over. Needs the role admin; its history stays."""
    require(user, Action.ADMINISTER, rule.team)
    Rule.objects.select_for_update(of=("self",)).get(pk=rule.pk)  # no round writes of it meanwhile
    now = timezone.now()
    for alert in Alert.objects.filter(rule=rule, state=Alert.State.FIRING, told=True):
        event = event_of(alert, rule, Event.Transition.ENDED, f"The rule was deleted by {user.get_username()}.", now)
        event.save()
        create_deliveries([(event, rule)], now)
    record(user, rule, "delete_rule")
    rule.delete()


def _write_rule(
    rule: Rule,
    name: str,
    datasource: str | None,
    params: Any,
    hold_s: int | None,
    clear_s: int | None,
    enabled: bool,
) -> None:
    kind = KINDS[rule.kind]
    values, faults = kind.checked(params)
    faults += name_faults(name)
    hold_s, clear_s = kind.hold_s if hold_s is None else hold_s, kind.clear_s if clear_s is None else clear_s
    for field, seconds in (("hold_s", hold_s), ("clear_s", clear_s)):
        if not 0 <= seconds <= LONGEST_HOLD_S:
            faults.append(FieldError(f"/{field}", f"must be from 0 to {LONGEST_HOLD_S:,}", field))
    chosen = None
    if datasource:
        datasources = Datasource.objects.filter(team=rule.team)
        chosen = datasources.filter(name=datasource).first() if storable(datasource) else None
        if chosen is None:
            text = f"is not a datasource of team {rule.team.name}"
            faults.append(FieldError("/datasource", text, "datasource"))
    if faults:
        raise invalid_input("rule", faults)
    rule.name, rule.datasource, rule.params, rule.enabled = name, chosen, values, enabled
    rule.hold_s, rule.clear_s = hold_s, clear_s


def _receivers_of(team: Team, numbers: Sequence[int]) -> list[Receiver]:
    by_id = {r.pk: r for r in Receiver.objects.filter(team=team, pk__in=numbers)}
    if len(by_id) < len(set(numbers)):
        message = f"must be ids of receivers of team {team.name}"
        raise invalid_input("rule", [FieldError("/receivers", message, "receivers")])
    return list(by_id.values())


def silence(
    *,
    user: User,
    team: Team,
    reason: str,
    ends_at: datetime,
    rule: Rule | None = None,
    datasource: Datasource | None = None,
) -> Silence:
    """Hold back what begins to fire until then: of a rule, of a datasource, of both, or of the team.

    Needs the role operator. The caller has got rule and datasource from selectors. Raises ``InvalidInput``.
    """
    require(user, Action.OPERATE, team)
    now, faults = timezone.now(), []
    if not reason.strip() or len(reason) > 500 or not storable(reason) or not in_one_line(reason):
        faults.append(FieldError("/reason", "must give a reason, in one line of at most 500 characters", "reason"))
    if not now < ends_at <= now + LONGEST_SILENCE:
        faults.append(FieldError("/ends_at", "must be later than now, and within a year", "ends_at"))
    if (rule and rule.team_id != team.pk) or (datasource and datasource.team_id != team.pk):
        faults.append(FieldError("", f"rule and datasource must belong to team {team.name}"))
    if faults:
        raise invalid_input("silence", faults)
    with transaction.atomic():
        lock_team(team)
        if Silence.objects.filter(team=team, ends_at__gt=now).count() >= MAX_SILENCES:
            raise Conflict(f"Team {team.name} has {MAX_SILENCES} silences already. End some.")
        new_silence = Silence.objects.create(
            team=team,
            rule=rule,
            datasource=datasource,
            reason=reason,
            begins_at=now,
            ends_at=ends_at,
            created_by=user.get_username(),
        )
        target = rule.name if rule else datasource.name if datasource else team.name
        until = ends_at.isoformat()
        audit.record(
            user=user, team=team, target="alert", target_id=target, action="silence", reason=reason, until=until
        )
    return new_silence


@transaction.atomic
def end_silence(*, user: User, silence: Silence) -> None:
    """End it before its time: what still fires is sent then. Needs the role operator. Raises ``Conflict``."""
    require(user, Action.OPERATE, silence.team)
    now, who = timezone.now(), user.get_username()
    if not Silence.objects.filter(pk=silence.pk, ends_at__gt=now).update(ends_at=now, ended_by=who):
        raise Conflict("This silence has ended already.")
    audit.record(user=user, team=silence.team, target="alert", target_id=str(silence.pk), action="end_silence")


@transaction.atomic
def acknowledge(*, user: User, alert: Alert) -> Alert:
    """Say that somebody sees to it. Needs the role operator. Raises ``Conflict`` when it does not fire any more."""
    require(user, Action.OPERATE, alert.team)
    now, who = timezone.now(), user.get_username()
    mine = Alert.objects.filter(pk=alert.pk, state=Alert.State.FIRING, episode=alert.episode, acknowledged_at=None)
    if not mine.update(acknowledged_at=now, acknowledged_by=who):
        raise Conflict("The alert no longer fires, or is already acknowledged.")
    alert.acknowledged_at, alert.acknowledged_by = now, who
    audit.record(user=user, team=alert.team, target="alert", target_id=alert.rule.name, action="acknowledge")
    return alert


def drop_old() -> int:
    """History, and silences, of long ago; how many rows."""
    before = timezone.now() - RETENTION
    return Event.objects.filter(at__lt=before).delete()[0] + Silence.objects.filter(ends_at__lt=before).delete()[0]
