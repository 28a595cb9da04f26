"""Metrics and rollup, as Druid documents them: what becomes one row, and that no record's offset is lost with it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow
from ingestion.segments.batch import write_segments
from ingestion.segments.local import LocalStorage
from ingestion.segments.memory_run import MemoryRun
from ingestion.segments.reader import read_segment
from ingestion.segments.table_shape import Shape
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.offsets import expanded
from ingestion.specs.schema.data_schema import EXTENTS, DataSchema
from tests.support.column_ids import some_ids
from tests.support.decoders import decoder_of

KINDS = ["longSum", "doubleSum", "floatSum", "longMin", "doubleMin", "floatMin", "longMax", "doubleMax", "floatMax"]
KINDS += [f"{kind}{how}" for kind in ("long", "double", "float", "string") for how in ("First", "Last", "Any")]


def schema_of(metrics: list[dict[str, Any]], rollup: bool = True, **more: Any) -> DataSchema:
    granularity = {"segmentGranularity": "DAY", "queryGranularity": "MINUTE", "rollup": rollup}
    spec = {"dataSource": "d", "timestampSpec": {"column": "t"}, "metricsSpec": metrics, "granularitySpec": granularity}
    return DataSchema.model_validate(spec | more)


def metric(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "name": "m", "fieldName": "v", **more}


def rows_of(schema: DataSchema, records: list[dict[str, Any]]) -> pa.Table:
    decoded = decoder_of(schema).decode([json.dumps(r).encode() for r in records], MessageWindow())
    assert decoded.unparseable == {}
    return decoded.rows


def stored(schema: DataSchema, rows: pa.Table) -> pa.Table:
    """What a segment would show of them."""
    run = MemoryRun.of(rows, Shape.of(schema), 0)
    held = Shape.of(schema).stored(pa.concat_tables(run.blocks(run.fields, 2**20)))
    return held.select([name for name in held.column_names if name not in EXTENTS])


def rolled(schema: DataSchema, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, by time and dimensions, without the record's index; the time in seconds."""
    found = stored(schema, rows_of(schema, records)).to_pylist()
    found = [{**r, "__time": int(r["__time"].timestamp())} for r in found]
    return sorted(found, key=lambda r: json.dumps(r, sort_keys=True))


def written(schema: DataSchema, records: list[dict[str, Any]], place: Path) -> tuple[list[SegmentFile], list[Any]]:
    storage = LocalStorage(place / "deep", fsync=False)
    files = write_segments(
        rows_of(schema, records),
        np.arange(len(records)) % 3,
        np.arange(len(records)) + 100,
        schema=schema,
        version="v",
        storage=storage,
        scratch=place / "scratch",
        ids=some_ids(),
    )
    return files, [row for f in files for row in read_segment(storage, f.path).to_pylist()]


def test_the_rollup_of_druids_tutorial() -> None:
    """Druid's tutorial on rollup: nine records of network flow become five rows."""
    flow = [
        ("2018-01-01T01:01:35Z", "1.1.1.1", "2.2.2.2", 20, 9024),
        ("2018-01-01T01:01:51Z", "1.1.1.1", "2.2.2.2", 255, 21133),
        ("2018-01-01T01:01:59Z", "1.1.1.1", "2.2.2.2", 11, 5780),
        ("2018-01-01T01:02:14Z", "1.1.1.1", "2.2.2.2", 38, 6289),
        ("2018-01-01T01:02:29Z", "1.1.1.1", "2.2.2.2", 377, 359971),
        ("2018-01-01T01:03:29Z", "1.1.1.1", "2.2.2.2", 49, 10204),
        ("2018-01-02T21:33:14Z", "7.7.7.7", "8.8.8.8", 38, 6289),
        ("2018-01-02T21:33:45Z", "7.7.7.7", "8.8.8.8", 123, 93999),
        ("2018-01-02T21:35:45Z", "7.7.7.7", "8.8.8.8", 12, 2818),
    ]
    records = [dict(zip(("t", "srcIP", "dstIP", "packets", "bytes"), f, strict=True)) for f in flow]
    metrics = [
        {"type": "count", "name": "count"},
        {"type": "longSum", "name": "packets", "fieldName": "packets"},
        {"type": "longSum", "name": "bytes", "fieldName": "bytes"},
    ]
    schema = schema_of(metrics, dimensionsSpec={"dimensions": ["srcIP", "dstIP"]})
    found = stored(schema, rows_of(schema, records))
    shown = [(f"{r['__time']:%dT%H:%M}", r["srcIP"], r["count"], r["packets"], r["bytes"]) for r in found.to_pylist()]
    assert sorted(shown) == [
        ("01T01:01", "1.1.1.1", 3, 286, 35937),
        ("01T01:02", "1.1.1.1", 2, 415, 366260),
        ("01T01:03", "1.1.1.1", 1, 49, 10204),
        ("02T21:33", "7.7.7.7", 2, 161, 100288),
        ("02T21:35", "7.7.7.7", 1, 12, 2818),
    ]


# The records' times are not in order: the second is the earliest, the last one the latest of the same minute.
VALUES: list[tuple[int, Any]] = [(20_000, 2), (10_000, 3.5), (30_000, None), (40_000, -1.5)]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("longSum", 2 + 3 - 1),  # each value cut to a whole number, as in Druid
        ("doubleSum", 4.0),
        ("floatSum", 4.0),
        ("longMin", -1),
        ("doubleMin", -1.5),
        ("floatMin", -1.5),
        ("longMax", 3),
        ("doubleMax", 3.5),
        ("floatMax", 3.5),
        ("longFirst", 3),
        ("doubleFirst", 3.5),
        ("floatFirst", 3.5),
        ("stringFirst", "3.5"),
        ("longLast", -1),
        ("doubleLast", -1.5),
        ("floatLast", -1.5),
        ("stringLast", "-1.5"),
    ],
)
def test_every_aggregator(kind: str, expected: Any) -> None:
    (row,) = rolled(schema_of([metric(kind)]), [{"t": t, "v": v} for t, v in VALUES])
    assert row == {"__time": 0, "m": expected}
    assert type(row["m"]) is type(expected)


@pytest.mark.parametrize("kind", ["longAny", "doubleAny", "floatAny", "stringAny"])
def test_any_is_one_of_the_values_that_are_there(kind: str) -> None:
    (row,) = rolled(schema_of([metric(kind)]), [{"t": 0, "v": None}, {"t": 1, "v": 7}, {"t": 2}])
    assert row["m"] == ("7" if kind == "stringAny" else 7)


@pytest.mark.parametrize("kind", KINDS)
def test_of_nothing_but_nulls_a_metric_is_null(kind: str) -> None:
    for rollup in (True, False):
        schema = schema_of([metric(kind)], rollup)
        rows = rows_of(schema, [{"t": 0}, {"t": 0, "v": None}])
        assert set(rows.column("m").to_pylist()) == {None}
        if rollup:
            assert stored(schema, rows).column("m").to_pylist() == [None]


def test_the_first_and_last_value_may_be_null() -> None:
    records: list[dict[str, Any]] = [{"t": 0, "v": None}, {"t": 1, "v": 5}, {"t": 2}]
    for kind in ("longFirst", "longLast"):
        assert rolled(schema_of([metric(kind)]), records)[0]["m"] is None


def test_of_the_same_time_the_first_and_last_are_those_read_first_and_last() -> None:
    records = [{"t": 5, "v": v} for v in ("b", "c", "a")]
    assert rolled(schema_of([metric("stringFirst")]), records)[0]["m"] == "b"
    assert rolled(schema_of([metric("stringLast")]), records)[0]["m"] == "a"


def test_texts_are_cut() -> None:
    records = [{"t": 0, "v": "ab\u00e9"}]  # the last character has two bytes
    for most, expected in ((1, "a"), (3, "ab"), (4, "ab\u00e9")):
        assert rolled(schema_of([metric("stringFirst", maxStringBytes=most)]), records)[0]["m"] == expected
    assert rolled(schema_of([metric("stringAny")]), [{"t": 0, "v": "x" * 2000}])[0]["m"] == "x" * 1024


def test_without_rollup_every_row_has_its_own_metrics() -> None:
    metrics = [{"type": "count", "name": "n"}, metric("longSum"), metric("doubleMax", name="x")]
    rows = rows_of(schema_of(metrics, rollup=False), [{"t": 0, "v": 1.5}, {"t": 0, "v": "2"}, {"t": 0, "d": "x"}])
    assert rows.column("__row").to_pylist() == [0, 1, 2]
    assert [tuple(r[c] for c in ("d", "n", "m", "x")) for r in rows.to_pylist()] == [
        (None, 1, 1, 1.5),
        (None, 1, 2, 2.0),
        ("x", 1, None, None),
    ]


def test_numbers_in_texts_are_summed_and_others_are_faults() -> None:
    decoder = JsonDecoder(schema_of([metric("longSum")]))
    decoded = decoder.decode([b'{"t":0,"v":"12"}', b'{"t":0,"v":"x"}', b'{"t":0,"v":[1]}', b'{"t":0}'], MessageWindow())
    decoder.close()
    assert decoded.rows.column("m").to_pylist() == [12, None, None, None]
    assert decoded.processed_with_error == dict.fromkeys([1, 2], "field 'v' is not a whole number")


def test_sums_of_whole_numbers_wrap_around() -> None:
    (row,) = rolled(schema_of([metric("longSum")]), [{"t": 0, "v": 2**63 - 1}, {"t": 0, "v": 1}])
    assert row["m"] == -(2**63)


def test_what_differs_in_a_dimension_stays_apart() -> None:
    """Null, empty, list, object, number and text are all different values."""
    values: list[Any] = [None, "", "a", ["a", "b"], ["a,b"], ["b", "a"], {"k": 1}]
    dimensions = {"dimensions": ["d", {"name": "j", "type": "json"}, {"name": "l", "type": "long"}]}
    schema = schema_of([{"type": "count", "name": "n"}], dimensionsSpec=dimensions)
    records = [{"t": 0, "d": v} for v in values] + [{"t": 0, "j": v} for v in ("a", 1, [1])] + [{"t": 0, "l": 1}]
    found = rolled(schema, records + records)
    # The lists ["a", "b"] and ["b", "a"] are the same once sorted.
    assert Counter(r["n"] for r in found) == {2: len(records) - 2, 4: 1}


def test_a_field_that_is_called_like_the_rows_index() -> None:
    schema = schema_of([{"type": "count", "name": "n"}])
    found = rolled(schema, [{"t": 0, "__row": "a"}, {"t": 0, "__row": "b"}, {"t": 0, "__row": "a"}])
    assert [(r["__row"], r["n"]) for r in found] == [("a", 2), ("b", 1)] or [(r["__row"], r["n"]) for r in found] == [
        ("b", 1),
        ("a", 2),
    ]


def test_every_records_offset_is_attributed_to_its_segment(tmp_path: Path) -> None:
    day = 86_400_000
    records = [{"t": (i % 2) * day + (i % 5) * 60_000, "d": f"d{i % 2}", "v": i} for i in range(40)]
    schema = schema_of([{"type": "count", "name": "n"}, metric("longSum"), metric("longLast", name="last")])
    files, rows = written(schema, records, tmp_path)
    assert [f.rows for f in files] == [5, 5]
    assert [c.name for c in files[0].columns] == ["__time", "d", "n", "m", "last"]
    for number, file in enumerate(files):
        held = {o - 100 for ranges in file.offsets.values() for o in expanded(ranges)}
        assert held == {i for i in range(40) if i % 2 == number}
        assert all((o - 100) % 3 == p for p, ranges in file.offsets.items() for o in expanded(ranges))
    assert sum(r["n"] for r in rows) == 40
    assert sum(r["m"] for r in rows) == sum(range(40))


def test_segments_are_split_by_rows_with_all_their_records(tmp_path: Path) -> None:
    schema = schema_of([{"type": "count", "name": "n"}])
    rows = rows_of(schema, [{"t": 0, "d": f"d{i % 4}"} for i in range(12)])
    files = write_segments(
        rows, np.zeros(12, np.int64), np.arange(12), schema=schema, version="v",
        storage=LocalStorage(tmp_path / "deep", fsync=False), scratch=tmp_path / "s", ids=some_ids(),
        max_rows_per_segment=2,
    )  # fmt: skip
    held = [sorted(expanded(f.offsets[0])) for f in files]
    assert [len(h) for h in held] == [6, 6]
    assert [{o % 4 for o in h} for h in held] == [{0, 1}, {2, 3}]


@pytest.mark.parametrize(
    ("metrics", "more", "message"),
    [
        ([{"type": "count"}], {}, "name"),
        ([{"type": "longSum", "name": "m"}], {}, "fieldName"),
        ([{"type": "momentSketch", "name": "m", "fieldName": "v"}], {}, "momentSketch"),
        ([metric("longSum"), metric("doubleSum")], {}, "named twice among dimensions and metrics: m"),
        ([metric("longSum")], {"dimensionsSpec": {"dimensions": ["m"]}}, "named twice"),
        ([{"type": "count", "name": "__time"}], {}, "time column"),
        ([{"type": "count", "name": "__record_time"}], {}, "Headgate's own"),
        ([metric("longSum", expression="v * 2")], {}, "give either fieldName or expression"),
    ],
)
def test_what_is_refused(metrics: list[dict[str, Any]], more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        schema_of(metrics, **more)


RECORDS = st.lists(
    st.fixed_dictionaries(
        {"t": st.integers(0, 3 * 86_400_000), "d": st.sampled_from(["a", "b", None, 1, True, ["a", "b"], {"k": 1}])},
        optional={"v": st.none() | st.integers(-(2**40), 2**40), "e": st.sampled_from([1, 2])},
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=40)
@given(records=RECORDS)
def test_sums_and_records_are_the_same_with_and_without_rollup(
    records: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    metrics = [{"type": "count", "name": "n"}, *(metric(f"long{how}", name=how) for how in ("Sum", "Min", "Max"))]
    place = tmp_path_factory.mktemp("rollup")
    plain_files, plain = written(schema_of(metrics, rollup=False), records, place)
    files, rows = written(schema_of(metrics), records, place)
    offsets = [o for f in files for p in f.offsets for o in expanded(f.offsets[p])]
    assert sorted(offsets) == list(range(100, 100 + len(records)))
    assert {f.interval_start: f.offsets for f in files} == {f.interval_start: f.offsets for f in plain_files}
    assert sum(r["n"] for r in rows) == len(records) == len(plain)
    assert _total(rows, "Sum") == _total(plain, "Sum") == sum(r.get("v") or 0 for r in records)
    keys = [json.dumps([str(r["__time"]), r.get("d"), r.get("e")]) for r in rows]
    assert len(keys) == len(set(keys))
    for name, of in (("Min", min), ("Max", max)):
        values = [r["v"] for r in records if r.get("v") is not None]
        held = [r[name] for r in rows if r[name] is not None]
        assert (of(held) if held else None) == (of(values) if values else None)


def _total(rows: list[dict[str, Any]], name: str) -> int:
    return sum(r[name] or 0 for r in rows)


def filtered(inner: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "filtered",
        "filter": {"type": "selector", "dimension": "s", "value": "ok"},
        "aggregator": inner,
        **more,
    }


def test_a_filtered_metric_has_the_records_that_match_alone() -> None:
    metrics = [
        {"type": "count", "name": "all"},
        filtered({"type": "count", "name": "ok"}),
        filtered(metric("longSum"), name="sum"),
        filtered(filtered(metric("doubleMax", name="most"))),
    ]
    schema = schema_of(metrics, dimensionsSpec={"dimensions": ["d"]})
    records = [{"t": 0, "d": "x", "s": s, "v": v} for s, v in (("ok", 2), ("no", 70), ("ok", 3), (None, "bad"))]
    found = rolled(schema, [*records, {"t": 0, "d": "y", "s": "no", "v": 9}])
    assert found == [
        {"__time": 0, "d": "y", "all": 1, "ok": 0, "sum": None, "most": None},
        {"__time": 0, "d": "x", "all": 4, "ok": 2, "sum": 5, "most": 3.0},
    ]


def test_a_filtered_metric_sees_what_transforms_make() -> None:
    made = {"type": "expression", "name": "s", "expression": "if(v > 2, 'ok', 'no')"}
    schema = schema_of([filtered({"type": "count", "name": "n"})], transformSpec={"transforms": [made]})
    assert rolled(schema, [{"t": 0, "v": v} for v in (1, 3, 5)]) == [
        {"__time": 0, "n": n, "v": v} for n, v in ((0, "1"),)
    ] + [
        {"__time": 0, "n": 1, "v": "3"},
        {"__time": 0, "n": 1, "v": "5"},
    ]


def test_a_record_that_a_metrics_filter_fails_on_is_told() -> None:
    condition = {"type": "regex", "dimension": "s", "pattern": "\\bk"}
    counted = {"type": "filtered", "filter": condition, "aggregator": {"type": "count", "name": "n"}}
    schema = schema_of([counted], dimensionsSpec={"dimensions": ["d"]})
    found = decoder_of(schema).decode([b'{"t":0,"s":"k"}', '{"t":0,"s":"é k"}'.encode()], MessageWindow())
    assert found.rows.column("n").to_pylist() == [1, 0]
    assert list(found.processed_with_error) == [1]
    assert "its filter fails" in found.processed_with_error[1]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (filtered(metric("longFirst")), "longFirst cannot have a filter"),
        (filtered(filtered(metric("stringLast"))), "stringLast cannot have a filter"),
        (filtered({"type": "count"}), "name"),
        (filtered(metric("longSum"), filter={"type": "expression", "expression": "v"}), "may have no expressions"),
        (
            filtered(metric("longSum"), filter={"type": "not", "field": {"type": "expression", "expression": "v"}}),
            "no expr",
        ),
    ],
)
def test_filtered_metrics_that_are_refused(written: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        schema_of([written])
    with pytest.raises(ValidationError, match="101 metrics are filtered; 100 at most"):
        schema_of([filtered({"type": "count", "name": f"n{n}"}) for n in range(101)])
