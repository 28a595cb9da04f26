"""Whether a large part of what a reader reads comes into quarantine, and what is said of it then."""

from __future__ import annotations

from datetime import datetime

from controlplane.common.health import Code, Health
from controlplane.lag.quarantined_since import BadSince
from controlplane.lag.trend import QUARANTINE_OVER, LagTrend
from controlplane.supervisors.health_messages import duration_text, utc

MIN_SHARE = 0.05  # of the records of the last minutes: so large a part in quarantine is no single bad record
MIN_RECORDS = 10  # fewer of them say nothing yet


def is_quarantining(lag: LagTrend) -> bool:
    """Whether so many of the last minutes' records, and so large a part of them, came into quarantine."""
    return lag.quarantined >= max(MIN_RECORDS, MIN_SHARE * lag.ended)


def health_of_quarantining(lag: LagTrend, since: BadSince | None, now: datetime) -> Health:
    """``since``: when it began, as far as samples go back; None: there are none."""
    total = max(lag.ended, lag.quarantined)
    cause = (
        f"{lag.quarantined:,} of the last {total:,} records ({lag.quarantined / total:.0%}), within "
        f"{duration_text(QUARANTINE_OVER)}, could not be read and are in quarantine.{_lasts(since, now)}"
    )
    began = None if since is None or since.at_least else since.at
    action = "Fix the spec on the page Quarantine, then replay the records."
    return Health.of(Code.QUARANTINING, cause, action, since=began)


def _lasts(since: BadSince | None, now: datetime) -> str:
    if since is None:
        return ""
    if since.at_least:
        return f" The share has been 5% or more for at least {duration_text(now - since.at)}."
    return f" The share has been 5% or more since {utc(since.at)}."
