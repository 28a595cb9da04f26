"""How fresh a datasource is, in a word with a mark."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.supervisors.completeness import Completeness
from frontend.templatetags.headgate import duration

UP_TO_DATE = timedelta(seconds=60)  # looks are some seconds apart, and a record takes a few to be stored


@dataclass(frozen=True)
class Freshness:
    """A word of a state, with its reason."""

    mark: str  # good, wait, need or quiet
    text: str
    explanation: str = ""  # a sentence; empty when there is nothing to say


def freshness_of(completeness: Completeness, now: datetime) -> Freshness:
    """By the time until which it is complete, and by what holds it back."""
    if not completeness.readers:
        return Freshness("quiet", "not tracked", completeness.reason)
    if completeness.complete_until is None:
        return Freshness("wait", "not known yet", completeness.reason)
    behind = now - completeness.complete_until
    if behind <= UP_TO_DATE:
        waits = "record of the last day waits" if completeness.quarantined == 1 else "records of the last day wait"
        why = f"{completeness.quarantined:,} {waits} in quarantine." if completeness.quarantined else ""
        return Freshness("good", "up to date", why)
    words = f"behind by {duration(behind)}"
    return Freshness("wait" if completeness.reason else "need", words, completeness.reason)
