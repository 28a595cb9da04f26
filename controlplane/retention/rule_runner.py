"""Rules in force, set by people and carried out by a round every minute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.common.changes import Change, notify_pages
from controlplane.common.client_address import current_address
from controlplane.common.database import try_advisory_lock
from controlplane.datasources.models import Datasource
from controlplane.retention.models import RuleChange, RuleSet
from controlplane.retention.retention_preview import INTERVALS_SHOWN, AffectedInterval
from controlplane.retention.rules import Rule, describe_rule, dropping_rule, rules_json, stored_rules
from controlplane.segments import marking
from controlplane.segments.marking import Amount, SegmentSelection
from controlplane.segments.models import Interval
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require, require_site_admin

SITE = "_default"  # Druid's name of the rules that are asked last
_LOCK = 0x52554C45
_LONGEST_COMMENT = 500
_UNSET: list[dict[str, Any]] = [{"type": "loadForever"}]


@dataclass(frozen=True)
class RulePreview:
    """What rules would take out of use now."""

    amount: Amount = field(default_factory=Amount)
    intervals: int = 0
    # The first time and the last of their intervals.
    oldest: datetime | None = None
    newest: datetime | None = None
    places: tuple[AffectedInterval, ...] = ()  # the earliest of them, some, each with the rule that says so


def rules_of(datasource: Datasource | None) -> list[Rule]:
    """What is set of a datasource, or of the site (None), whose rules keep everything unless somebody set others."""
    stored = RuleSet.objects.filter(datasource=datasource).values_list("rules", flat=True).first()
    if stored is None:
        return stored_rules(_UNSET) if datasource is None else []
    return stored_rules(stored)


def rules_in_force(datasource: Datasource) -> list[Rule]:
    """Its own rules, then the site's."""
    return [*rules_of(datasource), *rules_of(None)]


def list_changes(datasource: Datasource | None) -> QuerySet[RuleChange]:
    """What was set, the newest first."""
    return RuleChange.objects.filter(datasource=datasource).order_by("-id")


@transaction.atomic
def set_rules(*, user: User, datasource: Datasource | None, rules: Sequence[Rule], comment: str = "") -> None:
    """Put these in place of what is set. Needs the role admin; the site's (None), an administrator of the site."""
    if datasource is None:
        require_site_admin(user)
    else:
        require(user, Action.ADMINISTER, datasource.team)
    document, now = rules_json(rules), timezone.now()
    before = rules_json(rules_of(datasource))
    RuleSet.objects.update_or_create(datasource=datasource, defaults={"rules": document, "updated_at": now})
    RuleChange.objects.create(
        datasource=datasource,
        rules=document,
        author=user.get_username(),
        comment=comment[:_LONGEST_COMMENT],
        address=current_address() or "",
        created_at=now,
    )
    audit.record(
        user=user,
        team=None if datasource is None else datasource.team,
        target="datasource",
        target_id=SITE if datasource is None else datasource.name,
        action="set_rules",
        rules=document,
        before=before,
    )


def preview(datasource: Datasource, rules: Sequence[Rule], now: datetime | None = None) -> RulePreview:
    """What these rules, and after them the site's, would take out of use now."""
    return _summarize(_dropped_intervals(datasource, [*rules, *rules_of(None)], now or timezone.now()))


def preview_site(user: User, rules: Sequence[Rule]) -> list[tuple[Datasource, RulePreview]]:
    """What these rules, in place of the site's, would take out of use now, by datasource; those that lose nothing left
    out. Needs an administrator of the site.
    """
    require_site_admin(user)
    now, previews = timezone.now(), []
    for datasource in Datasource.objects.order_by("name"):
        rule_preview = _summarize(_dropped_intervals(datasource, [*rules_of(datasource), *rules], now))
        if rule_preview.intervals:
            previews.append((datasource, rule_preview))
    return previews


def _summarize(dropped: Iterator[tuple[Interval, Rule]]) -> RulePreview:
    amount, count, places, newest = Amount(), 0, [], None
    for interval, rule in dropped:
        contents = Amount(interval.segments, interval.rows, interval.size_bytes)
        amount, count = amount + contents, count + 1
        newest = interval.end if newest is None else max(newest, interval.end)
        if count <= INTERVALS_SHOWN:
            places.append(AffectedInterval(interval.start, interval.end, contents, describe_rule(rule)))
    return RulePreview(amount, count, places[0].start, newest, tuple(places)) if places else RulePreview()


def _dropped_intervals(datasource: Datasource, rules: Sequence[Rule], now: datetime) -> Iterator[tuple[Interval, Rule]]:
    if all(rule.loads for rule in rules):
        return
    for interval in Interval.objects.filter(datasource=datasource, segments__gt=0).order_by("start", "end").iterator():
        rule = dropping_rule(rules, interval.start, interval.end, now)
        if rule is not None:
            yield interval, rule


def run() -> int:
    """Take out of use what the rules in force say; how many segments. One process at a time does."""
    with try_advisory_lock(_LOCK) as won:
        if not won:
            return 0
        site_drops = not all(rule.loads for rule in rules_of(None))
        datasources = Datasource.objects.select_related("team")
        affected = datasources if site_drops else datasources.filter(rule_set__isnull=False)
        return sum(_apply_rules(datasource) for datasource in affected)


def _apply_rules(datasource: Datasource) -> int:
    by_rule: dict[str, list[tuple[datetime, datetime]]] = {}
    for interval, rule in _dropped_intervals(datasource, rules_in_force(datasource), timezone.now()):
        by_rule.setdefault(describe_rule(rule), []).append((interval.start, interval.end))
    removed = Amount()
    for rule_text, places in by_rule.items():
        chosen = SegmentSelection(intervals=tuple(places))
        removed += marking.mark_unused(datasource, chosen, by="a rule", what=rule_text)
    if removed.segments:
        notify_pages(Change(team=datasource.team_id, datasource=datasource.name))
    return removed.segments
