"""Metrics that are sketches: what one of them says of all records is what those of its parts, merged, say.

With few values the estimate is exact, so it is compared with the number of distinct values; quantiles are compared
with the sorted values, and with how many there are.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from uuid import UUID

import datasketches
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from ingestion.batch.errors import InputRefused
from ingestion.compaction.merging import merge
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow
from ingestion.rows import join_rows
from ingestion.segments.batch import write_segments
from ingestion.segments.local import LocalStorage
from ingestion.segments.newest_rows import read_newest
from ingestion.segments.reader import read_segment
from ingestion.specs.messages.compaction import CompactionJob, InputSegment
from ingestion.specs.messages.deep_storage import RegisteredFile
from ingestion.specs.messages.newest_rows import RowsOrder
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.schema.data_schema import DataSchema
from tests.support.batch_run import START_MS, Run, spec_of
from tests.support.column_ids import some_ids
from tests.support.decoders import ANY_NUMBER
from tests.support.desk import DAY_MS, Desk
from tests.support.sketches import ALL, HLL, QUANTILES, THETA, contents, schema_of

HOW = {"users": "hll", "theta": "theta", "times": "quantiles"}


def decoded(schema: DataSchema, records: list[dict[str, Any]]) -> pa.Table:
    decoder = JsonDecoder(schema)
    try:
        found = decoder.decode([json.dumps(r).encode() for r in records], MessageWindow())
    finally:
        decoder.close()
    assert found.unparseable == {}
    assert found.processed_with_error == {}
    return found.rows


def records_of(count: int, start: int = 0) -> list[dict[str, Any]]:
    dimensions = ("x", "y", None)
    return [{"t": 0, "d": dimensions[n % 3], "u": f"u{n % 11}", "ms": n} for n in range(start, start + count)]


class Shelf:
    """Deep storage of a test."""

    def __init__(self, place: Path, schema: DataSchema) -> None:
        self.place, self.schema = place, schema
        self.storage = LocalStorage(place / "deep", fsync=False)
        self.files: list[SegmentFile] = []

    def add(self, rows: pa.Table) -> list[SegmentFile]:
        files = write_segments(
            rows, np.zeros(len(rows), np.int32), np.arange(len(rows)), schema=self.schema, version="v",
            storage=self.storage, scratch=self.place / "scratch", ids=some_ids(),
        )  # fmt: skip
        self.files += files
        return files

    @property
    def inputs(self) -> list[InputSegment]:
        return [
            InputSegment(id=UUID(int=n), path=f.path, rows=f.rows, size_bytes=f.size_bytes,
                         sha256=f.sha256)
            for n, f in enumerate(self.files)
        ]  # fmt: skip

    def merged(self) -> list[SegmentFile]:
        job = CompactionJob(
            job_id="compact_1", attempt=1, interval_start=self.files[0].interval_start,
            interval_end=self.files[0].interval_end, version="v", data_schema=self.schema,
            rollup=self.schema.granularitySpec.rollup, segments=self.inputs, schemas=[f.columns for f in self.files],
            max_rows_per_segment=5_000_000, deep_storage=str(self.storage),
        )  # fmt: skip
        return merge(job, self.storage, self.place / "scratch", some_ids()).files

    def rows(self, files: list[SegmentFile]) -> list[dict[str, Any]]:
        return [row for f in files for row in read_segment(self.storage, f.path).to_pylist()]


def told(rows: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    """By dimension what is in each sketch."""
    return {row["d"]: {"n": row["n"]} | {name: contents(how, row[name]) for name, how in HOW.items()} for row in rows}


def expected_of(records: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    """What the library makes of the values themselves, one after the other."""
    found = {}
    for d in {r["d"] for r in records}:
        mine = [r for r in records if r["d"] == d]
        theta = datasketches.update_theta_sketch(14)
        quantiles = datasketches.quantiles_doubles_sketch(128)
        for record in mine:
            theta.update(record["u"])
            quantiles.update(float(record["ms"]))
        # Texts are hashed as UTF-16, which the library's Python form can't: of ASCII a NUL behind each letter is that.
        hll = datasketches.hll_sketch(12, datasketches.HLL_4)
        for record in mine:
            hll.update("".join(f"{letter}\0" for letter in record["u"]))
        stored = {
            "users": hll.serialize_compact(),
            "theta": theta.compact().serialize(),
            "times": quantiles.serialize(),
        }
        found[d] = {"n": len(mine)} | {name: contents(how, stored[name]) for name, how in HOW.items()}
    return found


def test_rollup_makes_the_sketches_of_all_records(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, schema_of())
    records = records_of(120)
    [file] = shelf.add(decoded(shelf.schema, records))
    assert {c.name: c.type for c in file.columns} == {
        "__time": "timestamp",
        "d": "string",
        "n": "long",
        "users": "COMPLEX<HLLSketch>",
        "theta": "COMPLEX<thetaSketch>",
        "times": "COMPLEX<quantilesDoublesSketch>",
    }
    rows = shelf.rows([file])
    assert told(rows) == expected_of(records)
    assert [round(datasketches.hll_sketch.deserialize(r["users"]).get_estimate()) for r in rows] == [11, 11, 11]
    stored = pq.read_schema(tmp_path / "deep" / file.path)
    assert stored.field("users").type.storage_type == pa.binary()


@pytest.mark.parametrize("rollup", [True, False])
def test_compaction_merges_them(tmp_path: Path, rollup: bool) -> None:
    shelf = Shelf(tmp_path, schema_of(rollup=rollup))
    for start in range(0, 120, 30):
        shelf.add(decoded(shelf.schema, records_of(30, start)))
    [file] = merged = shelf.merged()
    assert {c.name: c.type for c in file.columns}["theta"] == "COMPLEX<thetaSketch>"
    rows = shelf.rows(merged)
    if rollup:
        assert told(rows) == expected_of(records_of(120))
    else:
        sketches = [datasketches.compact_theta_sketch.deserialize(r["theta"]) for r in rows]
        assert [s.get_estimate() for s in sketches] == [1.0] * 120


def test_of_many_values_the_merged_estimate_is_that_of_the_union(tmp_path: Path) -> None:
    """Beyond what a sketch holds exactly: merged from files it tells what the library's own union of them tells."""
    metrics = [{"type": "count", "name": "n"}, {**HLL, "lgK": 8}, {**THETA, "size": 64}, {**QUANTILES, "k": 16}]
    shelf = Shelf(tmp_path, schema_of(metrics))
    for start in range(0, 6_000, 2_000):
        records = [{"t": 0, "d": "x", "u": n, "ms": n} for n in range(start, start + 2_000)]
        shelf.add(decoded(shelf.schema, records))
    hll, theta = datasketches.hll_union(8), datasketches.theta_union(6)
    for row in shelf.rows(shelf.files):
        hll.update(datasketches.hll_sketch.deserialize(row["users"]))
        theta.update(datasketches.compact_theta_sketch.deserialize(row["theta"]))
    [row] = shelf.rows(shelf.merged())
    assert datasketches.hll_sketch.deserialize(row["users"]).get_estimate() == pytest.approx(hll.get_estimate())
    found = datasketches.compact_theta_sketch.deserialize(row["theta"])
    assert found.get_estimate() == pytest.approx(theta.get_result().get_estimate())
    assert found.get_lower_bound(3) <= 6_000 <= found.get_upper_bound(3)
    quantiles = datasketches.quantiles_doubles_sketch.deserialize(row["times"])
    assert (quantiles.n, quantiles.get_min_value(), quantiles.get_max_value()) == (6_000, 0, 5_999)
    error = datasketches.quantiles_doubles_sketch.get_normalized_rank_error(16, False)
    assert quantiles.get_quantile(0.5) == pytest.approx(3_000, abs=3 * error * 6_000)


def test_rows_that_wait_on_disk_are_merged_with_the_others(tmp_path: Path) -> None:
    desk = Desk(tmp_path, schema_of(), maxRowsInMemory=40)
    for start in range(0, 120, 30):
        desk.add(decoded(schema_of(), records_of(30, start)))
    [file] = desk.write()
    desk.index.close()
    rows = read_segment(LocalStorage(desk.deep, fsync=False), file.path).to_pylist()
    assert told(rows) == expected_of(records_of(120))


def test_batches_have_their_columns_joined() -> None:
    schema = schema_of()
    rows = join_rows([decoded(schema, records_of(3)), decoded(schema, records_of(3, 3))])
    assert [contents("quantiles", q)["values"] for q in rows.column("times").to_pylist()] == [[n] for n in range(6)]


def test_what_is_null_or_filtered_out_is_an_empty_sketch(tmp_path: Path) -> None:
    only = {"type": "filtered", "filter": {"type": "selector", "dimension": "d", "value": "x"}, "aggregator": HLL}
    shelf = Shelf(tmp_path, schema_of([only, QUANTILES]))
    records = [{"t": 0, "d": "x", "u": "a", "ms": None}, {"t": 0, "d": "x", "u": "b"}, {"t": 0, "d": "y", "u": "c"}]
    shelf.add(decoded(shelf.schema, records))
    found = {r["d"]: r for r in shelf.rows(shelf.files)}
    assert {d: len(contents("hll", r["users"])["coupons"]) for d, r in found.items()} == {"x": 2, "y": 0}
    assert {contents("quantiles", r["times"])["n"] for r in found.values()} == {0}


def test_values_of_every_kind_in_one_batch(tmp_path: Path) -> None:
    """A long, three doubles, one of them beyond a long, and four texts, three of which are in arrays alone."""
    shelf = Shelf(tmp_path, schema_of([HLL, THETA]))
    values = [1, 2.5, "a", 2**63, ["1", "x", None], None, "", 1.0, [["a"], "a"], 1, float(2**63)]
    shelf.add(decoded(shelf.schema, [{"t": 0, "d": "x", "u": value} for value in values]))
    [row] = shelf.rows(shelf.files)
    distinct = {("long", 1), ("double", 2.5), ("double", 2.0**63), ("double", 1.0), "a", "1", "x", "[a]"}
    assert len(contents("theta", row["theta"])["hashes"]) == len(distinct)
    assert len(contents("hll", row["users"])["coupons"]) == len(distinct)


@pytest.mark.parametrize(("value", "least"), [("0x1p99999", math.inf), ("-0x1p99999", -math.inf), ("0x1p-2", 0.25)])
def test_texts_of_hexadecimal_digits_are_numbers_however_large(value: str, least: float) -> None:
    rows = decoded(schema_of([QUANTILES]), [{"t": 0, "d": "x", "ms": value}])
    [stored] = rows.column("times").to_pylist()
    assert datasketches.quantiles_doubles_sketch.deserialize(stored).get_min_value() == least


@pytest.mark.parametrize(
    ("metric", "value", "problem"),
    [
        (HLL, True, "field 'u' is neither a text, a number nor an array of them"),
        (THETA, {"k": 1}, "field 'u' is neither a text"),
        (QUANTILES, "no number", "field 'ms' is neither a number nor a COMPLEX<quantilesDoublesSketch> in base64"),
        (QUANTILES, [1], "field 'ms' is neither a number"),
        (HLL, -math.inf, "field 'u' is neither a text"),
        (THETA, math.inf, "field 'u' is neither a text"),
        (QUANTILES, -math.inf, "field 'ms' is neither a number"),
        ({**HLL, "type": "HLLSketchMerge"}, 5, "field 'u' is not a COMPLEX<HLLSketch> in base64"),
        ({**HLL, "type": "HLLSketchMerge"}, "AQMDAAAeAAA=", "field 'u' is not a COMPLEX<HLLSketch>"),
        ({**THETA, "isInputThetaSketch": True}, "x", "field 'u' is not a COMPLEX<thetaSketch> in base64"),
    ],
)
def test_what_no_sketch_is_made_of_is_told(metric: dict[str, Any], value: Any, problem: str) -> None:
    decoder = JsonDecoder(schema_of([metric]), input_format=ANY_NUMBER)
    good = {"t": 0, "d": "x"}
    found = decoder.decode(
        [json.dumps(r).encode() for r in (good, {**good, metric["fieldName"]: value})], MessageWindow()
    )
    decoder.close()
    assert list(found.processed_with_error) == [1]
    assert found.processed_with_error[1].startswith(problem)
    nothing, fault = found.rows.column(metric["name"]).to_pylist()
    assert fault == nothing


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ({**HLL, "lgK": 3}, "greater than or equal to 4"),
        ({**HLL, "lgK": 22}, "less than or equal to 21"),
        ({**HLL, "tgtHllType": "HLL_5"}, "HLL_4"),
        ({**HLL, "stringEncoding": "latin1"}, "utf16le"),
        ({**HLL, "size": 64}, "size"),
        ({**THETA, "size": 100}, "100 is not a power of two"),
        ({**THETA, "size": 16}, "greater than or equal to 32"),
        ({**QUANTILES, "k": 3}, "3 is not a power of two"),
        ({**QUANTILES, "k": 65_536}, "less than or equal to 32768"),
        ({"type": "HLLSketchBuild", "name": "users"}, "fieldName"),
    ],
)
def test_options_that_are_refused(metric: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        schema_of([metric])


def test_segments_are_re_indexed(tmp_path: Path) -> None:
    """Sketches are merged again, of a coarser granularity; what would read them as values is refused."""
    records = [{**r, "t": START_MS + 3_600_000 * n} for n, r in enumerate(records_of(60))]
    source = {"type": "inline", "data": "\n".join(map(json.dumps, records))}
    parts = {
        "dimensionsSpec": {"dimensions": ["d"]},
        "metricsSpec": ALL,
        "granularitySpec": {"queryGranularity": "HOUR"},
    }
    first = Run(spec_of(source, {"type": "json"}, schema=parts), tmp_path, deep=tmp_path)
    shelf = Shelf(tmp_path, schema_of())
    shelf.files = first.written(tmp_path)
    again = {
        "timestampSpec": {"column": "__time", "format": "millis"},
        "dimensionsSpec": {"dimensions": ["d"]},
        "granularitySpec": {"segmentGranularity": "YEAR", "queryGranularity": "YEAR"},
        "metricsSpec": [
            {"type": "longSum", "name": "n", "fieldName": "n"},
            {"type": "HLLSketchMerge", "name": "users", "fieldName": "users"},
            {"type": "thetaSketch", "name": "theta", "fieldName": "theta", "isInputThetaSketch": True},
            {"type": "quantilesDoublesSketch", "name": "times", "fieldName": "times"},
        ],
    }
    druid = {"type": "druid", "dataSource": "w", "interval": "2025-01-01/P1Y"}
    run = Run(spec_of(druid, None, schema=again), tmp_path, deep=tmp_path, segments=shelf.inputs)
    assert (run.summed("processed"), run.summed("parse_exceptions")) == (60, 0)
    assert told(shelf.rows(run.written(tmp_path / "."))) == expected_of(records)
    for wrong in (
        {**again, "metricsSpec": [{"type": "HLLSketchBuild", "name": "m", "fieldName": "users"}]},
        {**again, "metricsSpec": [], "dimensionsSpec": {"dimensions": ["theta"]}},
        {**again, "metricsSpec": [], "dimensionsSpec": {"useSchemaDiscovery": True}},
    ):
        with pytest.raises(InputRefused, match="has sketches"):
            Run(spec_of(druid, None, schema=wrong), tmp_path, deep=tmp_path, segments=shelf.inputs)


def test_newest_rows_show_what_sketches_estimate(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, schema_of())
    shelf.add(decoded(shelf.schema, [{"t": 0, "d": "x", "u": n % 5, "ms": n} for n in range(1, 10)] + [{"t": 0}]))

    def asked(**order: Any) -> dict[Any, dict[str, Any]]:
        [file] = shelf.files
        answer = read_newest(
            RowsOrder(
                deep_storage=str(tmp_path / "deep"), reading_s=60.0, limit=10, last_ms=[DAY_MS],
                files=[RegisteredFile(path=file.path, size_bytes=file.size_bytes, sha256=file.sha256)],
                footer=True, **{"masked": False, **order},
            )
        )  # fmt: skip
        assert answer.problems == []
        assert json.loads(answer.model_dump_json())["rows"] == answer.rows
        names = [c.name for c in answer.columns]
        return {row[names.index("n")]: dict(zip(names, row, strict=True)) for row in answer.rows}

    found = asked()
    assert found[9]["users"] == found[9]["theta"] == {"estimate": 5.0}
    assert found[9]["times"] == {"n": 9, "min": 1.0, "median": 5.0, "max": 9.0}
    assert (found[1]["users"], found[1]["times"]) == ({"estimate": 0.0}, {"n": 0})
    assert asked(masked_columns={"users": "admin"})[9]["users"] == {"masked": True, "role": "admin"}
    assert asked(masked=True)[9]["users"] == {"estimate": 5.0}
