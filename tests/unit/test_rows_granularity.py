"""Granularities as objects: periods in a time zone, durations, origins; against the calendar of zoneinfo."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.decode.message_window import MessageWindow
from ingestion.decode.times import bucket_starts, end_of_time, truncated
from ingestion.segments.batch import write_segments
from ingestion.segments.local import LocalStorage
from ingestion.specs.schema.data_schema import DataSchema, GranularitySpec
from ingestion.specs.schema.granularity import Granularity
from ingestion.specs.schema.periods import DurationGranularity, PeriodGranularity, granularity_of
from tests.support.column_ids import some_ids
from tests.support.decoders import decoder_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
ZURICH = ZoneInfo("Europe/Zurich")


def period(text: str, zone: str | None = None, origin: str | None = None) -> PeriodGranularity:
    made = granularity_of({"type": "period", "period": text, "timeZone": zone, "origin": origin})
    assert isinstance(made, PeriodGranularity)
    return made


def bucket(granularity: Any, time: str) -> tuple[str, str]:
    start, end = granularity.bucket(datetime.fromisoformat(time).astimezone(UTC))
    return start.isoformat().removesuffix("+00:00"), end.isoformat().removesuffix("+00:00")


@pytest.mark.parametrize(
    ("granularity", "time", "expected"),
    [
        # A day of Zurich: 24 hours in winter and summer, 23 and 25 when the clock is changed.
        (period("P1D", "Europe/Zurich"), "2025-01-15T12:00+01:00", ("2025-01-14T23:00:00", "2025-01-15T23:00:00")),
        (period("P1D", "Europe/Zurich"), "2025-07-15T00:30+02:00", ("2025-07-14T22:00:00", "2025-07-15T22:00:00")),
        (period("P1D", "Europe/Zurich"), "2025-03-30T12:00+02:00", ("2025-03-29T23:00:00", "2025-03-30T22:00:00")),
        (period("P1D", "Europe/Zurich"), "2025-10-26T12:00+01:00", ("2025-10-25T22:00:00", "2025-10-26T23:00:00")),
        (period("P1M", "Europe/Zurich"), "2025-03-31T23:00+02:00", ("2025-02-28T23:00:00", "2025-03-31T22:00:00")),
        (period("P1Y", "America/New_York"), "2025-06-01T00:00Z", ("2025-01-01T05:00:00", "2026-01-01T05:00:00")),
        # A week begins on a Monday, several are counted from the origin.
        (period("P1W", "Europe/Zurich"), "2025-06-01T12:00Z", ("2025-05-25T22:00:00", "2025-06-01T22:00:00")),
        (period("P1W"), "2025-06-01T12:00Z", ("2025-05-26T00:00:00", "2025-06-02T00:00:00")),
        (period("P2W"), "1970-01-02T00:00Z", ("1970-01-01T00:00:00", "1970-01-15T00:00:00")),
        # Months of a quarter and of half a year are counted from January 1970.
        (period("P3M"), "2025-06-01T00:00Z", ("2025-04-01T00:00:00", "2025-07-01T00:00:00")),
        (period("P6M"), "1969-12-31T00:00Z", ("1969-07-01T00:00:00", "1970-01-01T00:00:00")),
        (
            period("P1M", origin="2012-02-15T00:00Z"),
            "2025-06-01T00:00Z",
            ("2025-05-15T00:00:00", "2025-06-15T00:00:00"),
        ),
        # The 1st of June 2025 is day 20240 since 1970.
        (
            period("P2D", "America/Los_Angeles"),
            "2025-06-01T00:00-07:00",
            ("2025-06-01T07:00:00", "2025-06-03T07:00:00"),
        ),
        # Units of time are equally long, whatever the clock does.
        (period("PT6H"), "2025-06-01T13:00Z", ("2025-06-01T12:00:00", "2025-06-01T18:00:00")),
        (period("PT6H", "Europe/Zurich"), "2025-06-01T13:00Z", ("2025-06-01T11:00:00", "2025-06-01T17:00:00")),
        (period("PT1H", "Asia/Kolkata"), "2025-06-01T13:00Z", ("2025-06-01T12:30:00", "2025-06-01T13:30:00")),
        (period("PT15M"), "1969-12-31T23:59:59Z", ("1969-12-31T23:45:00", "1970-01-01T00:00:00")),
        (period("PT1H30M"), "1970-01-01T02:00Z", ("1970-01-01T01:30:00", "1970-01-01T03:00:00")),
        (period("P1DT12H"), "1970-01-02T00:00Z", ("1970-01-01T00:00:00", "1970-01-02T12:00:00")),
        (
            period("PT1H", origin="2020-01-01T00:20Z"),
            "2025-06-01T13:00Z",
            ("2025-06-01T12:20:00", "2025-06-01T13:20:00"),
        ),
        # The zone skips this midnight: the day begins where the clock goes on.
        (period("P1D", "America/Sao_Paulo"), "2018-11-04T12:00Z", ("2018-11-04T03:00:00", "2018-11-05T02:00:00")),
        # Samoa left out the 30th of December 2011.
        (period("P1D", "Pacific/Apia"), "2011-12-30T12:00Z", ("2011-12-30T10:00:00", "2011-12-31T10:00:00")),
        (
            granularity_of({"type": "duration", "duration": 7_200_000}),
            "2025-06-01T13:00Z",
            ("2025-06-01T12:00:00", "2025-06-01T14:00:00"),
        ),
        (
            granularity_of({"type": "duration", "duration": 3_600_000, "origin": "2012-01-01T00:30:00Z"}),
            "2025-06-01T13:00Z",
            ("2025-06-01T12:30:00", "2025-06-01T13:30:00"),
        ),
    ],
)
def test_buckets(granularity: Any, time: str, expected: tuple[str, str]) -> None:
    assert bucket(granularity, time) == expected


@pytest.mark.parametrize("name", [g.value for g in Granularity])
def test_names_in_any_case_and_as_objects(name: str) -> None:
    for written in (name, name.lower(), name.title(), {"type": name.lower()}):
        assert granularity_of(written) is Granularity(name)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("fortnight", "must be one of NONE, SECOND"),
        ({"type": "period"}, "period: required field is missing"),
        ({"type": "period", "period": "P"}, "must be an ISO 8601 period"),
        ({"type": "period", "period": "P1DT"}, "must be an ISO 8601 period"),
        ({"type": "period", "period": "PT0S"}, "must be an ISO 8601 period"),
        ({"type": "period", "period": "one day"}, "must be an ISO 8601 period"),
        ({"type": "period", "period": "P1M1D"}, "mixes units"),
        ({"type": "period", "period": "P1DT1H", "timeZone": "Europe/Zurich"}, "mixes units"),
        ({"type": "period", "period": "P99999999Y"}, "too long"),
        ({"type": "period", "period": "P1D", "timeZone": "Europe/Nowhere"}, "timeZone: must be a time zone"),
        ({"type": "period", "period": "P1D", "timeZone": "../etc/passwd"}, "timeZone: must be a time zone"),
        ({"type": "period", "period": "P1D", "timezone": "UTC"}, "timezone: unknown field"),
        ({"type": "duration", "duration": 0}, "duration: must be"),
        ({"type": "moon"}, "must be one of"),
        (7, "must be one of"),
    ],
)
def test_what_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        granularity_of(value)


def test_what_is_stored_parses_to_the_same() -> None:
    for value in (
        "hour",
        {"type": "period", "period": "P1D", "timeZone": "Europe/Zurich"},
        {"type": "duration", "duration": 5000},
    ):
        spec = GranularitySpec.model_validate(
            {"segmentGranularity": value, "queryGranularity": value, "intervals": ["x"]}
        )
        spec.segmentGranularity.bucket(EPOCH)
        assert GranularitySpec.model_validate(json.loads(spec.model_dump_json())) == spec


MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)).map(
    lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)
)
ZONES = st.sampled_from(
    [
        "Europe/Zurich",
        "America/New_York",
        "America/Sao_Paulo",
        "Australia/Lord_Howe",
        "Asia/Kathmandu",
        "America/Havana",
    ]
)


def ms_of(time: datetime) -> int:
    return (time - EPOCH) // MILLISECOND


@given(time=MOMENTS, zone=ZONES)
def test_a_days_bucket_holds_the_times_of_that_date_alone(time: datetime, zone: str) -> None:
    """Its ends are the first moments that have the date, and another one, on the clock of the zone."""
    clock = ZoneInfo(zone)
    start, end = period("P1D", zone).bucket(time)
    assert start <= time < end
    if zone == "America/Havana":  # its clock went back over midnight: the date returns for an hour
        return
    assert (
        start.astimezone(clock).date() == time.astimezone(clock).date() == (end - MILLISECOND).astimezone(clock).date()
    )
    assert (start - MILLISECOND).astimezone(clock).date() < time.astimezone(clock).date() < end.astimezone(clock).date()


GRANULARITIES = st.builds(
    period,
    st.sampled_from(["P1D", "P3D", "P1W", "P2W", "P1M", "P5M", "P1Y", "P7Y", "PT1H", "PT45M"]),
    ZONES | st.none(),
    st.sampled_from([None, "2012-01-31T17:30Z", "9000-01-01T00:00Z"]),
) | st.builds(
    DurationGranularity, type=st.just("duration"), duration=st.integers(1, 10**12), origin=st.none() | MOMENTS
)


@settings(max_examples=100)
@given(granularity=GRANULARITIES, times=st.lists(MOMENTS, min_size=1, max_size=10))
def test_buckets_cover_time_without_overlap(granularity: Any, times: list[datetime]) -> None:
    for time in times:
        start, end = granularity.bucket(time)
        assert start <= time < end
        assert granularity.bucket(start) == granularity.bucket(end - MILLISECOND) == (start, end)
        assert granularity.bucket(end)[0] == end
    starts = bucket_starts(np.array([ms_of(t) for t in times]), granularity)
    assert starts.tolist() == [ms_of(granularity.bucket(t)[0]) for t in times]


@given(
    granularity=GRANULARITIES,
    time=st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 30), timezones=st.just(UTC)),
)
def test_every_time_that_is_taken_has_an_interval(granularity: Any, time: datetime) -> None:
    start, end = granularity.bucket(time)
    assert start <= time < end
    assert ms_of(time) < end_of_time(granularity)
    cut = truncated(np.array([ms_of(time)]), granularity, granularity)
    assert cut.tolist() == [ms_of(start)]


def test_rows_and_segments_by_days_of_a_zone(tmp_path: Path) -> None:
    """Segments a day of Zurich each over the change to summer time, rows cut to six hours."""
    schema = DataSchema.model_validate(
        {
            "dataSource": "d",
            "timestampSpec": {"column": "t"},
            "granularitySpec": {
                "segmentGranularity": {"type": "period", "period": "P1D", "timeZone": "Europe/Zurich"},
                "queryGranularity": {"type": "period", "period": "PT6H", "timeZone": "Europe/Zurich"},
            },
        }
    )
    times = [
        "2025-03-29T23:59:00+01:00",
        "2025-03-30T00:00:00+01:00",
        "2025-03-30T23:59:00+02:00",
        "2025-03-31T00:00:00+02:00",
    ]
    rows = decoder_of(schema).decode([json.dumps({"t": t}).encode() for t in times], MessageWindow()).rows
    assert [t.astimezone(ZURICH).strftime("%dT%H:%M%z") for t in rows.column("__time").to_pylist()] == [
        "29T18:00+0100",
        "30T00:00+0100",
        "30T19:00+0200",
        "31T00:00+0200",
    ]
    files = write_segments(
        rows,
        np.zeros(4, np.int64),
        np.arange(4),
        schema=schema,
        version="v",
        storage=LocalStorage(tmp_path / "d"),
        scratch=tmp_path / "s",
        ids=some_ids(),
    )
    assert [f.rows for f in files] == [1, 2, 1]
    assert [f.interval_end - f.interval_start for f in files] == [timedelta(hours=h) for h in (24, 23, 24)]
