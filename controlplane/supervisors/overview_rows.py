"""A dense row for each supervisor: how it stands, its last hour, and who changed its spec last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from controlplane.common.health import WORST_FIRST, Health
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.overview import Overview
from controlplane.supervisors.trends import Trend, trends


@dataclass(frozen=True)
class SupervisorRow:
    """One of the table."""

    supervisor: Supervisor
    health: Health
    trend: Trend | None  # of the last hour; None: it has read nothing
    changed_by: str
    changed_at: datetime | None

    @property
    def reads(self) -> str:
        """The topic and how it is read."""
        io_config = self.supervisor.io_config
        return f"{io_config.reads} · {io_config.traits.label}"


def overview_rows(overview: Overview, most: int) -> list[SupervisorRow]:
    """The worst first, no more than so many."""
    health_by_id = overview.health_by_id
    chosen = sorted(overview.supervisors, key=lambda s: (WORST_FIRST.index(health_by_id[s.pk].kind), s.pk))[:most]
    trend_by_id, changes = trends(chosen), _last_changes(chosen)
    return [SupervisorRow(s, health_by_id[s.pk], trend_by_id.get(s.pk), *changes.get(s.pk, ("", None))) for s in chosen]


def _last_changes(supervisors: Sequence[Supervisor]) -> dict[str, tuple[str, datetime]]:
    current = SpecVersion.objects.filter(supervisor__in=supervisors, version=F("supervisor__version"))
    return {
        pk: (by or "", at) for pk, by, at in current.values_list("supervisor", "created_by__username", "created_at")
    }
