"""How an alert goes from one state to the next, as a table; what a status of the web means; and signatures."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.alerts.alert_state import AlertState, next_state
from controlplane.alerts.messages import signature
from controlplane.alerts.posting import outcome_of
from controlplane.alerts.rule_kinds import KINDS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
VERDICTS: dict[str, bool | None] = {"b": True, "g": False, "?": None}


def states(seen: str, hold: int = 0, clear: int = 0) -> str:
    """One verdict a minute; the first letter of each state. ``hold`` and ``clear``: minutes."""
    found, stand = "", None
    for minute, letter in enumerate(seen):
        at = NOW + timedelta(minutes=minute)
        stand = next_state(stand, VERDICTS[letter], at, hold=timedelta(minutes=hold), clear=timedelta(minutes=clear))
        found += stand.state[0]
    return found


@pytest.mark.parametrize(
    ("seen", "hold", "clear", "expected"),
    [
        ("gbg", 0, 0, "ofo"),
        ("gbbbg", 2, 0, "oppfo"),
        ("gbgbgb", 2, 0, "opopop"),  # it comes and goes, and is never bad for long enough
        ("bgbgbgggg", 0, 2, "fffffffoo"),  # and is one that fires all the while
        ("?", 0, 0, "u"),
        ("b??g", 0, 0, "fffo"),  # what is not known ends nothing
        ("bg?gg", 0, 1, "ffffo"),  # nor counts as being well
        ("g?g", 0, 0, "ouo"),
        ("b?b", 2, 0, "puf"),  # it was bad before and after
    ],
)
def test_states(seen: str, hold: int, clear: int, expected: str) -> None:
    assert states(seen, hold, clear) == expected


def test_it_fires_since_it_is_bad() -> None:
    stand = next_state(
        AlertState("pending", NOW, NOW), VERDICTS["b"], NOW + timedelta(minutes=5), hold=timedelta(), clear=timedelta()
    )
    assert (stand.state, stand.since) == ("firing", NOW)


@pytest.mark.parametrize(
    ("status", "retry_after", "ok", "permanent", "wait_s"),
    [
        (200, None, True, False, None),
        (204, None, True, False, None),
        (301, None, False, True, None),
        (400, None, False, True, None),
        (404, None, False, True, None),
        (410, None, False, True, None),
        (408, None, False, False, None),
        (429, "7", False, False, 7),
        (429, "Thu, 01 Jan 2026 00:01:00 GMT", False, False, 60),
        (429, "99999999999999999999", False, False, 6 * 3600),
        (429, "soon", False, False, None),
        (500, None, False, False, None),
        (503, "-1", False, False, None),
    ],
)
def test_what_a_status_means(
    status: int, retry_after: str | None, ok: bool, permanent: bool, wait_s: float | None
) -> None:
    said = outcome_of(status, "", retry_after, NOW)
    assert (said.ok, said.permanent, said.retry_after_s) == (ok, permanent, wait_s)


def test_a_signature_is_as_documented() -> None:
    expected = hmac.new(b"secret", b"12.{}", hashlib.sha256).hexdigest()
    assert signature("secret", b"{}", 12) == f"t=12,v1={expected}"


def test_intervals_are_told_once_each_and_none_of_before() -> None:
    from controlplane.supervisors.completeness import Completeness

    intervals = KINDS["complete"].intervals
    assert intervals is not None
    seen = Completeness(NOW + timedelta(minutes=190), [], None)
    each = {"every": "hour"}
    [(_, mark)] = intervals(seen, each, None)
    assert mark == NOW + timedelta(hours=3)
    assert intervals(seen, each, mark) == []
    assert [end for _, end in intervals(seen, each, NOW + timedelta(hours=1))] == [
        NOW + timedelta(hours=2),
        NOW + timedelta(hours=3),
    ]
    assert intervals(Completeness(None, [], None), each, mark) == []


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda k: k.code)
def test_defaults_are_allowed_and_others_are_refused(kind: object) -> None:
    code = kind.code  # type: ignore[attr-defined]
    values, faults = KINDS[code].checked({})
    assert faults == []
    assert set(values) == {p.name for p in KINDS[code].params}
    assert [f.path for f in KINDS[code].checked({"surprise": 1})[1]] == ["params.surprise"]
    odd_values: list[object] = [[], {}, -1, True, 1.5, "\x00"]
    for odd in odd_values:
        for param in KINDS[code].params:
            assert KINDS[code].checked({param.name: odd})[1], f"{code} {param.name} {odd!r}"
