"""Timestamps: the formats, UTC, cutting to milliseconds, granularities, the ends of time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.decode.decoded import Decoded
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow
from ingestion.decode.times import bucket_starts, end_of_time, truncated
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.schema.granularity import Granularity
from tests.support.decoders import decoder_of

pytestmark = pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def schema_of(time_format: str, missing: str | None = None, **granularity: str) -> DataSchema:
    timestamp: dict[str, Any] = {"column": "t", "format": time_format, "missingValue": missing}
    return DataSchema.model_validate({"dataSource": "d", "timestampSpec": timestamp, "granularitySpec": granularity})


def decoded_with(schema: DataSchema, *records: str) -> Decoded:
    return decoder_of(schema).decode([r.encode() for r in records], MessageWindow())


def time_of(time_format: str, value: str) -> str | None:
    """The time, as ISO text, that a record's JSON ``value`` is read as; None if it is unparseable."""
    decoded = decoded_with(schema_of(time_format), f'{{"t":{value}}}')
    if decoded.unparseable:
        return None
    (time,) = decoded.rows.column("__time").to_pylist()
    return str(time.isoformat(timespec="milliseconds").removesuffix("+00:00"))


JUNE = "2025-06-01T00:00:00.000"
JUNE_MS = int((datetime(2025, 6, 1, tzinfo=UTC) - EPOCH).total_seconds()) * 1000


ISO_TEXTS: list[tuple[str, str | None]] = [
    ("2025-06-01T00:00:00.000Z", JUNE),
    ("2025-06-01T00:00:00.000", JUNE),
    ("2025-06-01T00:00", JUNE),
    ("2025-06-01T00", JUNE),
    ("2025-06-01", JUNE),
    ("2025-06-01T02:00:00+02:00", JUNE),
    ("2025-06-01T02:00:00+0200", JUNE),
    ("2025-06-01T02:00:00+02", JUNE),
    ("2025-05-31T18:30:00-05:30", JUNE),
    ("2025-06-01T02:00:00+02:00:00", JUNE),
    ("2025-W22-7", JUNE),
    ("2025-152", JUNE),
    ("2025-6", JUNE),
    ("2025-06-01T", JUNE),
    ("2025-06-01TZ", JUNE),
    (" 2025-06-01T0:0:0 ", JUNE),
    ('"2025-06-01T00:00:00Z"', JUNE),
    ("2025-06-01T12.5", "2025-06-01T12:30:00.000"),
    ("2025-06-01T000000Z", None),
    ("2025-06-01T0000", None),
    ("2025-06-01T24:00", None),
    ("2025-W54", None),
    ("2025-366", None),
    ("2025-06-01T00:00:00.1234567890Z", None),
    ("2025-06-01t00:00:00z", JUNE),
    ("2025-06-01T00:00:00,5Z", "2025-06-01T00:00:00.500"),
    ("2025-06-01T00:00:00.123456Z", "2025-06-01T00:00:00.123"),
    ("2025-06-01T00:00:00.999999999Z", "2025-06-01T00:00:00.999"),
    ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999"),
    ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000"),
    ("9999-12-30T23:59:59.999Z", "9999-12-30T23:59:59.999"),
    ("2024-02-29", "2024-02-29T00:00:00.000"),
    ("2025-02-29", None),
    ("2025-13-01", None),
    ("2025-06-01T25:00:00Z", None),
    ("2025-06-01T00:00:60Z", None),
    ("2025-06-01T00:00:00+25:00", None),
    ("0000-01-01", None),
    ("10000-01-01", None),
    ("9999-12-31T00:00:00Z", None),  # its DAY ends in year 10000
    ("0001-01-01T00:00:00+01:00", None),
    ("infinity", None),
    ("epoch", None),
    ("2025-06-01 (BC)", None),
    ("now", None),
    ("", None),
    (" ", None),
    ("2025-06-01T00:00:00Z trailing", None),
]


@pytest.mark.parametrize("time_format", ["auto", "iso"])
def test_iso_texts(time_format: str) -> None:
    assert {text: time_of(time_format, json.dumps(text)) for text, _ in ISO_TEXTS} == dict(ISO_TEXTS)
    unread = {text: unread_among_others(time_format, text) for text, _ in ISO_TEXTS}
    assert unread == {text: [2] if expected else [0, 2] for text, expected in ISO_TEXTS}


def unread_among_others(time_format: str, text: str) -> list[int]:
    """Which are unparseable of this text, a good one and a bad one."""
    among = decoded_with(schema_of(time_format), json.dumps({"t": text}), '{"t":"2025-06-01T00:00:00Z"}', '{"t":"x"}')
    return sorted(among.unparseable)


@pytest.mark.parametrize(
    ("text", "auto", "iso"),
    [
        ("2025-06-01 00:00:00", JUNE, None),
        ("2025-06-01 00:00:00+00:00", JUNE, None),
        ("2025-06-01 00:00:00 UTC", JUNE, None),
        ("2025-06-01 00:00:00 America/New_York", JUNE, None),  # Druid drops the name
        ("2025-06-01 00:00:00 PST", JUNE, None),
        ("2025-06-01 00:00:00 +0200", None, None),
        ("2025-06-01 00:00:00 Nowhere", None, None),
        ("2025", "1970-01-01T00:00:02.025", "2025-01-01T00:00:00.000"),
        ("20250601000000", "2611-09-19T22:56:40.000", "2611-09-19T22:56:40.000"),
        ("T10:00", None, "1970-01-01T10:00:00.000"),
        ("+2025", "2025-01-01T00:00:00.000", "2025-01-01T00:00:00.000"),
    ],
)
@pytest.mark.parametrize("neighbour", ['"2025-06-01 00:00:00Z"', '"x"'])
def test_auto_and_iso_differ_over_blanks_and_digits(
    text: str, auto: str | None, iso: str | None, neighbour: str
) -> None:
    assert time_of("auto", json.dumps(text)) == auto
    assert time_of("iso", json.dumps(text)) == iso
    among = decoded_with(schema_of("iso"), json.dumps({"t": text}), f'{{"t":{neighbour}}}')
    assert (0 in among.unparseable, 1 in among.unparseable) == (iso is None, True)


@pytest.mark.parametrize(
    ("time_format", "value", "expected"),
    [
        ("auto", f"{JUNE_MS}", JUNE),
        ("auto", f'"{JUNE_MS}"', JUNE),
        ("auto", f"{JUNE_MS}.9", JUNE),
        ("auto", "1.7487360e12", JUNE),
        ("auto", "-1", "1969-12-31T23:59:59.999"),
        ("auto", "-0.5", "1970-01-01T00:00:00.000"),
        ("auto", "0", "1970-01-01T00:00:00.000"),
        ("auto", '"20250601"', "1970-01-01T05:37:30.601"),  # digits alone are milliseconds, as in Druid
        ("auto", "true", None),
        ("auto", "NaN", None),
        ("auto", "Infinity", None),
        ("auto", "1e999", None),
        ("auto", "1e30", None),
        ("auto", "123456789012345678901234567890", None),
        ("auto", "{}", None),
        ("auto", "[1]", None),
        ("auto", '"0x10"', None),
        ("auto", '"1_000"', None),
        ("millis", f"{JUNE_MS}", JUNE),
        ("millis", f'"{JUNE_MS}"', JUNE),
        ("millis", '"2025-06-01"', None),
        ("millis", "253402300800000", None),  # the first millisecond of year 10000
        ("millis", "-62135596800000", "0001-01-01T00:00:00.000"),
        ("millis", "-62135596800001", None),
        ("posix", f"{JUNE_MS // 1000}", JUNE),
        ("posix", f'"{JUNE_MS // 1000}"', JUNE),
        ("posix", f"{JUNE_MS // 1000}.9999", JUNE),
        ("posix", f'"{JUNE_MS // 1000}.5"', None),
        ("posix", f'" +{JUNE_MS // 1000} "', JUNE),
        ("posix", "-1", "1969-12-31T23:59:59.000"),
        ("posix", '"-1"', "1969-12-31T23:59:59.000"),
        ("millis", "-1", "1969-12-31T23:59:59.999"),
        ("posix", "-1.5", "1969-12-31T23:59:59.000"),
        ("ruby", f"{JUNE_MS // 1000}.9999", "2025-06-01T00:00:00.999"),
        ("ruby", f'"{JUNE_MS // 1000}.9999d"', "2025-06-01T00:00:00.999"),
        ("ruby", "-1.5", "1969-12-31T23:59:58.500"),
        ("millis", f'"{JUNE_MS}.0"', None),
        ("millis", '"1.7e12"', None),
        ("posix", "9223372036854775807", None),
        ("iso", f"{JUNE_MS}", JUNE),
        ("iso", "2025", "2025-01-01T00:00:00.000"),
        ("iso", "2025.0", None),
        ("%Y-%m-%d %H:%M:%S", '"2025-06-01 00:00:00"', JUNE),
        ("%Y%m%d", "20250601", JUNE),
        ("%Y%m%d", '"20250601"', JUNE),
        ("%d/%b/%Y:%H:%M:%S %z", '"01/Jun/2025:02:00:00 +0200"', JUNE),
        ("%Y/%m/%d", '"2025\\/06\\/01"', JUNE),  # escaped slashes, as PHP writes them
        ("%Y-%m-%dT%H:%M:%S.%f", '"1969-12-31T23:59:59.999900"', "1969-12-31T23:59:59.999"),
        ("%Y-%m-%d", '"01.06.2025"', None),
    ],
)
def test_other_formats(time_format: str, value: str, expected: str | None) -> None:
    assert time_of(time_format, value) == expected


def test_mixed_values_in_one_batch_are_read_as_alone() -> None:
    values = [f"{JUNE_MS}", f'"{JUNE_MS}"', '"2025-06-01"', '"2025-06-01T02:00:00+02:00"', '"zz"', "null"]
    decoded = decoded_with(schema_of("auto"), *(f'{{"t":{v}}}' for v in values))
    assert decoded.rows.column("__time").to_pylist() == [datetime(2025, 6, 1, tzinfo=UTC)] * 4
    assert list(decoded.unparseable) == [4, 5]


@pytest.fixture(scope="module")
def auto() -> Iterator[JsonDecoder]:
    made = JsonDecoder(schema_of("auto"))
    yield made
    made.close()


@given(
    times=st.lists(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 30)), min_size=1, max_size=5),
    zoned=st.booleans(),
    extra=st.booleans(),
)
def test_any_time_keeps_its_milliseconds(auto: JsonDecoder, times: list[datetime], zoned: bool, extra: bool) -> None:
    """Whether Arrow reads the batch at once or, because of one odd value, DuckDB one by one."""
    records = [json.dumps({"t": t.isoformat() + ("Z" if zoned else "")}) for t in times]
    decoded = auto.decode([r.encode() for r in [*records, *(['{"t":"odd"}'] if extra else [])]], MessageWindow())
    expected = [t.replace(microsecond=t.microsecond // 1000 * 1000, tzinfo=UTC) for t in times]
    assert decoded.rows.column("__time").to_pylist() == expected


def test_missing_times() -> None:
    records = ["{}", '{"t":null}', '{"t":"zz"}', '{"t":""}', '{"t":0}']
    plain = decoded_with(schema_of("auto"), *records)
    assert {i: m for i, m in plain.unparseable.items() if i < 2} == dict.fromkeys(
        [0, 1], "field 't' has no time: it is missing or null"
    )
    assert plain.unparseable[2] == "field 't' has no time of format auto: \"zz\""
    replaced = decoded_with(schema_of("auto", missing="2000-01-01T00:00:00.0009Z"), *records)
    assert list(replaced.unparseable) == [2, 3]
    assert replaced.rows.column("__time").to_pylist() == [datetime(2000, 1, 1, tzinfo=UTC)] * 2 + [EPOCH]


def test_a_time_out_of_the_calendar_says_so() -> None:
    decoded = decoded_with(schema_of("millis"), '{"t":253402300800000}')
    assert decoded.unparseable[0] == (
        "the time in field 't' is not between year 1 and 9999-12-30T23:59:59Z: 253402300800000"
    )


MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9998, 12, 31), timezones=st.just(UTC)).map(
    lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)
)


def to_ms(time: datetime) -> int:
    return (time - EPOCH) // timedelta(milliseconds=1)


@given(time=MOMENTS, granularity=st.sampled_from(Granularity))
def test_bucket_starts_are_those_of_the_granularity(time: datetime, granularity: Granularity) -> None:
    start, _ = granularity.bucket(time)
    assert bucket_starts(np.array([to_ms(time)]), granularity).tolist() == [to_ms(start)]


@pytest.mark.parametrize("granularity", [g for g in Granularity if g is not Granularity.NONE])
def test_every_time_before_the_end_of_time_has_an_interval(granularity: Granularity) -> None:
    last = EPOCH + timedelta(milliseconds=end_of_time(granularity) - 1)
    start, end = granularity.bucket(last)
    assert start <= last < end


@pytest.mark.parametrize(
    ("query", "segment", "time", "expected"),
    [
        ("NONE", "DAY", "2025-06-05T13:47:31.123Z", "2025-06-05T13:47:31.123Z"),
        ("SECOND", "DAY", "2025-06-05T13:47:31.123Z", "2025-06-05T13:47:31Z"),
        ("MINUTE", "DAY", "2025-06-05T13:47:31.123Z", "2025-06-05T13:47:00Z"),
        ("FIVE_MINUTE", "DAY", "2025-06-05T13:47:31.123Z", "2025-06-05T13:45:00Z"),
        ("TEN_MINUTE", "DAY", "2025-06-05T13:47:31.123Z", "2025-06-05T13:40:00Z"),
        ("FIFTEEN_MINUTE", "DAY", "2025-06-05T13:47:31.123Z", "2025-06-05T13:45:00Z"),
        ("THIRTY_MINUTE", "DAY", "2025-06-05T13:47:31.123Z", "2025-06-05T13:30:00Z"),
        ("HOUR", "DAY", "2025-06-05T13:47:31.123Z", "2025-06-05T13:00:00Z"),
        ("SIX_HOUR", "DAY", "2025-06-05T13:47:31.123Z", "2025-06-05T12:00:00Z"),
        ("EIGHT_HOUR", "DAY", "2025-06-05T13:47:31.123Z", "2025-06-05T08:00:00Z"),
        ("DAY", "MONTH", "2025-06-05T13:47:31.123Z", "2025-06-05T00:00:00Z"),
        ("WEEK", "MONTH", "2025-06-05T13:47:31.123Z", "2025-06-02T00:00:00Z"),  # a Monday
        ("MONTH", "YEAR", "2025-06-05T13:47:31.123Z", "2025-06-01T00:00:00Z"),
        ("QUARTER", "YEAR", "2025-06-05T13:47:31.123Z", "2025-04-01T00:00:00Z"),
        ("YEAR", "YEAR", "2025-06-05T13:47:31.123Z", "2025-01-01T00:00:00Z"),
        ("HOUR", "DAY", "1969-12-31T23:59:59.999Z", "1969-12-31T23:00:00Z"),
        ("WEEK", "MONTH", "2025-06-01T13:00:00Z", "2025-06-01T00:00:00Z"),  # not back into May's segment
        ("MONTH", "DAY", "2025-06-05T13:47:31.123Z", "2025-06-05T00:00:00Z"),
        ("ALL", "DAY", "2025-06-05T13:47:31.123Z", "2025-06-05T00:00:00Z"),
    ],
)
def test_query_granularity_cuts_within_the_segment(query: str, segment: str, time: str, expected: str) -> None:
    schema = schema_of("iso", segmentGranularity=segment, queryGranularity=query)
    decoded = decoded_with(schema, json.dumps({"t": time}))
    assert decoded.rows.column("__time").to_pylist() == [datetime.fromisoformat(expected)]


@given(
    time=MOMENTS,
    query=st.sampled_from(Granularity),
    segment=st.sampled_from([g for g in Granularity if g is not Granularity.NONE]),
)
def test_a_cut_time_stays_in_its_segment(time: datetime, query: Granularity, segment: Granularity) -> None:
    (cut,) = truncated(np.array([to_ms(time)]), query, segment).tolist()
    assert segment.bucket(EPOCH + timedelta(milliseconds=cut)) == segment.bucket(time)
    assert cut <= to_ms(time)
