"""Granularities: the bucket of a moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.schema.granularity import MAX_TIME, MIN_TIME, Granularity


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# Wednesday 2024-02-28 13:47:31.123 UTC, in a leap year.
MOMENT = at("2024-02-28T13:47:31.123")


@pytest.mark.parametrize(
    ("granularity", "start", "end"),
    [
        ("NONE", "2024-02-28T13:47:31.123", "2024-02-28T13:47:31.124"),
        ("SECOND", "2024-02-28T13:47:31", "2024-02-28T13:47:32"),
        ("MINUTE", "2024-02-28T13:47", "2024-02-28T13:48"),
        ("FIVE_MINUTE", "2024-02-28T13:45", "2024-02-28T13:50"),
        ("TEN_MINUTE", "2024-02-28T13:40", "2024-02-28T13:50"),
        ("FIFTEEN_MINUTE", "2024-02-28T13:45", "2024-02-28T14:00"),
        ("THIRTY_MINUTE", "2024-02-28T13:30", "2024-02-28T14:00"),
        ("HOUR", "2024-02-28T13:00", "2024-02-28T14:00"),
        ("SIX_HOUR", "2024-02-28T12:00", "2024-02-28T18:00"),
        ("EIGHT_HOUR", "2024-02-28T08:00", "2024-02-28T16:00"),
        ("DAY", "2024-02-28", "2024-02-29"),
        ("WEEK", "2024-02-26", "2024-03-04"),
        ("MONTH", "2024-02-01", "2024-03-01"),
        ("QUARTER", "2024-01-01", "2024-04-01"),
        ("YEAR", "2024-01-01", "2025-01-01"),
        ("ALL", MIN_TIME.isoformat(), MAX_TIME.isoformat()),
    ],
)
def test_the_bucket_of_a_moment(granularity: str, start: str, end: str) -> None:
    assert Granularity(granularity).bucket(MOMENT) == (at(start), at(end))


@pytest.mark.parametrize(
    ("granularity", "time", "start"),
    [
        ("HOUR", "1969-12-31T23:59:59.999", "1969-12-31T23:00"),
        ("WEEK", "1970-01-04T23:59:59.999", "1969-12-29"),
        ("WEEK", "1970-01-05", "1970-01-05"),
        ("MONTH", "1969-12-31T23:59:59.999", "1969-12-01"),
        ("QUARTER", "2024-12-31T23:59:59.999", "2024-10-01"),
        ("DAY", "0001-01-01", "0001-01-01"),
        ("WEEK", "0001-01-01", "0001-01-01"),
    ],
)
def test_buckets_at_the_edges(granularity: str, time: str, start: str) -> None:
    assert Granularity(granularity).bucket(at(time))[0] == at(start)


@given(
    time=st.datetimes(datetime(1, 1, 1), datetime(9998, 12, 31), timezones=st.just(UTC)),
    granularity=st.sampled_from([g for g in Granularity if g is not Granularity.NONE]),
)
def test_buckets_hold_their_time_and_follow_each_other(time: datetime, granularity: Granularity) -> None:
    start, end = granularity.bucket(time)
    assert start <= time < end
    assert granularity.bucket(start) == (start, end)
    if granularity is not Granularity.ALL:
        assert granularity.bucket(end)[0] == end
    if granularity.fixed_seconds is not None:
        assert end - start == timedelta(seconds=granularity.fixed_seconds)


def test_granularities_in_any_case() -> None:
    schema = DataSchema.model_validate(
        {
            "dataSource": "d",
            "timestampSpec": {},
            "granularitySpec": {"segmentGranularity": "hour", "queryGranularity": "Fifteen_Minute"},
        }
    )
    assert schema.granularitySpec.segmentGranularity is Granularity.HOUR
    assert schema.granularitySpec.queryGranularity is Granularity.FIFTEEN_MINUTE
