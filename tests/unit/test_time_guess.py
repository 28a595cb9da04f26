"""Which fields are taken for a record's time, and in which format."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ingestion.specs.messages.sampling import TimeGuess
from ingestion.task.sampler.time_guess import MAX_CANDIDATES, time_guesses

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
NOON_S = int(NOON.timestamp())
NOON_MS = NOON_S * 1000


def guesses(*records: Any, kafka_ms: int | None = NOON_MS) -> list[TimeGuess]:
    return time_guesses(records, [kafka_ms] * len(records))


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("2026-01-31T12:00:00Z", "iso"),
        ("2026-01-31 12:00:00", "auto"),
        ("2026-01-31T13:00:00.000+01:00", "iso"),
        (NOON_S, "posix"),
        (NOON_MS, "millis"),
        (str(NOON_MS), "millis"),
        (NOON_MS * 1000, "micro"),
        (NOON_MS * 1_000_000, "nano"),
        ("2026/01/31 12:00:00", "yyyy/MM/dd HH:mm:ss"),
        ("31/01/2026 12:00:00", "dd/MM/yyyy HH:mm:ss"),
        ("01/31/2026 12:00:00", "MM/dd/yyyy HH:mm:ss"),
        ("31.01.2026 12:00:00", "dd.MM.yyyy HH:mm:ss"),
        ("31/Jan/2026:12:00:00 +0000", "%d/%b/%Y:%H:%M:%S %z"),
        ("20260131120000", "%Y%m%d%H%M%S"),
    ],
)
def test_each_format_is_found_and_read_as_an_indexer_would(value: Any, form: str) -> None:
    [guess] = guesses({"t": value, "n": 5, "s": "text"})
    assert (guess.column, guess.format, guess.share) == ("t", form, 1.0)
    assert (guess.example, guess.example_ms, guess.distance_ms) == (str(value), NOON_MS, 0)


@pytest.mark.parametrize(
    "record", [None, {}, {"n": 1}, {"s": "soon"}, {"t": None}, {"t": True}, {"t": "x" * 10_000}, [1]]
)
def test_where_there_is_no_time_there_is_no_guess(record: Any) -> None:
    assert guesses(record) == []
    assert guesses() == []


def test_the_field_that_all_have_and_that_is_near_to_kafka_s_time_is_the_best() -> None:
    records = [{"born": "1990-05-01", "placed": NOON_MS + 2000, "paid": "2026-01-31T12:00:00Z"} for _ in range(9)]
    del records[0]["paid"], records[1]["paid"], records[2]["paid"]
    found = guesses(*records)
    assert [g.column for g in found] == ["placed", "born", "paid"]
    assert [round(g.share, 2) for g in found] == [1.0, 1.0, 0.67]
    assert [g.distance_ms for g in found][::2] == [2000, 0]


def test_values_that_can_not_be_read_count_against_a_field() -> None:
    [guess] = guesses({"t": "2026-01-31T12:00:00Z"}, {"t": "yesterday"}, {"t": "2026-13-31T12:00:00Z"}, {})
    assert guess.share == 0.25


def test_a_nested_time_names_the_way_to_it() -> None:
    [guess] = guesses({"event": {"at.utc": NOON_MS}})
    assert (guess.column, guess.nodes) == ("event_at.utc", ["event", "at.utc"])


def test_without_kafka_s_time_there_is_no_distance() -> None:
    [guess] = guesses({"t": NOON_MS}, kafka_ms=None)
    assert guess.distance_ms is None


def test_of_very_many_fields_some_are_looked_at() -> None:
    assert len(guesses({f"f{i}": NOON_MS for i in range(10_000)})) == MAX_CANDIDATES
