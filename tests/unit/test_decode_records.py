"""Which payloads are records, what is said of the others, and that every index ends in exactly one way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.decode.decoded import Decoded
from ingestion.decode.errors import UnusableSchema
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow
from ingestion.rows import row_indexes
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.schema.data_schema import DataSchema, TimestampSpec

pytestmark = pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result")
T = "2025-06-01T00:00:00Z"
MB = 1024 * 1024


def data_schema(**parts: Any) -> DataSchema:
    return DataSchema.model_validate(
        {
            "dataSource": "d",
            "timestampSpec": {"column": "t", "format": "auto"},
            "dimensionsSpec": {"useSchemaDiscovery": True},
            **parts,
        }
    )


@pytest.fixture(scope="module")
def decoder() -> Iterator[JsonDecoder]:
    made = JsonDecoder(data_schema())
    yield made
    made.close()


def outcomes(decoded: Decoded) -> list[int]:
    """All indexes in all outcomes, sorted."""
    return sorted(
        [
            *row_indexes(decoded.rows).tolist(),
            *decoded.unparseable,
            *decoded.filtered,
            *decoded.outside_window,
            *decoded.tombstones,
            *decoded.crashed,
        ]
    )


def test_the_seeds_five_records() -> None:
    """The records of the share-group document, with the spec's timestamp column ``__time``."""
    lines = [
        ("2025-06-01T00:00:00.000Z", "widget_a", 100, "electronics"),
        ("2025-06-01T01:00:00.000Z", "widget_b", 250, "clothing"),
        ("2025-06-01T02:00:00.000Z", "widget_c", 50, "electronics"),
        ("2025-06-01T03:00:00.000Z", "widget_d", 175, "food"),
        ("2025-06-01T04:00:00.000Z", "widget_e", 320, "electronics"),
    ]
    payloads = [f'{{"__time":"{t}","item":"{i}","value":{v},"category":"{c}"}}'.encode() for t, i, v, c in lines]
    decoder = JsonDecoder(data_schema(timestampSpec={"column": "__time", "format": "auto"}))
    rows = decoder.decode(payloads, MessageWindow()).rows
    decoder.close()
    assert rows.column_names == ["__row", "__time", "item", "value", "category"]
    assert rows.to_pylist() == [
        {"__row": n, "__time": datetime.fromisoformat(t), "item": i, "value": v, "category": c}
        for n, (t, i, v, c) in enumerate(lines)
    ]


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "the payload is empty"),
        (b"  ", "not JSON"),
        (b"\xff\xfe{}", "not UTF-8: invalid start byte at byte 0"),
        (b'{"t":"\xed\xa0\x80"}', "not UTF-8"),
        (b"{", "not JSON"),
        (b'{"t":1}x', "not JSON: unexpected content after document at byte 7"),
        (b'{"t":1}\n[2]', "not JSON: unexpected content after document"),
        (b'{"t":1,"a":"\\ud800"}', "not JSON: no low surrogate in string"),
        (b'{"t":1,"a":"\t"}', "not JSON: unexpected control character in string"),
        (b'{"t":1,"a":01}', "not JSON: number with leading zero is not allowed"),
        (b"{t:1}", "not JSON"),
        (b'{"t":1,"a":2,}', "not JSON: a comma before the end"),
        (b'{"t":1,"a":[2, \n ]}', "not JSON: a comma before the end"),
        (b'{"t":1,"a":",","b":[{},]}', "not JSON: a comma before the end"),
        (b'{"t":1,"a":NaN}', "not JSON: NaN or Infinity"),
        (b'{"t":1,"o":{"x":[1,\n -Infinity ]}}', "not JSON: NaN or Infinity"),
        (b'{"t":1,"a":+iNF,"b":2}', "not JSON: NaN or Infinity"),
        (b'{"t":1,"a":NaN' + b" " * 50 + b"}", "not JSON: NaN or Infinity"),
        (b'{"t":1,"a":2,' + b" " * 50 + b"}", "not JSON: a comma before the end"),
        (b'{"t":1,"a":1,"a":2}', "has a field twice"),
        (b'{"t":1/*c*/}', "not JSON"),
        (b"null", "not a JSON object but null"),
        (b"true", "not a JSON object but true or false"),
        (b"12", "not a JSON object but a number"),
        (b'"{}"', "not a JSON object but a string"),
        (b'[{"t":1}]', "not a JSON object but an array"),
        (b"\xef\xbb\xbf", "not JSON"),
        (b'{"t":1,"b":2,"c\\u0000d":1}', r'has a field with a NUL character in its name: "c\u0000d"'),
        (b'{"t":1,"' + 1001 * b"n" + b'":1}', "has a field with a name of 1,001 characters, more than 1,000"),
        ('{"t":1}'.encode("utf-16"), "not UTF-8"),
    ],
)
def test_unparseable_payloads_are_named_and_harm_no_neighbour(
    decoder: JsonDecoder, payload: bytes, message: str
) -> None:
    good = json.dumps({"t": T, "a": 1}).encode()
    decoded = decoder.decode([good, payload, good], MessageWindow())
    assert list(decoded.unparseable) == [1]
    assert decoded.unparseable[1].startswith(message)
    assert row_indexes(decoded.rows).tolist() == [0, 2]
    assert outcomes(decoded) == [0, 1, 2]


def test_a_tombstone_is_told_apart_and_goes_where_the_spec_says(decoder: JsonDecoder) -> None:
    good = json.dumps({"t": T, "a": 1}).encode()
    decoded = decoder.decode([good, None, b"{", None, good], MessageWindow())
    assert (decoded.tombstones, list(decoded.unparseable)) == ([1, 3], [2])
    assert row_indexes(decoded.rows).tolist() == [0, 4]
    assert decoded.with_tombstones("throw_away") is decoded
    kept = decoded.with_tombstones("quarantine")
    assert (kept.tombstones, list(kept.unparseable)) == ([], [1, 2, 3])
    assert kept.unparseable[1] == "the record has no value (null payload)"
    assert outcomes(decoder.decode([None], MessageWindow())) == outcomes(kept.moved([0, 1, 2, 3, 4]))[:1]


@pytest.mark.parametrize(
    ("payload", "column", "value"),
    [
        (b'\xef\xbb\xbf{"t":1,"a":2}', "a", 2),  # a byte order mark is dropped, as Jackson does
        (b' \r\n\t{"t":1,"a":2} \n', "a", 2),
        (b'{"t":1,"a":",} , ]"}', "a", ",} , ]"),
        (b'{"t":1,"a":"x: NaN, -inf]"}', "a", "x: NaN, -inf]"),
        (b'{"t":1,"a":"\\u0000x"}', "a", "\0x"),
        (b'{"t":1,"a":{"b\\u0000c":3}}', "a", '{"b\\u0000c":3}'),
        (b'{"t":1,"a":"\\ud83d\\ude00"}', "a", "😀"),
        (b'{"t":1,"a":"\\/\\"\\\\\\n\\u00e9"}', "a", '/"\\\n\u00e9'),
    ],
)
def test_odd_records_that_are_read(decoder: JsonDecoder, payload: bytes, column: str | None, value: object) -> None:
    decoded = decoder.decode([payload], MessageWindow())
    assert not decoded.unparseable
    if column is not None:
        assert decoded.rows.column(column).to_pylist() == [value]


@pytest.mark.parametrize("before", range(4))
def test_broken_json_is_told_wherever_its_characters_are_cut(decoder: JsonDecoder, before: int) -> None:
    """DuckDB shows the beginning of the text that it can't read, and cuts it amid a character."""
    payload = b'{"t":1,"a":"' + b"x" * before + "é€😀".encode() * 200 + b'" broken'
    decoded = decoder.decode([b'{"t":1}', payload], MessageWindow())
    assert decoded.unparseable == {1: f"not JSON: unexpected character at byte {len(payload) - 6}"}
    assert row_indexes(decoded.rows).tolist() == [0]


def test_deep_nesting_and_long_strings_are_kept(decoder: JsonDecoder) -> None:
    deep = b"[" * 500_000 + b"]" * 500_000
    text = b"x" * (20 * MB)
    decoded = decoder.decode(
        [b'{"t":1,"deep":' + deep + b"}", b'{"t":1,"long":"' + text + b'"}', b"[" * 3_000_000], MessageWindow()
    )
    assert list(decoded.unparseable) == [2]
    assert decoded.rows.column("deep")[0].as_py().encode() == deep
    assert len(decoded.rows.column("long")[1].as_py()) == len(text)


def test_a_record_beyond_the_memory_limit_falls_alone() -> None:
    decoder = JsonDecoder(data_schema(), memory_limit_bytes=32 * MB)
    good = json.dumps({"t": T, "a": 1}).encode()
    huge = b'{"t":1,"a":"' + b"\\u0061" * (8 * MB) + b'"}'
    decoded = decoder.decode([good, huge, good, good], MessageWindow())
    again = decoder.decode([good], MessageWindow())
    decoder.close()
    assert row_indexes(decoded.rows).tolist() == [0, 2, 3]
    assert "failed on this record" in decoded.unparseable[1]
    assert again.rows.column("a").to_pylist() == [1]


def test_every_index_has_one_outcome_when_all_happen_at_once() -> None:
    schema = data_schema(transformSpec={"filter": {"type": "selector", "dimension": "keep", "value": "yes"}})
    decoder = JsonDecoder(schema)
    records: list[bytes | None] = [
        b'{"t":"2025-06-01T12:00:00Z","keep":"yes"}',
        b'{"t":"2025-06-01T12:00:00Z","keep":"no"}',
        b'{"t":"2025-05-31T23:59:59.999Z","keep":"yes"}',
        b'{"t":"2025-06-02T00:00:00Z","keep":"yes"}',
        b'{"t":"2025-05-01T00:00:00Z","keep":"no"}',
        b'{"keep":"yes"}',
        b"?",
        None,
        b'{"t":"2025-06-01T00:00:00Z","keep":"yes"}',
    ]
    window = MessageWindow(datetime(2025, 6, 1, tzinfo=UTC), datetime(2025, 6, 2, tzinfo=UTC))
    decoded = decoder.decode(records, window)
    decoder.close()
    assert row_indexes(decoded.rows).tolist() == [0, 8]
    assert decoded.filtered == [1, 4]
    assert decoded.outside_window == [2, 3]
    assert list(decoded.unparseable) == [5, 6]
    assert decoded.tombstones == [7]
    assert outcomes(decoded) == list(range(9))


def test_an_empty_batch_and_a_batch_without_a_good_record(decoder: JsonDecoder) -> None:
    empty = decoder.decode([], MessageWindow())
    assert empty.rows.column_names == ["__row", "__time"]
    bad = decoder.decode([b"?", None], MessageWindow())
    assert len(bad.rows) == 0
    assert (list(bad.unparseable), bad.tombstones) == ([0], [1])


def test_more_bad_records_than_are_explained_one_by_one(decoder: JsonDecoder) -> None:
    decoded = decoder.decode([b"?"] * 500, MessageWindow())
    assert list(decoded.unparseable) == list(range(500))
    assert decoded.unparseable[0].startswith("not JSON: ")
    assert decoded.unparseable[499] == "not a JSON object"


def test_an_error_never_holds_the_whole_payload(decoder: JsonDecoder) -> None:
    long = "x" * 100_000
    payloads = [f'{{"a":"{long}"'.encode(), f'{{"t":"{long}"}}'.encode(), f'["{long}"]'.encode()]
    decoded = decoder.decode(payloads, MessageWindow())
    assert [len(m) < 300 for m in decoded.unparseable.values()] == [True] * 3


def test_the_schema_must_be_usable() -> None:
    with pytest.raises(UnusableSchema, match="%Q"):
        JsonDecoder(data_schema(timestampSpec={"column": "t", "format": "%Q"}))
    surrogate = DataSchema.model_construct(
        **{**dict(data_schema()), "timestampSpec": TimestampSpec.model_construct(column="\ud800", format="auto")}
    )
    with pytest.raises(UnusableSchema, match="surrogate"):
        JsonDecoder(surrogate)


NOW, END = datetime(2025, 6, 1, 12, tzinfo=UTC), datetime(2025, 6, 1, 13, tzinfo=UTC)


def bounded(**times: str) -> dict[str, Any]:
    offsets = {"startSequenceNumbers": {"0": 0}, "endSequenceNumbers": {"0": 9}}
    return {"boundedStreamConfig": {**offsets, **{f"{name}MessageTime": time for name, time in times.items()}}}


@pytest.mark.parametrize(
    ("settings_", "earliest", "latest"),
    [
        ({}, None, None),
        ({"lateMessageRejectionPeriod": "PT1H"}, NOW - timedelta(hours=1), None),
        ({"earlyMessageRejectionPeriod": "P1D"}, None, END + timedelta(days=1)),
        (
            {"lateMessageRejectionStartDateTime": "2025-05-01T00:00:00+02:00"},
            datetime(2025, 4, 30, 22, tzinfo=UTC),
            None,
        ),
        ({"lateMessageRejectionPeriod": "P900000D"}, None, None),  # leads out of the calendar
        ({"earlyMessageRejectionPeriod": "PT0S"}, None, END),
        # Of a bounded read; Druid takes the maximum itself. What is narrower applies.
        (bounded(minimum="2025-05-01T00:00Z"), datetime(2025, 5, 1, tzinfo=UTC), None),
        (bounded(maximum="2025-05-01T00:00Z"), None, datetime(2025, 5, 1, 0, 0, 0, 1000, tzinfo=UTC)),
        ({**bounded(minimum="2025-05-01"), "lateMessageRejectionPeriod": "PT1H"}, NOW - timedelta(hours=1), None),
        ({**bounded(maximum="2030-05-01"), "earlyMessageRejectionPeriod": "P1D"}, None, END + timedelta(days=1)),
        (bounded(maximum="9999-12-31T23:59:59.999Z"), None, None),
    ],
)
def test_the_window_of_an_io_config(
    settings_: dict[str, Any], earliest: datetime | None, latest: datetime | None
) -> None:
    io_config = ShareGroupIOConfig.model_validate(
        {
            "topic": "t",
            "groupId": "g",
            "consumerProperties": {"bootstrap.servers": "b:9092"},
            "inputFormat": {"type": "json"},
            **settings_,
        }
    )
    assert MessageWindow.of(io_config, NOW, END) == MessageWindow(earliest, latest)


def test_a_window_is_half_open_and_compares_milliseconds(decoder: JsonDecoder) -> None:
    """Records know milliseconds: a bound between two of them takes the later one in, or leaves it out."""
    between = datetime(2025, 6, 1, 0, 0, 0, 500, tzinfo=UTC)
    payloads = [b'{"t":"2025-06-01T00:00:00.000Z"}', b'{"t":"2025-06-01T00:00:00.001Z"}']
    after = decoder.decode(payloads, MessageWindow(earliest=between))
    before = decoder.decode(payloads, MessageWindow(latest=between))
    exact = decoder.decode(payloads, MessageWindow(datetime(2025, 6, 1, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC)))
    assert after.outside_window == [0]
    assert before.outside_window == [1]
    assert exact.outside_window == [0, 1]


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
).map(lambda value: json.dumps(value).encode())
PAYLOADS = st.lists(
    st.none()
    | st.binary(max_size=40)
    | JSON_LIKE
    | st.text(alphabet='{}[]":,\\ute019.-+nalsfNI \t\0é\ud800', max_size=30).map(
        lambda text: text.encode("utf-8", "surrogatepass")
    )
    | st.binary(max_size=10).map(lambda b: b'{"t":1,"a":' + b + b"}"),
    max_size=12,
)


@settings(max_examples=120)
@given(payloads=PAYLOADS)
def test_any_bytes_end_in_exactly_one_way(decoder: JsonDecoder, payloads: list[bytes | None]) -> None:
    assert outcomes(decoder.decode(payloads, MessageWindow())) == list(range(len(payloads)))


@settings(max_examples=50)
@given(payloads=PAYLOADS, neighbours=PAYLOADS)
def test_a_records_fate_does_not_depend_on_its_neighbours(
    decoder: JsonDecoder, payloads: list[bytes | None], neighbours: list[bytes | None]
) -> None:
    alone = decoder.decode(payloads, MessageWindow())
    among = decoder.decode([*payloads, *neighbours], MessageWindow())
    count = len(payloads)
    assert {i: m for i, m in among.unparseable.items() if i < count} == alone.unparseable
    times = [t for i, t in zip(row_indexes(among.rows).tolist(), among.rows.column(1), strict=True) if i < count]
    assert times == list(alone.rows.column(1))
