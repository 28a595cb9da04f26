"""Positions: what their texts mean, and which texts are refused by what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ingestion.specs.kafka.positions import Position

NOW = datetime(2026, 11, 27, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize("text", ["earliest", "latest", "2026-11-27T09:00:00Z", "PT30M", "P1DT2H", "PT0S", "PT1.5S"])
def test_a_position_is_written_as_it_is_read(text: str) -> None:
    assert str(Position.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-27T10:00:00+01:00", NOW),
        ("2026-11-27T05:30:00-03:30", NOW),
        ("20261127T090000Z", NOW),
        # The night in which Berlin sets its clocks back has half past two twice.
        ("2026-10-25T02:30:00+02:00", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        ("2026-10-25T02:30:00+01:00", datetime(2026, 10, 25, 1, 30, tzinfo=UTC)),
    ],
)
def test_an_instant_is_kept_in_utc(text: str, instant: datetime) -> None:
    assert Position.parse(text).instant == instant


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("PT30M", timedelta(minutes=30)),
        ("P1D", timedelta(hours=24)),
        ("P2W", timedelta(days=14)),
        ("PT90M", timedelta(hours=1, minutes=30)),
        ("PT0.25S", timedelta(milliseconds=250)),
    ],
)
def test_a_duration_is_counted_from_now(text: str, ago: timedelta) -> None:
    assert Position.parse(text).at(NOW) == Position.of_instant(NOW - ago)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Write earliest, latest, a time with a zone"),
        ("Earliest", "is not a position"),
        (" latest", "is not a position"),
        ("1795770000000", "is not a position"),
        ("-PT30M", "is not a position"),
        ("2026-11-27", "is not a position"),
        ("2026-13-27T09:00:00Z", "is not a position"),
        ("0001-01-01T00:00:00+14:00", "is not a position"),
        ("9999-12-31T23:59:59-14:00", "is not a position"),
        ("2026-11-27T09:00:00", "has no time zone"),
        ("P30M", "For 30 minutes, write PT30M"),
        ("P1Y", "months or years"),
        ("P", "is not a duration"),
        ("PT", "is not a duration"),
        ("P1DT", "is not a duration"),
        ("PT-5M", "is not a duration"),
        ("P99999W", "longer than a century"),
    ],
)
def test_a_text_that_is_no_position_is_refused_by_its_fault(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Position.parse(text)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T00:00:00.0001Z", 1),  # the first record at or after it
        ("1969-12-31T23:59:59Z", 0),  # Kafka reads -1 as latest and -2 as earliest
        ("0001-01-02T00:00:00Z", 0),
    ],
)
def test_an_instant_as_kafka_has_it(text: str, ms: int) -> None:
    assert Position.parse(text).timestamp_ms == ms
