"""Causes of what is in quarantine, each with its trend, its last record, and the spec that could not read that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from controlplane.common.errors import NotFound
from controlplane.datasources.models import Datasource
from controlplane.quarantine.models import QuarantineCause, QuarantinedRecord
from controlplane.quarantine.selectors.causes import CauseFilter, latest_records, list_causes, trends
from controlplane.tasks.models import Task
from controlplane.teams.models import User
from ingestion.specs.causes import cause_of


@dataclass(frozen=True)
class DescribedCause:
    """A cause as it is shown."""

    cause: QuarantineCause
    title: str
    trend: list[int]  # records by hour, of the last 24
    latest: QuarantinedRecord | None  # without its payload
    # Of the task that quarantined the latest: its supervisor (empty for a manual task), and the spec's version.
    supervisor_id: str
    spec_version: int | None

    @property
    def trend_label(self) -> str:
        """The trend for those who do not see it drawn."""
        return f"{sum(self.trend):,} in the last {len(self.trend)} hours, at most {max(self.trend):,} in one"


def describe_causes(user: User, causes: Sequence[QuarantineCause], now: datetime | None = None) -> list[DescribedCause]:
    """A few queries, however many they are."""
    by_hour, latest = trends(causes, now), latest_records(user, causes)
    tasks = {r.task_id for r in latest.values()}
    rows = Task.objects.filter(pk__in=tasks).values_list("pk", "supervisor_id", "spec_version")
    specs = {pk: (supervisor, version) for pk, supervisor, version in rows}
    return [_describe(c, by_hour, latest.get((c.datasource_id, c.cause)), specs) for c in causes]


def _describe(
    cause: QuarantineCause,
    by_hour: dict[tuple[int, str, str], list[int]],
    latest: QuarantinedRecord | None,
    specs: dict[str, tuple[str, int | None]],
) -> DescribedCause:
    supervisor, version = specs.get(latest.task_id, ("", None)) if latest else ("", None)
    title = ""
    if latest:  # what is hidden has no title of its own
        title = latest.error if latest.concealed_for else cause_of(latest.reason, latest.error).title
    trend = by_hour[(cause.datasource_id, cause.cause, cause.reason)]
    return DescribedCause(cause, title, trend, latest, supervisor, version)


def get_cause(user: User, datasource: Datasource, fingerprint: str) -> DescribedCause:
    """One of a datasource that the user may see. Raises ``NotFound`` when no record of it is in quarantine."""
    cause = list_causes(user, CauseFilter(datasource=datasource.name, cause=fingerprint)).first()
    if cause is None:
        raise NotFound(f"No record of cause {fingerprint!r} is in quarantine.")
    return describe_causes(user, [cause])[0]
