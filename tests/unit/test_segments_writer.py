"""Segment files: intervals, order, metadata, offsets, and what happens when the disk is full."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow
from ingestion.segments.batch import write_segments
from ingestion.segments.errors import DamagedSegment, DeepStorageError, SegmentError
from ingestion.segments.local import LocalStorage
from ingestion.segments.names import segment_path
from ingestion.segments.reader import read_segment, verify
from ingestion.segments.record_positions import RecordPositions
from ingestion.segments.writer import columns_of
from ingestion.specs.messages.protocol import Column, SegmentFile
from ingestion.specs.offsets import expanded, ranges_of
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.schema.granularity import Granularity
from tests.support.column_ids import some_ids

pytestmark = pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
JUNE = datetime(2025, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)
VERSION = "2025-06-10T08:00:00.000Z"

Writer = Callable[..., list[SegmentFile]]


def schema_of(granularity: str = "DAY") -> DataSchema:
    return DataSchema.model_validate(
        {
            "dataSource": "flights",
            "timestampSpec": {"column": "t"},
            "dimensionsSpec": {"useSchemaDiscovery": True},
            "granularitySpec": {"segmentGranularity": granularity},
        }
    )


def rows_of(times: list[datetime], **columns: pa.Array) -> pa.Table:
    """Rows as the decoder gives them, row r at payload index r."""
    ms = pa.array([(t - EPOCH) // timedelta(milliseconds=1) for t in times], pa.int64())
    index = pa.array(range(len(times)), pa.int32())
    return pa.table([index, ms.view(pa.timestamp("ms", "UTC")), *columns.values()], names=["__row", "__time", *columns])


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "deep")


@pytest.fixture
def write(tmp_path: Path, storage: LocalStorage) -> Writer:
    def written(rows: pa.Table, offsets: list[int] | None = None, granularity: str = "DAY", **more: Any) -> Any:
        places = np.arange(len(rows)) if offsets is None else np.array(offsets)
        settings_ = {"partitions": np.zeros(len(places), np.int32), "version": VERSION, **more}
        return write_segments(
            rows,
            offsets=places,
            schema=schema_of(granularity),
            storage=storage,
            scratch=tmp_path / "s",
            ids=some_ids(),
            **settings_,
        )

    return written


def test_one_file_for_each_interval(write: Writer, storage: LocalStorage, tmp_path: Path) -> None:
    times = [
        JUNE + DAY,
        JUNE,
        JUNE + DAY - timedelta(milliseconds=1),
        JUNE + 40 * DAY,
        JUNE - timedelta(milliseconds=1),
    ]
    files = write(rows_of(times, n=pa.array([10, 11, 12, 13, 14])), [100, 101, 103, 104, 105])
    assert [(f.interval_start, f.interval_end, f.rows) for f in files] == [
        (JUNE - DAY, JUNE, 1),
        (JUNE, JUNE + DAY, 2),
        (JUNE + DAY, JUNE + 2 * DAY, 1),
        (JUNE + 40 * DAY, JUNE + 41 * DAY, 1),
    ]
    assert [f.offsets for f in files] == [
        {0: [(105, 106)]},
        {0: [(101, 102), (103, 104)]},
        {0: [(100, 101)]},
        {0: [(104, 105)]},
    ]
    assert [read_segment(storage, f.path).column("n").to_pylist() for f in files] == [[14], [11, 12], [10], [13]]
    assert (files[1].min_time, files[1].max_time) == (JUNE, JUNE + DAY - timedelta(milliseconds=1))
    for file in files:
        verify(storage, file)
    assert list((tmp_path / "s").iterdir()) == []


def test_the_files_content_and_metadata(write: Writer, storage: LocalStorage) -> None:
    columns = {
        "text": pa.array(["b", None]),
        "long": pa.array([1, 2], pa.int64()),
        "double": pa.array([1.5, None]),
        "flag": pa.array([True, None]),
        "json": pa.array(['{"a":1}', None], pa.json_()),
        "": pa.array(["no name", None]),
        "a.b\0": pa.array(["odd name", None]),
    }
    rows = rows_of([JUNE, JUNE + timedelta(milliseconds=1)], **columns)
    (file,) = write(rows)
    stored = rows.remove_column(0)
    assert read_segment(storage, file.path).cast(stored.schema).equals(stored)
    with storage.open(file.path) as handle:
        parquet = pq.ParquetFile(handle)
        metadata = parquet.metadata.metadata
        assert parquet.metadata.row_group(0).column(0).compression == "ZSTD"
        assert parquet.schema_arrow.names[:2] == ["__time", "text"]
    assert metadata[b"headgate.datasource"] == b"flights"
    assert metadata[b"headgate.interval"] == b"2025-06-01T00:00:00.000Z/2025-06-02T00:00:00.000Z"
    assert metadata[b"headgate.version"] == VERSION.encode()
    kinds = ["timestamp", "string", "long", "double", "boolean", "json", "string", "string"]
    assert file.columns == [Column(name=n, type=k) for n, k in zip(["__time", *columns], kinds, strict=True)]  # type: ignore[arg-type]


def test_rows_are_sorted_by_time_then_dimensions(write: Writer, storage: LocalStorage) -> None:
    times = [JUNE + timedelta(hours=1), JUNE, JUNE, JUNE, JUNE]
    rows = rows_of(
        times,
        j=pa.array(["1", "2", "3", "4", "5"], pa.json_()),
        b=pa.array(["x", "b", "a", "b", None]),
        a=pa.array([1, 2, 3, 1, 0]),
    )
    (file,) = write(rows)
    assert read_segment(storage, file.path).select(["b", "a"]).to_pylist() == [
        {"b": "a", "a": 3},
        {"b": "b", "a": 1},
        {"b": "b", "a": 2},
        {"b": None, "a": 0},
        {"b": "x", "a": 1},
    ]


def test_long_intervals_are_split(write: Writer, storage: LocalStorage) -> None:
    times = [JUNE + timedelta(minutes=i) for i in range(5)] + [JUNE + DAY]
    files = write(rows_of(times), max_rows_per_segment=2)
    assert [f.rows for f in files] == [2, 2, 1, 1]
    assert [f.offsets[0] for f in files] == [[(0, 2)], [(2, 4)], [(4, 5)], [(5, 6)]]
    assert len({f.path for f in files}) == 4
    assert files[0].max_time == JUNE + timedelta(minutes=1)


def test_partitions_and_offsets_are_those_of_the_payload_index(write: Writer) -> None:
    """Payloads 0, 2 and 5 became rows; the others ended otherwise."""
    rows = rows_of([JUNE, JUNE, JUNE]).set_column(0, "__row", pa.array([0, 2, 5], pa.int32()))
    (file,) = write(rows, [70, 71, 72, 73, 74, 75], partitions=np.array([3, 3, 1, 1, 3, 3], np.int32))
    assert file.offsets == {3: [(70, 71), (75, 76)], 1: [(72, 73)]}


def test_no_rows_no_files(write: Writer) -> None:
    assert write(rows_of([])) == []


def test_a_year_of_days_in_one_batch(write: Writer, storage: LocalStorage) -> None:
    times = [JUNE + (i * 7 % 365) * DAY for i in range(730)]
    files = write(rows_of(times, n=pa.array(range(730))))
    assert [f.interval_start for f in files] == [JUNE + i * DAY for i in range(365)]
    assert {f.rows for f in files} == {2}
    assert sorted(o for f in files for o in expanded(f.offsets[0])) == list(range(730))
    assert read_segment(storage, files[14].path).column("n").to_pylist() == [2, 367]


@pytest.mark.parametrize("granularity", [g.value for g in Granularity if g is not Granularity.NONE])
def test_every_granularity_has_its_interval(write: Writer, granularity: str) -> None:
    time = datetime(2024, 2, 29, 13, 47, 31, 123_000, tzinfo=UTC)
    (file,) = write(rows_of([time]), granularity=granularity)
    assert (file.interval_start, file.interval_end) == Granularity(granularity).bucket(time)
    assert file.min_time == file.max_time == time


def test_the_decoders_rows_are_written_and_read_back(write: Writer, storage: LocalStorage) -> None:
    """Also a field that is called like the decoder's own row index."""
    decoder = JsonDecoder(schema_of())
    payloads = [json.dumps({"t": "2025-06-01", "__row": f"r{i}", "n": i, "o": {"i": i}}).encode() for i in range(3)]
    decoded = decoder.decode([payloads[0], b"?", *payloads[1:]], MessageWindow())
    decoder.close()
    (file,) = write(decoded.rows, [5, 6, 7, 8])
    assert file.offsets == {0: [(5, 6), (7, 9)]}
    assert read_segment(storage, file.path).to_pylist() == [
        {"__time": JUNE, "__row": f"r{i}", "n": i, "o": f'{{"i":{i}}}'} for i in range(3)
    ]


def test_a_full_disk_leaves_nothing_behind(write: Writer, tmp_path: Path) -> None:
    """Row 26 of the failure matrix: neither a file nor half of one. It meets the scratch folder, which comes first."""
    rows = rows_of([JUNE] * 50_000, n=pa.array(np.random.default_rng(1).integers(0, 2**60, 50_000)))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(DeepStorageError) as caught:
            write(rows)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not caught.value.permanent
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
    assert write(rows)[0].rows == 50_000


def test_a_storage_that_refuses_leaves_no_scratch_file(write: Writer, tmp_path: Path) -> None:
    """Row 26 of the failure matrix: nor does one that refuses for good."""
    (tmp_path / "deep").write_text("a file where the folder should be")
    with pytest.raises(DeepStorageError) as caught:
        write(rows_of([JUNE, JUNE + DAY]))
    assert caught.value.permanent
    assert list((tmp_path / "s").iterdir()) == []


class Forgetful(LocalStorage):
    """A device that says it has written, and has not."""

    def put(self, local: Path, relative: str) -> None:
        super().put(local, relative)
        with (self._root / relative).open("r+b") as file:
            file.seek(100)
            file.write(bytes(8))


def test_what_is_stored_is_read_before_it_is_registered(tmp_path: Path) -> None:
    """Row 26 of the failure matrix: a file of the right size with other bytes is not published."""
    with pytest.raises(
        DeepStorageError, match=r"stored file differs from the written one: .* has the SHA-256"
    ) as caught:
        write_segments(
            rows_of([JUNE] * 100, n=pa.array(range(100))),
            np.zeros(100, np.int64),
            np.arange(100),
            schema=schema_of(),
            version=VERSION,
            storage=Forgetful(tmp_path / "deep"),
            scratch=tmp_path / "s",
            ids=some_ids(),
        )
    assert not caught.value.permanent
    assert list((tmp_path / "s").iterdir()) == []


def test_damage_is_found(write: Writer, storage: LocalStorage, tmp_path: Path) -> None:
    """Row 26 of the failure matrix: a file that was changed, torn or deleted later."""
    (file,) = write(rows_of([JUNE]))
    place = tmp_path / "deep" / file.path
    content = place.read_bytes()
    place.write_bytes(content[:-1] + b"?")
    with pytest.raises(DamagedSegment, match="SHA-256"):
        verify(storage, file)
    with pytest.raises(DamagedSegment, match="Parquet"):
        read_segment(storage, file.path)
    place.write_bytes(content[:-1])
    with pytest.raises(DamagedSegment, match="bytes"):
        verify(storage, file)
    place.unlink()
    with pytest.raises(DamagedSegment, match="does not exist"):
        verify(storage, file)


def test_a_column_of_another_type_is_refused() -> None:
    with pytest.raises(SegmentError, match="int8"):
        columns_of(pa.schema([("a", pa.int8())]))


@pytest.mark.parametrize(
    ("version", "folder"),
    [
        (VERSION, "2025-06-10T08-00-00.000Z"),
        ("v1", "v1"),
        ("../../etc", "_.._.._etc"),
        ("..", "_.."),
        (".", "_."),
        ("", "_"),
        ("a b/ü\0", "a_b___"),
    ],
)
def test_paths_are_safe(version: str, folder: str) -> None:
    path = segment_path("flights", (JUNE, JUNE + DAY), version, UUID(int=1))
    assert path == (
        f"flights/2025-06-01T00-00-00.000Z_2025-06-02T00-00-00.000Z/{folder}/00000000-0000-0000-0000-000000000001.parquet"
    )


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), min_size=1))
def test_offset_ranges_are_those_of_the_specs(places: list[tuple[int, int]]) -> None:
    partitions, offsets = np.array(places).T
    expected = {p: ranges_of(o for q, o in places if q == p) for p in {p for p, _ in places}}
    known = RecordPositions()
    known.add(partitions, offsets)
    assert known.ranges(0, np.ones(len(places), np.bool_)) == expected


@settings(max_examples=30)
@given(
    days=st.lists(st.integers(-400, 400), min_size=1, max_size=40),
    granularity=st.sampled_from(["DAY", "WEEK", "MONTH", "YEAR", "ALL"]),
    most=st.integers(1, 10),
)
def test_every_row_is_in_one_file_of_its_interval(
    tmp_path_factory: pytest.TempPathFactory, days: list[int], granularity: str, most: int
) -> None:
    place = tmp_path_factory.mktemp("segments")
    storage = LocalStorage(place / "deep", fsync=False)
    times = [JUNE + d * DAY for d in days]
    files = write_segments(
        rows_of(times, n=pa.array(range(len(days)))),
        np.zeros(len(days), np.int64),
        np.arange(len(days)) + 1000,
        schema=schema_of(granularity),
        version="v",
        storage=storage,
        scratch=place / "scratch",
        ids=some_ids(),
        max_rows_per_segment=most,
    )
    seen = []
    for file in files:
        held = read_segment(storage, file.path).column("n").to_pylist()
        seen += held
        assert file.rows == len(held) <= most
        assert {Granularity(granularity).bucket(times[n]) for n in held} == {(file.interval_start, file.interval_end)}
        assert sorted(expanded(file.offsets[0])) == sorted(n + 1000 for n in held)
        assert (file.min_time, file.max_time) == (min(times[n] for n in held), max(times[n] for n in held))
    assert sorted(seen) == list(range(len(days)))
