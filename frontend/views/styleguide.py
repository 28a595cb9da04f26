"""The style guide: every part of the pages in every state, with data that is made up. For the site's administrators."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import sin
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from controlplane.common.errors import InvalidInput
from controlplane.common.health import Code, Health, Kind
from controlplane.common.spec_text import spec_diff
from controlplane.publishing.selectors.totals import Totals
from controlplane.tasks.phases import Phase
from controlplane.teams.permissions import require_site_admin
from frontend.chart_windows import WINDOWS
from frontend.counters import sum_of
from frontend.phase_bars import bars_of
from frontend.problems import ProblemRow
from frontend.tables import Column, Shape
from frontend.views.common import PageRequest, page

TONES = ("ok", "work", "wait", "need", "bad", "quiet")
GUIDE = Shape(
    "guide",
    (
        Column("name", "Name", sorts="name", fixed=True),
        Column("rows", "Rows", sorts="rows", number=True, descending_first=True),
        Column("state", "State"),
        Column("note", "Note", is_shown=False),
    ),
    default="name",
    tie_breakers=("name",),
)
STATES = ("SUCCESS", "RUNNING", "PENDING", "needs attention", "FAILED", "idle")


@page
def styleguide(request: PageRequest) -> HttpResponse:
    """Every component in every state: for the administrators of the site."""
    require_site_admin(request.user)
    now = timezone.now()
    totals = Totals(polled=1548, published=1500, thrown_away=42, unparseable=1, duplicates=5)
    context = {
        "tones": TONES,
        "states": STATES,
        "totals": totals,
        "sum": sum_of(totals, {}),
        "empty_sum": sum_of(Totals(), {}),
        "empty_totals": Totals(),
        "rising": [float(n * n % 37 + n) for n in range(60)],
        "broken": [5.0, 6.0, None, None, 7.0, 3.0, 0.0, 1.0],
        "flat": [0.0] * 10,
        "task_id": "index_kafka_share_group_orders_2026-06-01T12-00-00_abcdefgh",
        "long_name": "a-name-that-has-two-hundred-characters-" * 4,
        "problem": InvalidInput("The spec can't be read."),
        "rows": [
            ProblemRow(Health.of(Code.TOPIC_MISSING, "Topic 'orders.v2' is missing.", since=now), "orders", "#rows"),
            ProblemRow(
                Health.of(
                    Code.BEHIND,
                    "90,000 offsets behind for 12 min, and growing.",
                    "Scale it up, or check its tasks.",
                    kind=Kind.NEEDS_ATTENTION,
                    since=now - timedelta(minutes=12),
                ),
                "clicks",
                "#rows",
                step="Scale…",
                step_url="#rows",
            ),
            ProblemRow(Health.of(Code.WAITING_FOR_SLOT, "It waits for a free slot of Spark."), "refunds", "#rows"),
        ],
        "table": GUIDE.table_for(request.GET),
        "now": now,
        "crumbs": [("A list", "#tables")],
        "phases": bars_of(_phases(now), now),
        "change": {"diff": spec_diff({"taskCount": 1, "topic": "orders"}, {"taskCount": 4, "topic": "orders"})},
        **_chart_context(),
    }
    return render(request, "site/styleguide.html", context)


def _phases(now: datetime) -> list[Phase]:
    begins = [now - timedelta(minutes=n) for n in (12, 11, 8)]
    return [
        Phase("waiting", "Until a slot was free.", begins[0], begins[1]),
        Phase("starting", "Until the first indexer reads.", begins[1], begins[2]),
        Phase("publishing", "Reading and publishing.", begins[2], None),
    ]


def _chart_context() -> dict[str, Any]:
    """What the timeline and the chart of lag are given by the pages that they are made for."""
    return {
        "named": "orders",
        "timeline_url": reverse("frontend:styleguide-timeline"),
        "segments_url": "",
        "table_url": "#tables",
        "lag_url": reverse("frontend:styleguide-lag"),
        "tables_url": "#tables",
        "windows": WINDOWS[:1],
        "partition_choices": range(2),
    }


@page
def timeline(request: PageRequest) -> HttpResponse:
    """Four weeks by day: complete, with a gap, the last one still filled and one being compacted."""
    require_site_admin(request.user)
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    days = [today - timedelta(days=n) for n in range(27, -1, -1) if n not in (10, 11)]
    gap = [_ms(today - timedelta(days=11)), _ms(today - timedelta(days=9))]
    bars = [_bar(n, day, today) for n, day in enumerate(days)]
    rows = sum(bar[2] for bar in bars)
    return JsonResponse({"bars": bars, "rows": rows, "merged": False, "gaps": [gap], "layers": {}})


def _bar(number: int, day: datetime, today: datetime) -> list[Any]:
    """Its edges, rows, segments, bytes, intervals, state, and whether it is being compacted."""
    rows = 40_000 + number * 7_919 % 23_000
    state = "filling" if day == today else "complete"
    edges = [_ms(day), _ms(day + timedelta(days=1))]
    return [*edges, rows, 1 + number % 4, rows * 90, 1, state, (today - day).days == 1]


@page
def lag(request: PageRequest) -> HttpResponse:
    """An hour of lag and rates, with a mark of each kind."""
    require_site_admin(request.user)
    now = timezone.now()
    start, step = now - timedelta(hours=1), timedelta(seconds=30)
    points = [[_ms(start + n * step), *_sample(n)] for n in range(121)]
    kinds = ("spec", "scale", "restart", "failure")
    marks = [[_ms(start + timedelta(minutes=12 * n + 6)), kind] for n, kind in enumerate(kinds)]
    edges = {"start": _ms(start), "end": _ms(now)}
    return JsonResponse({**edges, "resolution": 30_000, "points": points, "marks": marks})


def _sample(number: int) -> list[float]:
    """Lag, in flight, rows a second, redelivered a second."""
    wave = sin(number / 9)
    return [round(4_000 + 3_500 * wave), 200, round(900 + 300 * sin(number / 5)), 20 if number % 40 == 0 else 0]


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)
