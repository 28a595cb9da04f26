"""The page that people keep open: what needs a person now, and how all stands."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode

from controlplane.alerts.selectors import count_firing
from controlplane.common.health import Code, Kind
from controlplane.lag.last_day import DayPoint
from controlplane.loading.demo import TOPIC, demo_topic
from controlplane.sources.models import SourceEvent
from controlplane.supervisors.overview import Overview, TeamShare, overview
from controlplane.supervisors.overview_rows import SupervisorRow, overview_rows
from controlplane.supervisors.problems import Problem
from frontend.live.shared_parts import shared
from frontend.problems import ProblemRow
from frontend.team_scope import reach_of
from frontend.views.common import PageRequest, page

SUPERVISORS_SHOWN = 50
PROBLEMS_SHOWN = 50
DATASOURCES_SHOWN = 12
TEAMS_SHOWN = 50


@page
@shared
def index(request: PageRequest) -> HttpResponse:
    """Problems first; first steps where there is nothing yet."""
    team = reach_of(request).team
    shown = overview(request.user, team)
    if shown.is_empty:
        return render(request, "home/first_steps.html", _first_steps(request))
    rows = overview_rows(shown, SUPERVISORS_SHOWN)
    operated = _operated_datasources(request, shown)
    context = {
        "firing": count_firing(request.user, team),
        "overview": shown,
        "team": team,
        "problems": [problem_row(p, operated) for p in shown.problems[:PROBLEMS_SHOWN]],
        "more_problems": max(0, len(shown.problems) - PROBLEMS_SHOWN),
        "rows": rows,
        "more": len(shown.supervisors) - len(rows),
        "kinds": _kinds(shown.kinds),
        "teams": _teams(shown)[:TEAMS_SHOWN],
        "more_teams": max(0, len(shown.teams) - TEAMS_SHOWN),
        "datasources": shown.freshness[:DATASOURCES_SHOWN],
        "more_datasources": max(0, len(shown.freshness) - DATASOURCES_SHOWN),
        "rest": reverse("api:overview") + (f"?{urlencode({'team': team})}" if team else ""),
        "charts": _charts(shown.day),
        "most_behind": _most_behind(rows),
    }
    return render(request, "home/index.html", context)


def _first_steps(request: PageRequest) -> dict[str, Any]:
    """Kafka is asked for the demo's topic only for whom the page offers it."""
    if not reach_of(request).may_submit_supervisors:
        return {}
    return {"demo": demo_topic().value, "topic": TOPIC}


@dataclass(frozen=True)
class DayChart:
    """A figure over the last day: values evenly spaced, None where nothing is known."""

    name: str
    values: list[float | None]
    maximum: float
    edges: list[datetime]  # times along it, from its beginning to its end
    each: str  # what one value is

    @property
    def top(self) -> str:
        return f"{self.maximum:,.1f}" if 0 < self.maximum < 10 else f"{self.maximum:,.0f}"

    @property
    def summary(self) -> str:
        return f"last day, {self.each}; peak {self.top}"

    @property
    def label(self) -> str:
        return f"{self.name}, {self.summary}"


def _charts(day: Sequence[DayPoint]) -> list[DayChart]:
    """How many records were stored a second, and how far behind all were; none before there is something to draw."""
    if len(day) < 2:
        return []
    first, last = day[0].at, day[-1].at
    spacing = min(b.at - a.at for a, b in pairwise(day))
    begin = min(first, last - timedelta(days=1) + spacing)
    slots = round((last - begin) / spacing) + 1
    rates: list[float | None] = [None] * slots
    lags: list[float | None] = [None] * slots
    for point in day:
        slot = round((point.at - begin) / spacing)
        rates[slot], lags[slot] = point.records_per_s, float(point.lag)
    edges = [begin + n * (last - begin) / 4 for n in range(5)]
    minutes = round(spacing / timedelta(minutes=1))
    series = (
        ("Records stored/s", rates, f"{minutes}-minute averages"),
        ("Lag", lags, f"{minutes}-minute maximums"),
    )
    return [
        DayChart(name, values, max(v for v in values if v is not None), edges, each) for name, values, each in series
    ]


@dataclass(frozen=True)
class TeamLine:
    """One team among several."""

    share: TeamShare
    charts: list[DayChart]
    kinds: list[tuple[str, str, int]]


def _teams(shown: Overview) -> list[TeamLine]:
    """None where all is one team's: the page tells of it alone then."""
    if len(shown.teams) < 2:
        return []
    return [TeamLine(share, _charts(share.day), _kinds(share.kinds)) for share in shown.teams]


def _operated_datasources(request: PageRequest, shown: Overview) -> set[str]:
    """The datasources of teams that the user may operate."""
    reach = reach_of(request)
    return {fresh.datasource for fresh in shown.freshness if reach.may_operate(fresh.team)}


def problem_row(problem: Problem, operated: Collection[str]) -> ProblemRow:
    """A problem with its next step. ``operated``: the datasources whose alarms the reader may acknowledge."""
    may_acknowledge = problem.event is not None and problem.name in operated
    url, (step, step_url) = _subject_url(problem), _step(problem, problem.name in operated)
    return ProblemRow(
        problem.health,
        subject=problem.name or "Capacity",
        url=url,
        step=step,
        step_url=step_url,
        acknowledge_url=reverse("frontend:event-acknowledge", args=[problem.name, problem.event])
        if may_acknowledge
        else "",
    )


def _subject_url(problem: Problem) -> str:
    if problem.subject == "pool":
        return reverse("frontend:capacity")
    return reverse(f"frontend:{problem.subject}", args=[problem.name])


_STEPS_OF_SUPERVISORS: dict[str, tuple[str, str]] = {
    Code.GROUP_DRIFT: ("View share group", "share-group"),
    Code.TOPIC_MISSING: ("View spec", "supervisor-spec"),
    Code.BEHIND: ("View lag", "supervisor-lag"),
    Code.HOLDING: ("View lag", "supervisor-lag"),
    Code.NOTHING_STORED: ("View spec", "supervisor-spec"),
}


def _step(problem: Problem, may_operate: bool) -> tuple[str, str]:
    """What to do next: a link's label and address. ``may_operate``: the datasource that it is about."""
    if problem.subject == "supervisor":
        label, view = _STEPS_OF_SUPERVISORS.get(problem.health.code, ("View supervisor", "supervisor"))
        return label, reverse(f"frontend:{view}", args=[problem.name])
    if problem.subject == "pool":
        return "View capacity", _subject_url(problem)
    if problem.health.code == Code.QUARANTINED:
        query = f"?{urlencode({'cause': problem.fingerprint})}" if problem.fingerprint else ""
        if query and may_operate:
            return "Fix spec", reverse("frontend:quarantine-fix", args=[problem.name]) + query
        return "View records", reverse("frontend:datasource-quarantine", args=[problem.name]) + query
    if problem.task and problem.health.code in _OF_TASKS:
        return "View task", reverse("frontend:task", args=[problem.task])
    return "View event", reverse("frontend:datasource-events", args=[problem.name])


_OF_TASKS = (SourceEvent.Kind.TASK_FAILED, SourceEvent.Kind.FAILING, SourceEvent.Kind.REPAIRED)


def _kinds(kinds: Mapping[Kind, int]) -> list[tuple[str, str, int]]:
    """(kind, as it is written, how many) of those that there are."""
    return [(kind.value, kind.value.replace("_", " "), n) for kind, n in kinds.items() if n]


def _most_behind(rows: list[SupervisorRow]) -> SupervisorRow | None:
    return max((r for r in rows if r.health.behind), key=lambda r: r.health.behind or 0, default=None)
