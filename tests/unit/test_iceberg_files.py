"""The files of an Iceberg snapshot, read back by PyIceberg: partitions, columns by id, and every value of the rows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable

from controlplane.catalog.columns import highest_id, table_schema
from controlplane.catalog.metadata import table_metadata
from controlplane.segments.models import Column, Snapshot
from ingestion.client.memory import MemoryColumns
from ingestion.rows import JSON_TYPE, LIST_TYPE
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.iceberg import SnapshotWriter
from ingestion.segments.intervals import Interval
from ingestion.sketches.types import SKETCH_TYPES, sketches
from ingestion.specs.iceberg_partitions import Partition
from ingestion.specs.messages.column_ids import ColumnsAnswer, ColumnsRequest
from ingestion.specs.messages.iceberg import ListedManifest, ManifestContent, ManifestList, ManifestPage, SnapshotOrder
from ingestion.specs.messages.protocol import SegmentFile
from tests.support.desk import DAY_MS, Desk, batch_of, schema_of

NOW = datetime(2025, 6, 3, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
JUNE = datetime(2025, 6, 1, tzinfo=UTC)


class Registry:
    """Hands out ids, and has the columns as the metadata store has them."""

    def __init__(self) -> None:
        self._ids = MemoryColumns()
        self.columns: dict[int, Column] = {}

    def ids(self) -> ColumnIds:
        return ColumnIds(self._ask)

    def _ask(self, request: ColumnsRequest) -> ColumnsAnswer:
        answer = self._ids.ids(request)
        for column, known in zip(request.columns, answer.ids, strict=True):
            self.columns[known.id] = Column(name=column.name, type=column.type, number=known.id, element=known.element)
        return answer

    def by_id(self) -> list[Column]:
        return [self.columns[number] for number in sorted(self.columns)]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path, schema_of())
    yield desk
    desk.index.close()


@pytest.fixture(autouse=True)
def json_as_strings() -> Iterator[None]:
    """What PyIceberg needs of PyArrow to read a column of JSON."""
    pa.unregister_extension_type("arrow.json")
    yield
    pa.register_extension_type(JSON_TYPE)


def write(desk: Desk, registry: Registry, rows: pa.Table) -> list[SegmentFile]:
    desk.add(rows)
    return desk.index.write(version="v", storage=desk.storage, ids=registry.ids())


def table_of(desk: Desk, registry: Registry, files: Sequence[SegmentFile]) -> StaticTable:
    """A table with one snapshot of these segments, opened by its metadata."""
    columns = registry.by_id()
    root = f"file://{desk.deep}"
    order = SnapshotOrder(
        deep_storage=str(desk.deep),
        root=root,
        datasource="d",
        number=7,
        table_schema=json.dumps(table_schema(columns, highest_id(columns))),
    )
    path = write_snapshot(desk, order, files)
    snapshot = Snapshot(
        number=7,
        changed_at=NOW,
        last_column=highest_id(columns),
        path=path,
        segments=len(files),
        rows=sum(f.rows for f in files),
        size_bytes=sum(f.size_bytes for f in files),
    )
    metadata = desk.scratch.parent / "1.metadata.json"
    content = table_metadata(root=root, name="d", identity=uuid4(), columns=columns, snapshots=[snapshot])
    metadata.write_text(json.dumps(content))
    return StaticTable.from_metadata(str(metadata))


def write_snapshot(desk: Desk, order: SnapshotOrder, files: Sequence[SegmentFile]) -> str:
    """A manifest for each interval, and their list; its path."""
    writer = SnapshotWriter(order, desk.storage, desk.scratch)
    intervals: dict[Interval, list[SegmentFile]] = {}
    for file in files:
        intervals.setdefault((file.interval_start, file.interval_end), []).append(file)
    contents = [
        ManifestContent(start=start, end=end, files=json.dumps([listed_file(f) for f in theirs]))
        for (start, end), theirs in intervals.items()
    ]
    written = writer.manifests(ManifestPage(manifests=contents))
    listed = []
    for ((start, end), theirs), made in zip(intervals.items(), written, strict=True):
        partition = Partition.of(start, end)
        rows = sum(f.rows for f in theirs)
        listed.append(
            ListedManifest(
                path=made.path,
                length=made.length,
                spec=partition.spec,
                value=partition.value,
                number=order.number,
                segments=len(theirs),
                rows=rows,
            )
        )
    first = files[0]
    return writer.manifest_list(ManifestList(start=first.interval_start, end=first.interval_end, manifests=listed))[
        0
    ].path


def listed_file(file: SegmentFile) -> tuple[str, int, int, int, int]:
    low, high = ((t - EPOCH) // timedelta(microseconds=1) for t in (file.min_time, file.max_time))
    return file.path, file.rows, file.size_bytes, low, high


def read_directly(desk: Desk, files: Sequence[SegmentFile]) -> list[dict[str, Any]]:
    return [row for f in files for row in pq.read_table(desk.deep / f.path).to_pylist()]


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(row["__time"]))


def test_every_type_is_read_as_it_lies_in_the_files(desk: Desk) -> None:
    registry = Registry()
    documents = pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(['{"a":{"b":[1,null]}}', None, "[]"]))
    rows = batch_of(
        [0, 1, DAY_MS + 5],
        n=pa.array([1, None, 2**60]),
        price=pa.array([0.5, None, -1.5]),
        name=pa.array(["é", None, ""]),
        yes=pa.array([True, None, False]),
        tags=pa.array([["a", None, "b"], None, []], LIST_TYPE),
        document=documents,
    )
    files = write(desk, registry, rows)
    assert len(files) == 2
    table = table_of(desk, registry, files)
    assert in_order(table.scan().to_arrow().to_pylist()) == in_order(read_directly(desk, files))
    assert table.scan().count() == 3
    kinds = {field.name: str(field.field_type) for field in table.schema().fields}
    assert kinds == {
        "__time": "timestamptz",
        "n": "long",
        "price": "double",
        "name": "string",
        "yes": "boolean",
        "tags": "list<string>",
        "document": "string",
    }


@pytest.fixture
def sketches_as_bytes() -> Iterator[None]:
    """Readers do not know Headgate's types of Arrow."""
    for kind in SKETCH_TYPES:
        pa.unregister_extension_type(f"headgate.{kind}")
    yield
    for known in SKETCH_TYPES.values():
        pa.register_extension_type(known)


@pytest.mark.usefixtures("sketches_as_bytes")
def test_sketches_are_bytes_and_other_times_are_times(desk: Desk) -> None:
    registry = Registry()
    kinds = {f"s{n}": kind for n, kind in enumerate(SKETCH_TYPES.values())}
    columns = {name: sketches(pa.array([name.encode(), None]), kind) for name, kind in kinds.items()}
    at = pa.array([-1, None], pa.int64()).view(pa.timestamp("ms", "UTC"))
    files = write(desk, registry, batch_of([0, 1], at=at, **columns))
    table = table_of(desk, registry, files)
    first, second = in_order(table.scan().to_arrow().to_pylist())
    assert {name: first[name] for name in kinds} == {name: name.encode() for name in kinds}
    assert first["at"] == datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    assert [second[name] for name in ("at", *kinds)] == [None] * (1 + len(kinds))
    found = {field.name: str(field.field_type) for field in table.schema().fields}
    assert found == {"__time": "timestamptz", "at": "timestamptz", **dict.fromkeys(kinds, "binary")}


def test_a_scan_of_a_day_plans_its_files_only(desk: Desk) -> None:
    registry = Registry()
    files = write(desk, registry, batch_of([0, 60_000, DAY_MS, 3 * DAY_MS], n=pa.array([1, 2, 3, 4])))
    table = table_of(desk, registry, files)
    late = table.scan(row_filter="__time >= '2025-06-02T00:00:00+00:00'")
    assert len(list(table.scan().plan_files())) == 3
    assert sorted(task.file.file_path for task in late.plan_files()) == sorted(
        f"file://{desk.deep}/{f.path}" for f in files if f.interval_start.day > 1
    )
    assert sorted(late.to_arrow().column("n").to_pylist()) == [3, 4]
    assert table.scan(row_filter="n = 2").to_arrow().column("n").to_pylist() == [2]


@pytest.mark.parametrize("granularity", ["HOUR", "WEEK", "MONTH", "QUARTER", "YEAR", "ALL"])
def test_a_filter_finds_the_rows_of_intervals_of_any_length(tmp_path: Path, granularity: str) -> None:
    """Also of a week across a year's end, before 1970, and at the end of time."""
    desk, registry = Desk(tmp_path, schema_of(granularity=granularity)), Registry()
    texts = ["0001-01-01T00:00", "1969-12-31T23:59", "2024-12-30T01:00", "2025-01-01T00:00", "9998-12-31T23:59"]
    times = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in texts]
    rows = batch_of([(at - JUNE) // timedelta(milliseconds=1) for at in times], n=pa.array(range(len(times))))
    files = write(desk, registry, rows)
    desk.index.close()
    table = table_of(desk, registry, files)
    for place, at in enumerate(times):
        for filter, expected in (("=", [place]), (">", range(place + 1, 5)), ("<=", range(place + 1))):
            found = table.scan(row_filter=f"__time {filter} '{at.isoformat()}'").to_arrow()["n"].to_pylist()
            assert sorted(found) == list(expected), (filter, at)


def test_a_column_that_changed_its_type_is_two(desk: Desk, tmp_path: Path) -> None:
    registry, later = Registry(), Desk(tmp_path / "later", schema_of())
    later.storage = desk.storage
    files = write(desk, registry, batch_of([0], n=pa.array([5]), other=pa.array(["x"])))
    files += write(later, registry, batch_of([1], n=pa.array(["five"])))
    later.index.close()
    rows = in_order(table_of(desk, registry, files).scan().to_arrow().to_pylist())
    assert [(r["n"], r["n__long"], r["other"]) for r in rows] == [(None, 5, "x"), ("five", None, None)]


def test_hidden_columns_hide_nothing_else(tmp_path: Path) -> None:
    """Of a rollup with first and last: its files have columns without ids."""
    metrics = [{"type": "longFirst", "name": "first", "fieldName": "n"}]
    desk, registry = Desk(tmp_path, schema_of(rollup=True, metrics=metrics)), Registry()
    files = write(desk, registry, batch_of([0, 0], item=pa.array(["a", "a"]), first=pa.array([1, 2])))
    desk.index.close()
    assert any(name.startswith("__headgate_") for name in pq.read_schema(desk.deep / files[0].path).names)
    [row] = table_of(desk, registry, files).scan().to_arrow().to_pylist()
    assert (set(row), row["item"], row["first"]) == ({"__time", "item", "first"}, "a", 1)


@pytest.mark.parametrize(
    ("start", "end", "partition"),
    [
        ("2025-06-01T05:00", "2025-06-01T06:00", Partition(1, 20_240 * 24 + 5)),
        ("2025-06-01T05:15", "2025-06-01T05:30", Partition(1, 20_240 * 24 + 5)),
        ("2025-06-01T00:00", "2025-06-02T00:00", Partition(2, 20_240)),
        ("2025-06-01T00:00", "2025-07-01T00:00", Partition(3, 665)),
        ("2025-01-01T00:00", "2026-01-01T00:00", Partition(4, 55)),
        ("2025-05-26T00:00", "2025-06-02T00:00", Partition(4, 55)),
        ("2024-12-30T00:00", "2025-01-06T00:00", Partition(0, None)),
        ("1969-12-31T23:00", "1970-01-01T00:00", Partition(1, -1)),
        ("0001-01-01T00:00", "9999-12-31T00:00", Partition(0, None)),
    ],
)
def test_an_interval_takes_the_finest_unit_that_holds_it(start: str, end: str, partition: Partition) -> None:
    assert Partition.of(*(datetime.fromisoformat(t).replace(tzinfo=UTC) for t in (start, end))) == partition


def column(number: int, name: str, kind: str, element: int | None = None) -> Column:
    return Column(number=number, name=name, type=kind, element=element)


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (
            [(2, "Item", "string"), (3, "item", "long"), (4, "ITEM", "long")],
            ["Item", "item_", "ITEM__"],
        ),
        ([(2, "item", "string"), (3, "Item", "string"), (4, "item", "long")], ["item__string", "Item_", "item"]),
        ([(2, "n", "long"), (3, "n", "string"), (4, "N__LONG", "string")], ["n__long_", "n", "N__LONG"]),
        ([(2, "Ä", "string"), (3, "ä", "string")], ["Ä", "ä_"]),
        ([(2, "s", "COMPLEX<thetaSketch>"), (3, "s", "COMPLEX<HLLSketch>")], ["s__thetaSketch", "s"]),
        ([(2, "tags", "strings", 3), (4, "tags.element", "string")], ["tags", "tags.element_"]),
        ([(2, "TAGS.element", "string"), (3, "tags", "strings", 4)], ["TAGS.element", "tags_"]),
        ([(2, "a", "json"), (3, "a.b", "string"), (4, "", "string"), (5, " ", "string")], ["a", "a.b", "", " "]),
    ],
)
def test_names_differ_by_more_than_case(columns: list[Any], names: list[str]) -> None:
    schema = table_schema([column(1, "__time", "timestamp"), *(column(*c) for c in columns)], 9)
    assert [field["name"] for field in schema["fields"]] == ["__time", *names]
    Schema.model_validate(schema)


def test_rows_of_columns_that_differ_by_case_are_kept_apart(desk: Desk) -> None:
    registry = Registry()
    files = write(desk, registry, batch_of([0], Item=pa.array(["A"]), item=pa.array([7])))
    [row] = table_of(desk, registry, files).scan().to_arrow().to_pylist()
    names = [name for name in row if name.lower().startswith("item")]
    assert sorted(row[name] for name in names if name.startswith("I")) == ["A"]
    assert (len({name.lower() for name in names}), 7 in row.values()) == (2, True)


def test_the_process_that_writes_snapshots_loads_no_models_of_specs() -> None:
    """It starts for each snapshot, once per second at most: they took it a quarter of a second."""
    program = "import sys, ingestion.segments.iceberg; print('ingestion.specs.tasks.ingestion_spec' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "False"


def test_names_never_meet() -> None:
    columns = [
        column(1, "__time", "timestamp"),
        column(2, "n", "long"),
        column(3, "n__long", "string"),
        column(4, "n", "strings", element=5),
        column(6, "n.element", "long"),
        column(7, "n", "COMPLEX<thetaSketch>"),
    ]
    names = [field["name"] for field in table_schema(columns, 7)["fields"]]
    assert names == ["__time", "n__long_", "n__long", "n__strings", "n.element", "n"]
    assert [f["name"] for f in table_schema(columns, 2)["fields"]] == ["__time", "n"]
    assert table_schema([], 1)["fields"] == [{"id": 1, "name": "__time", "required": False, "type": "timestamptz"}]
