"""The timestampSpec's formats: numbers of several units, and Joda's patterns, to which Druid's documents refer."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ingestion.decode.message_window import MessageWindow
from ingestion.specs.schema.data_schema import DataSchema, TimestampSpec
from ingestion.specs.schema.joda import strptime_patterns
from tests.support.decoders import decoder_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def times_of(spec: dict[str, Any], *values: Any) -> list[str | None]:
    """The time, as ISO text, that each value is read as; None where it can't be."""
    schema = DataSchema.model_validate({"dataSource": "d", "timestampSpec": {"column": "t", **spec}})
    decoded = decoder_of(schema).decode([json.dumps({"t": v}).encode() for v in values], MessageWindow())
    times = iter(decoded.rows.column("__time").to_pylist())
    return [None if i in decoded.unparseable else _iso(next(times)) for i in range(len(values))]


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").removesuffix("+00:00")


@pytest.mark.parametrize(
    ("time_format", "value"),
    [
        ("micro", 1_748_779_200_123_999),
        ("micro", "1748779200123999"),
        ("MICRO", 1_748_779_200_123_999.5),
        ("nano", 1_748_779_200_123_999_999),
        ("nano", "1748779200123999999"),
        ("ruby", 1_748_779_200.123),
        ("ruby", "1748779200.1239"),
        ("millis", 1_748_779_200_123),
    ],
)
@pytest.mark.parametrize("neighbour", [None, "zz"])
def test_numbers_are_cut_to_milliseconds(time_format: str, value: Any, neighbour: Any) -> None:
    """Whether all of a batch is numbers, or something else is among them."""
    assert times_of({"format": time_format}, value, neighbour) == ["2025-06-01T12:00:00.123", None]


@pytest.mark.parametrize(
    ("time_format", "value"), [("micro", -1999), ("micro", "-1999"), ("nano", -1_999_999), ("ruby", -0.0019)]
)
@pytest.mark.parametrize("neighbour", [0, "zz"])
def test_before_1970_times_are_cut_towards_it(time_format: str, value: Any, neighbour: Any) -> None:
    assert times_of({"format": time_format}, value, neighbour)[0] == "1969-12-31T23:59:59.999"


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yyyy-MM-dd HH:mm:ss.SSS Z", "2025-06-01 14:30:05.250 +0200", "2025-06-01T12:30:05.250"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZZ", "2025-06-01T14:30:05.250+02:00", "2025-06-01T12:30:05.250"),
        ("dd/MMM/yyyy:HH:mm:ss Z", "01/Jun/2025:14:30:05 +0200", "2025-06-01T12:30:05.000"),
        ("dd/MMM/yyyy:HH:mm:ss Z", "01/Jun/2025:14:30:05 -0530", "2025-06-01T20:00:05.000"),
        ("yyyy-MM-dd", "2025-06-01", "2025-06-01T00:00:00.000"),
        ("yyyy-MM-dd", "2025-6-1", "2025-06-01T00:00:00.000"),
        ("yyyyMMddHHmmss", "20250601143005", "2025-06-01T14:30:05.000"),
        ("MM/dd/yyyy hh:mm:ss a", "06/01/2025 02:30:05 PM", "2025-06-01T14:30:05.000"),
        ("MM/dd/yyyy h:mm a", "06/01/2025 12:30 AM", "2025-06-01T00:30:00.000"),
        ("EEE MMM dd HH:mm:ss yyyy", "Sun Jun 01 14:30:05 2025", "2025-06-01T14:30:05.000"),
        ("EEEE, d MMMM yyyy", "Sunday, 1 June 2025", "2025-06-01T00:00:00.000"),
        ("d MMM yyyy", "1 June 2025", "2025-06-01T00:00:00.000"),  # Joda reads a month's long name there as well
        ("yyyy-DDD", "2025-032", "2025-02-01T00:00:00.000"),
        ("yyyy 'o''clock' HH", "2025 o'clock 14", "2025-01-01T14:00:00.000"),
        ("yyyy''MM", "2025'06", "2025-06-01T00:00:00.000"),
        ("YYYY-MM-dd HH:mm:ss.SSSSSS", "2025-06-01 14:30:05.250999", "2025-06-01T14:30:05.250"),
        ("yyyy-MM-dd HH:mm:ss.SSS", "2025-06-01 14:30:05.5", "2025-06-01T14:30:05.500"),
        ("yyyy-MM-dd HH:mm:ss.SSS", "2025-06-01 14:30:05.250999", None),
        ("yyyy-MM-dd HH:mm", "2025-06-01  14:30", None),
        ("yyyy-MM-dd'T'HH:mmZ", "2025-06-01T14:30Z", "2025-06-01T14:30:00.000"),
        ("yyyy-MM-dd'T'HH:mmZ", "2025-06-01T14:30+02", "2025-06-01T12:30:00.000"),
        ("yyyy-MM-dd", ' "02025-06-01" ', "2025-06-01T00:00:00.000"),
        ("EEE, dd MMM yyyy", "Mon, 10 Mar 2024", "2024-03-04T00:00:00.000"),  # of the same week
        ("yyyy-DDD", "2025-366", None),
        ("yyyy-MM-dd", "01.06.2025", None),
        ("yyyy-MM-dd", "2025-02-30", None),
        ("yyyy-MM-dd'T'HH", "2025-06-01 14", None),
        ("yyyy", 2025, "2025-01-01T00:00:00.000"),
    ],
)
def test_joda_patterns(pattern: str, text: Any, expected: str | None) -> None:
    assert times_of({"format": pattern}, text) == [expected]


@pytest.mark.parametrize(
    ("pattern", "letter", "why"),
    [
        ("yyyy-MM-dd HH:mm:ss zzzz", "'z'", "long names of time zones"),
        ("yyyy-MM-ddTHH:mm", "'T'", "needs quotes"),
        ("uuuu-MM-dd", "'u'", "not supported"),
        ("y" * 21, "'y'", "not supported"),
        ("--", "at least one field", "yyyy-MM-dd"),
        ("sometimes", "'o'", "not supported"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_its_letter(pattern: str, letter: str, why: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TimestampSpec.model_validate({"format": pattern})
    message = caught.value.errors()[0]["msg"]
    assert letter in message
    assert why in message
    assert "must be auto, iso, millis, micro, nano, posix, ruby, or a pattern" in message


def test_quoted_text_and_names_in_both_lengths() -> None:
    assert strptime_patterns("yyyy' 100'") == ["%Y 100"]
    assert strptime_patterns("MMM MMMM") == ["%b %b", "%b %B", "%B %b", "%B %B"]
    assert strptime_patterns("yyyy kk") == []


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yy-MM-dd", "0024-03-10", "0024-03-10T00:00:00.000"),
        ("xxxx-'W'ww-e", "2020-W53-7", "2021-01-03T00:00:00.000"),
        ("yyyy-MM-dd kk:mm", "2024-03-10 24:15", "2024-03-10T00:15:00.000"),
        ("yyyy-MM-dd KK:mm a", "2024-03-10 00:15 PM", "2024-03-10T12:15:00.000"),
        ("yyyy-MM-dd G", "2024-03-10 AD", "2024-03-10T00:00:00.000"),
        ("yyyy-MM-dd HH:mm z", "2024-07-10 08:15 PST", "2024-07-10T15:15:00.000"),
        ("yyyy-MM-dd HH:mm ZZZ", "2024-07-10 08:15 Europe/Berlin", "2024-07-10T06:15:00.000"),
        ("yyyy-MM-dd HH:mm ZZZ", "2024-03-31 02:30 Europe/Berlin", None),  # there is no such time
        ("yyyy-MM-dd HH:mm ZZZ", "2024-07-10 08:15 Nowhere/Land", None),
        ("yyyy'T", "2024T", "2024-01-01T00:00:00.000"),
        ("yyyyMd", "2024112", "2024-11-02T00:00:00.000"),  # as many digits as there are
        ("yyyy-MM-dd HH:mm Z", "2023-09-31 08:15 +0100", None),
        ("Z yyyy-MM-dd", "+0100 2023-09-31", None),
        ("Z yyyy-MM-dd", "+0100 2023-09-30", "2023-09-29T23:00:00.000"),
        ("s.Syyyy", "5.72024", "2024-01-01T00:00:05.700"),
        ("MMM yyyy", "maR 2024", None),
    ],
)
def test_what_strptime_has_no_word_for(pattern: str, text: str, expected: str | None) -> None:
    assert times_of({"format": pattern}, text) == [expected]


def test_years_of_two_digits_are_near() -> None:
    """From 80 years ago to 19 years ahead, as in Joda."""
    now = datetime.now(UTC).year
    for year in (now - 80, now - 1, now, now + 19):
        assert times_of({"format": "yy-MM"}, f"{year % 100:02}-01") == [f"{year}-01-01T00:00:00.000"]


def test_the_missing_value_is_for_what_is_missing_only() -> None:
    spec = {"format": "yyyy-MM-dd", "missingValue": "2020-01-01T00:00:00Z"}
    assert times_of(spec, None, "x", "2025-06-01") == ["2020-01-01T00:00:00.000", None, "2025-06-01T00:00:00.000"]


@given(
    time=st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 30), timezones=st.just(UTC)),
    offset_minutes=st.integers(-14 * 60, 14 * 60),
)
def test_what_the_pattern_writes_is_read(time: datetime, offset_minutes: int) -> None:
    local = _moved(time, offset_minutes)
    if local is None:
        return
    sign, size = ("-" if offset_minutes < 0 else "+"), abs(offset_minutes)
    written = f"{local:%d/%m}/{local.year:04}:{local:%H:%M:%S.%f} {sign}{size // 60:02}{size % 60:02}"
    read = times_of({"format": "dd/MM/yyyy:HH:mm:ss.SSSSSS Z"}, written)
    assert read == [_iso(time.replace(microsecond=time.microsecond // 1000 * 1000))]


def _moved(time: datetime, minutes: int) -> datetime | None:
    try:
        return time + timedelta(minutes=minutes)
    except OverflowError:
        return None
