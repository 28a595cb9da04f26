"""How fresh a datasource is, as health."""

from __future__ import annotations

from datetime import datetime, timedelta

from controlplane.common.health import Code, Health, Kind
from controlplane.supervisors.completeness import Completeness
from frontend.templatetags.headgate import duration

UP_TO_DATE = timedelta(seconds=60)  # looks are some seconds apart, and a record takes a few to be stored


def freshness_of(completeness: Completeness, now: datetime) -> Health:
    """By the time until which it is complete, and by what holds it back. The cause may be empty."""
    if not completeness.readers:
        return Health.of(Code.NOT_TRACKED, completeness.reason)
    if completeness.complete_until is None:
        return Health.of(Code.NOT_OBSERVED, completeness.reason, label="not known yet")
    behind = now - completeness.complete_until
    if behind <= UP_TO_DATE:
        if not completeness.quarantined:
            return Health.of(Code.UP_TO_DATE, "")
        waits = "record of the last day waits" if completeness.quarantined == 1 else "records of the last day wait"
        label = f"up to date, {completeness.quarantined:,} quarantined"
        return Health.of(Code.UP_TO_DATE, f"{completeness.quarantined:,} {waits} in quarantine.", label=label)
    kind = Kind.WAITING if completeness.reason else Kind.NEEDS_ATTENTION
    return Health.of(Code.BEHIND, completeness.reason, kind=kind, label=f"behind by {duration(behind)}")
