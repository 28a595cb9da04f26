"""What an ``indexSpec`` makes of Parquet's columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestion.segments.batch import write_segments
from ingestion.segments.encoding import mostly_distinct, parquet_options
from ingestion.segments.local import LocalStorage
from ingestion.specs.errors import SpecError
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.schema.index_spec import IndexSpec
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.support.column_ids import some_ids
from tests.support.django_cast import spec_for

ROWS = 500
COLUMNS = {
    "city": pa.array([f"city {n % 7}" for n in range(ROWS)]),
    "n": pa.array([n % 5 for n in range(ROWS)]),
    "x": pa.array([n / 3 for n in range(ROWS)]),
    "j": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}'] * ROWS)),
    "a.b": pa.array(["dotted"] * ROWS),
}


def written(tmp_path: Path, **index_spec: Any) -> pq.ParquetFile:
    times = pa.array([1_748_736_000_000 + n for n in range(ROWS)]).view(pa.timestamp("ms", "UTC"))
    rows = pa.table({"__row": pa.array(range(ROWS), pa.int32()), "__time": times, **COLUMNS})
    storage = LocalStorage(tmp_path / "deep")
    [segment] = write_segments(
        rows,
        np.zeros(ROWS, np.int64),
        np.arange(ROWS),
        schema=DataSchema.model_validate({"dataSource": "d", "timestampSpec": {"column": "t"}}),
        version="v",
        storage=storage,
        scratch=tmp_path / "scratch",
        ids=some_ids(),
        index_spec=IndexSpec.model_validate(index_spec),
    )
    file = pq.ParquetFile(tmp_path / "deep" / segment.path)
    table = file.read()
    assert table["city"].to_pylist() == COLUMNS["city"].to_pylist()
    assert table["n"].to_pylist() == COLUMNS["n"].to_pylist()
    return file


def compression(file: pq.ParquetFile) -> dict[str, str]:
    group = file.metadata.row_group(0)
    return {c.path_in_schema: c.compression for c in map(group.column, range(group.num_columns))}


def test_without_one_it_is_zstandard(tmp_path: Path) -> None:
    assert set(compression(written(tmp_path)).values()) == {"ZSTD"}


def test_each_kind_of_column_has_its_own(tmp_path: Path) -> None:
    file = written(tmp_path, dimensionCompression="lz4", metricCompression="uncompressed", jsonCompression="zstd")
    assert compression(file) == {
        "__time": "UNCOMPRESSED",
        "city": "LZ4",
        "n": "LZ4",
        "x": "LZ4",
        "j": "ZSTD",
        "a.b": "LZ4",
    }


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("lz4", "LZ4"),
        ("LZ4", "LZ4"),
        ("lzf", "LZ4"),
        ("zstd", "ZSTD"),
        ("auto", "ZSTD"),
        ("uncompressed", "UNCOMPRESSED"),
        ("none", "UNCOMPRESSED"),
    ],
)
def test_names(tmp_path: Path, name: str, codec: str) -> None:
    assert compression(written(tmp_path, dimensionCompression=name))["city"] == codec


def test_columns_that_are_not_named_are_zstandard(tmp_path: Path) -> None:
    assert compression(written(tmp_path, dimensionCompression="lz4"))["__time"] == "ZSTD"


@pytest.mark.parametrize(("encoding", "dictionary"), [("longs", False), ("auto", True), (None, True)])
def test_longs(tmp_path: Path, encoding: str | None, dictionary: bool) -> None:
    group = written(tmp_path, **{"longEncoding": encoding} if encoding else {}).metadata.row_group(0)
    has = {c.path_in_schema: c.has_dictionary_page for c in map(group.column, range(group.num_columns))}
    assert has["n"] is dictionary
    assert has["city"] is True


def test_what_hardly_repeats_has_no_dictionary(tmp_path: Path) -> None:
    """Of 8,192 rows each has a time and a number of its own; of cities there are seven."""
    count = 8_192
    times = pa.array(range(count), pa.int64()).view(pa.timestamp("ms", "UTC"))
    cities = pa.array([f"city {n % 7}" for n in range(count)])
    table = pa.table({"__time": times, "n": pa.array(range(count)), "city": cities})
    assert mostly_distinct(table) == ["n"]
    pq.write_table(table, tmp_path / "f", **parquet_options(IndexSpec(), table.schema, (), mostly_distinct(table)))
    file = pq.ParquetFile(tmp_path / "f")
    assert file.read().cast(table.schema).equals(table)
    assert file.schema_arrow.field("__time").type == pa.timestamp("us", "UTC")
    group = file.metadata.row_group(0)
    encodings = {c.path_in_schema: set(c.encodings) for c in map(group.column, range(3))}
    assert "DELTA_BINARY_PACKED" in encodings["__time"] & encodings["n"]
    assert "RLE_DICTIONARY" in encodings["city"]


def test_metrics_and_lists() -> None:
    schema = pa.schema([("tags", pa.list_(pa.string())), ("sum", pa.int64())])
    spec = IndexSpec(dimensionCompression="lz4", metricCompression="none")
    assert parquet_options(spec, schema, ["sum"])["compression"] == {"tags.list.element": "lz4", "sum": "none"}


def test_a_list_is_compressed_under_that_name(tmp_path: Path) -> None:
    table = pa.table({"tags": pa.array([["a", "b"]] * ROWS)})
    options = parquet_options(IndexSpec(dimensionCompression="lz4"), table.schema)
    pq.write_table(table, tmp_path / "file", **options)
    assert compression(pq.ParquetFile(tmp_path / "file")) == {"tags.list.element": "LZ4"}


def parsed(index_spec: Any) -> IndexSpec:
    spec = spec_for("d")
    spec["tuningConfig"]["indexSpec"] = index_spec
    return parse_task_spec(spec).spec.tuningConfig.indexSpec


def test_druids_own_example_is_taken() -> None:
    spec = parsed(
        {
            "bitmap": {"type": "roaring"},
            "dimensionCompression": "lz4",
            "stringDictionaryEncoding": {"type": "frontCoded", "bucketSize": 4},
            "metricCompression": "none",
            "longEncoding": "longs",
            "complexMetricCompression": "lz4",
            "jsonCompression": "lzf",
            "segmentLoader": {"type": "mMapSegmentFactory"},
        }
    )
    assert set(spec.without_effect()) == {
        "bitmap",
        "stringDictionaryEncoding",
        "complexMetricCompression",
        "jsonCompression",
        "segmentLoader",
    }


@pytest.mark.parametrize(
    "index_spec", [{"dimensionCompression": "snappy"}, {"longEncoding": "delta"}, {"bitmap": "roaring"}, {"other": 1}]
)
def test_other_values_are_refused(index_spec: Any) -> None:
    with pytest.raises(SpecError, match=r"indexSpec"):
        parsed(index_spec)
