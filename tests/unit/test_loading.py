"""The pure parts of the wizard: documents, profiles of fields, the outlook, the dry run of a change."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane.common.errors import InvalidInput
from controlplane.loading.documents import reusable_secrets, split_secrets, to_nested, with_secrets, with_value
from controlplane.loading.dry_run import compare_samples
from controlplane.loading.field_profiles import MAX_NESTED, field_profiles, nested_fields
from controlplane.loading.implausible_times import odd_times
from controlplane.loading.ingestion_preview import INDEXER_ROWS_PER_S, preview_ingestion
from frontend.topic_list import similar
from ingestion.specs.messages.protocol import Column
from ingestion.specs.messages.sampling import Arrived, RolledUpRow, SampleAnswer, SampledRecord
from ingestion.specs.schema.granularity import Granularity

PASSWORD = {"sasl.username": "u", "sasl.password": "canary"}
SERVERS = {"bootstrap.servers": "kafka:9092"}


def of_kafka(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "kafka", "spec": {"dataSchema": {}, "ioConfig": {"consumerProperties": properties, **more}}}


def test_a_flat_document_is_kept_nested_and_what_nobody_knows_stays() -> None:
    flat = {"type": "kafka", "ioConfig": {"topic": "t", "mine": 1}, "context": {"a": 1}}
    assert to_nested(flat) == {
        "type": "kafka",
        "context": {"a": 1},
        "spec": {"ioConfig": {"topic": "t", "mine": 1}, "dataSchema": {}},
    }
    assert to_nested(to_nested(flat)) == to_nested(flat)


@pytest.mark.parametrize(
    ("written", "pointer"),
    [
        ([], ""),
        (None, ""),
        ({"spec": 1}, "/spec"),
        ({"spec": {"ioConfig": []}}, "/spec/ioConfig"),
        ({"ioConfig": {"consumerProperties": "x"}}, "/spec/ioConfig/consumerProperties"),
        ({"spec": {"dataSchema": {"parser": {}}}}, "/spec/dataSchema/parser"),
    ],
)
def test_what_no_spec_can_be_made_of_is_refused_at_its_place(written: Any, pointer: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        to_nested(written)
    assert [e.pointer for e in caught.value.errors] == [pointer]


def test_putting_and_taking_out_leave_the_rest() -> None:
    document = {"a": {"b": 1, "c": 2}, "d": 3}
    assert with_value(document, ("a", "b"), 9) == {"a": {"b": 9, "c": 2}, "d": 3}
    assert with_value(document, ("a", "b"), None) == {"a": {"c": 2}, "d": 3}
    assert with_value(document, ("d", "e"), 1) == {"a": {"b": 1, "c": 2}, "d": {"e": 1}}
    assert document == {"a": {"b": 1, "c": 2}, "d": 3}


REGISTRY = {
    "type": "avro_stream",
    "avroBytesDecoder": {"type": "schema_registry", "url": "http://r:1", "config": {}, "headers": {"X-Key": "canary"}},
}


@pytest.mark.parametrize(
    "document",
    [
        of_kafka({**SERVERS, **PASSWORD}),
        of_kafka(SERVERS, inputFormat=REGISTRY),
        of_kafka({}),
        to_nested({"type": "kafka"}),
    ],
)
def test_secrets_are_taken_apart_and_put_back(document: dict[str, Any]) -> None:
    shown, secrets = split_secrets(document)
    assert "canary" not in json.dumps(shown)
    assert with_secrets(shown, secrets) == document


def test_secrets_stay_while_the_connection_does() -> None:
    shown, secrets = split_secrets(of_kafka({**SERVERS, **PASSWORD}, topic="a"))
    assert reusable_secrets(shown, secrets, with_value(shown, ("spec", "ioConfig", "topic"), "b")) == secrets
    elsewhere = with_value(shown, ("spec", "ioConfig", "consumerProperties", "bootstrap.servers"), "other:9092")
    assert reusable_secrets(shown, secrets, elsewhere) == {}


def test_what_fields_are_like() -> None:
    records = [{"a": 1, "b": "x"}, {"a": 2}, None, {"a": 1, "b": None}]
    a, b = field_profiles([Column(name="a", type="long"), Column(name="b", type="string")], records)
    assert (a.null_share, a.examples, a.distinct) == (0.0, ["1", "2"], 2)
    assert (round(b.null_share, 2), b.examples) == (0.67, ["x"])
    assert field_profiles([Column(name="a", type="long")], [])[0].null_share == 0.0


def test_nested_values_are_offered_the_most_common_first() -> None:
    found = nested_fields([{"x": {"y": 1, "z": {"w": [1]}}, "top": 1}, {"x": {"y": 2, "e": {}}}, None, 7])
    assert [(f.name, f.nodes, f.share, f.example) for f in found] == [
        ("x_y", ["x", "y"], 1.0, "1"),
        ("x_e", ["x", "e"], 0.5, "{}"),
        ("x_z_w", ["x", "z", "w"], 0.5, "[1]"),
    ]


def test_very_many_and_very_deep_fields_are_bounded() -> None:
    assert len(nested_fields([{"many": {f"f{i}": i for i in range(10_000)}}])) == MAX_NESTED
    assert nested_fields([{"x": {"y": {"z": {"a": {"b": {"c": {"d": 1}}}}}}}])[0].nodes == [
        "x",
        "y",
        "z",
        "a",
        "b",
        "c",
    ]
    assert len(nested_fields([{"x": {"y": "v" * 9000}}])[0].example) < 100


def stored(time_ms: int, **row: Any) -> SampledRecord:
    return SampledRecord(outcome="stored", row={"__time": time_ms, **row})


def test_what_a_first_minute_writes() -> None:
    records = [stored(t) for t in (0, 1000, 2000)] + [SampledRecord(outcome="filtered")]
    answer = SampleAnswer(records=records, stored_bytes=300)
    each_second = Arrived(records=60, window_s=60)
    told = preview_ingestion(each_second, answer, 2, Granularity.HOUR)
    assert (told.records_per_s, told.stored_share, told.rollup_ratio) == (1.0, 0.75, None)
    assert (told.rows_per_minute, told.bytes_per_minute, told.segments) == (45, 4500, 2)
    assert told.indexers_needed == 1
    merged = answer.model_copy(update={"rollup": [RolledUpRow(row={}, records=[0, 1, 2])]})
    rolled = preview_ingestion(each_second, merged, 1, Granularity.SECOND)
    assert (rolled.rollup_ratio, rolled.rows_per_minute, rolled.segments) == (3.0, 15, 3)


def test_an_empty_sample_promises_nothing() -> None:
    told = preview_ingestion(None, SampleAnswer(), 1, Granularity.DAY)
    assert (told.rows_per_minute, told.bytes_per_minute, told.segments, told.indexers_needed) == (
        None,
        None,
        None,
        None,
    )


def test_a_fast_topic_needs_more_indexers() -> None:
    fast = Arrived(records=60 * 3 * INDEXER_ROWS_PER_S + 60, window_s=60)
    assert preview_ingestion(fast, SampleAnswer(), 1, Granularity.DAY).indexers_needed == 4


def test_a_burst_is_told_over_the_window_that_it_came_in() -> None:
    """What the demo writes within two seconds needs no five indexers, and makes no millions of rows a minute."""
    answer = SampleAnswer(records=[stored(0)], stored_bytes=10)
    told = preview_ingestion(Arrived(records=336_776, window_s=3600), answer, 1, Granularity.DAY)
    assert (told.rows_per_minute, told.indexers_needed) == (5613, 1)
    assert told.records_per_s == pytest.approx(93.5, abs=0.1)


def test_a_change_is_told_by_record() -> None:
    before = [
        stored(0, a=1),
        stored(0, a=1),
        stored(0),
        SampledRecord(outcome="filtered"),
        SampledRecord(outcome="raw"),
    ]
    after = [stored(0, a=1), stored(0, a=2), SampledRecord(outcome="unparseable", error="no time"), stored(0)]
    after.append(SampledRecord(outcome="raw", error="another text"))
    found = compare_samples(SampleAnswer(records=before), SampleAnswer(records=after))
    assert [c.kind for c in found.changed] == ["changes", "fails", "gained"]
    assert [(c.column, c.before, c.after) for c in found.changed[0].cells] == [("a", 1, 2)]
    assert (found.records, found.rows_before, found.rows_after) == (5, 3, 3)


def test_few_rows_in_many_segments_are_warned_of() -> None:
    """The middle half of 756 records a day apart falls into 378 segments of a day."""
    apart = [stored(i * 86_400_000) for i in range(756)]
    slow = Arrived(records=33, window_s=60)
    told = preview_ingestion(slow, SampleAnswer(records=apart, stored_bytes=300), 1, Granularity.DAY)
    assert (told.rows_per_minute, told.segments, told.has_small_segments) == (33, 378, True)
    assert not preview_ingestion(
        slow, SampleAnswer(records=apart, stored_bytes=300), 1, Granularity.ALL
    ).has_small_segments
    fast = Arrived(records=33_000_000, window_s=60)
    assert not preview_ingestion(
        fast, SampleAnswer(records=apart, stored_bytes=300), 1, Granularity.DAY
    ).has_small_segments
    assert not preview_ingestion(None, SampleAnswer(records=apart), 1, Granularity.DAY).has_small_segments


NOW = datetime(2026, 2, 1, tzinfo=UTC)
S = 1_769_860_800  # 2026-01-31T12:00:00Z


@pytest.mark.parametrize(
    ("form", "time_ms", "instead"),
    [
        ("auto", S, "posix"),  # seconds, read as milliseconds
        ("millis", S, "posix"),
        ("posix", S * 1_000_000, "millis"),
        ("millis", S * 1_000_000, "micro"),
        ("auto", S * 1_000_000_000, "nano"),
        ("millis", 0, ""),
        ("yyyy", 0, ""),
    ],
)
def test_times_of_a_wrong_unit_are_told_with_the_right_one(form: str, time_ms: int, instead: str) -> None:
    odd = odd_times(SampleAnswer(records=[stored(time_ms), stored(S * 1000)]), form, NOW)
    assert odd is not None
    assert (odd.rows, odd.total_rows, odd.example_ms, odd.instead) == (1, 2, time_ms, instead)
    assert odd.instead_ms == (S * 1000 if instead else None)


def test_times_of_long_ago_and_of_soon_are_plausible() -> None:
    moments = [datetime(1971, 1, 2, tzinfo=UTC), datetime(2070, 1, 1, tzinfo=UTC)]
    rows = [stored(int(moment.timestamp() * 1000)) for moment in moments]
    assert odd_times(SampleAnswer(records=[*rows, SampledRecord(outcome="unparseable")]), "auto", NOW) is None


def test_a_slip_of_the_pen_finds_the_topic() -> None:
    names = ["orders", "Orders-eu", "payments", "flights"]
    assert similar("ordres", names)[0] == "orders"
    assert similar("ORDERS-UE", names)[0] == "Orders-eu"
    assert similar("payment", names) == ["payments"]
    assert (similar("", names), similar("zzz", names)) == ([], [])
