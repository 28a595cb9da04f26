"""How fresh a datasource is called, by what is known of its readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.sources.models import Source
from controlplane.supervisors.completeness import Completeness, Reader
from controlplane.supervisors.models import Supervisor
from frontend.freshness import freshness_of
from frontend.templatetags.health import health_class

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def found(behind_s: float | None, *, looked_s: float = 5, suspended: bool = False) -> Completeness:
    """Of one reader, whose topic was looked at so many seconds ago, as the clock stands."""
    until = None if behind_s is None else NOW - timedelta(seconds=behind_s)
    looked = datetime.now(UTC) - timedelta(seconds=looked_s)
    source = Source(complete_until=until, looked_at=looked)
    return Completeness(until, [Reader(Supervisor(pk="s", suspended=suspended), source)], NOW)


def found_by(reader: Reader) -> Completeness:
    return Completeness(None, [reader], None)


@pytest.mark.parametrize(
    ("of", "mark", "words", "why"),
    [
        (lambda: Completeness(None, [], None), "quiet", "not tracked", "No supervisor"),
        (lambda: found(10), "good", "up to date", ""),
        (lambda: found(60), "good", "up to date", ""),
        (
            lambda: replace(found(10), quarantined=1200),
            "good",
            "up to date, 1,200 quarantined",
            "1,200 records of the last day wait in quarantine.",
        ),
        (lambda: replace(found(3600), quarantined=1200), "need", "behind by 1 h", ""),
        (lambda: found(61), "need", "behind by 1 min 1 s", ""),
        (lambda: found(90_061), "need", "behind by 1 d 1 h", ""),
        (lambda: found(3600, suspended=True), "wait", "behind by 1 h", "s: It is suspended"),
        (lambda: found(3600, looked_s=61), "wait", "behind by 1 h", "s: Headgate has not checked its topic"),
        (lambda: found(None), "wait", "not known yet", "s: It has not caught up"),
        (lambda: found_by(Reader(Supervisor(pk="s"), None)), "wait", "not known yet", "s: It has not read any record"),
    ],
)
def test_freshness_is_a_word_with_its_reason(of: Callable[[], Completeness], mark: str, words: str, why: str) -> None:
    fresh = freshness_of(of(), NOW)  # looked at now: what is looked at by the clock grows old
    assert (health_class(fresh), fresh.label) == (mark, words)
    assert fresh.cause.startswith(why) and bool(fresh.cause) == bool(why)
