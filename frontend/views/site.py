"""What belongs to the site and not to one of its things: the palette, the chosen team, the style guide."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from controlplane.common.errors import InvalidInput
from controlplane.segments.selectors import Totals
from frontend.counters import sum_of
from frontend.palette import hits_of
from frontend.problems import ProblemRow
from frontend.reach import TEAM_KEY, reach_of
from frontend.tables import Column, Shape
from frontend.views.common import PageRequest, page

TONES = ("ok", "work", "wait", "need", "bad", "quiet")
GUIDE = Shape(
    "guide",
    (
        Column("name", "Name", sorts="name", fixed=True),
        Column("rows", "Rows", sorts="rows", number=True, falls=True),
        Column("state", "State"),
        Column("note", "Note", shown=False),
    ),
    default="name",
    last=("name",),
)
STATES = ("SUCCESS", "RUNNING", "PENDING", "needs you", "FAILED", "idle")


@page
def palette(request: PageRequest) -> HttpResponse:
    """What there is for a text, as JSON: what the user may see, and what the user may do."""
    hits = hits_of(request.user, reach_of(request), request.GET.get("q", ""))
    return JsonResponse({"hits": [asdict(hit) for hit in hits]})


@require_POST
@page
def choose_team(request: PageRequest) -> HttpResponse:
    """Lists show one team's things, or with an empty name all that the user may see; kept in the session."""
    name = request.POST.get("team", "")
    if name and name not in reach_of(request).teams:
        raise InvalidInput(f"You are in no team {name[:100]!r}.")
    request.session[TEAM_KEY] = name
    back = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure())
    return redirect(back if safe and back.startswith("/") else "frontend:home")


@page
def styleguide(request: PageRequest) -> HttpResponse:
    """Every component in every state: for the administrators of the site."""
    if not request.user.is_superuser:
        raise PermissionDenied("This needs the administrator of the site.")
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
            ProblemRow("topic_missing", "bad", "orders", "#rows", "has no topic orders.v2 any more.", since=now),
            ProblemRow(
                "behind",
                "need",
                "clicks",
                "#rows",
                "is 2 min 10 s behind and falling back.",
                cause="8 indexers use the whole pool; 3 wait for a place.",
                since=now - timedelta(minutes=12),
                step="Scale…",
                step_url="#rows",
            ),
            ProblemRow("waits", "wait", "refunds", "#rows", "waits for a free slot of Spark."),
        ],
        "table": GUIDE.asked(request.GET),
        "now": now,
    }
    return render(request, "site/styleguide.html", context)
