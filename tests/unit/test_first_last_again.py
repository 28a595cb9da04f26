"""First and last values of rows that become one again, and again: those of all records, whatever was merged before."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from ingestion.compaction.inputs import LacksExtents
from ingestion.compaction.merging import merge
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.segments.index import RowIndex
from ingestion.segments.newest_rows import read_newest
from ingestion.segments.reader import read_segments
from ingestion.specs.messages.deep_storage import RegisteredFile
from ingestion.specs.messages.newest_rows import RowsOrder
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.schema.data_schema import EXTENTS, DataSchema
from ingestion.specs.schema.granularity import Granularity
from ingestion.specs.tasks.ingestion_spec import TuningConfig
from ingestion.specs.tasks.reindexing import SegmentContents
from ingestion.specs.tasks.segment_tasks import parse_compact_task
from tests.support.batch_run import Run
from tests.support.desk import DAY_MS, JUNE_MS
from tests.support.shelf import Shelf

METRICS = [
    {"type": "count", "name": "rows"},
    {"type": "longSum", "name": "sum", "fieldName": "n"},
    *(
        {"type": f"{kind}{which}", "name": f"{kind}{which}", "fieldName": field}
        for which in ("First", "Last")
        for kind, field in (("long", "n"), ("float", "f"), ("double", "d"), ("string", "s"))
    ),
]


def schema_of(metrics: Sequence[dict[str, Any]] = METRICS, query: str = "HOUR") -> DataSchema:
    return DataSchema.model_validate(
        {
            "dataSource": "d",
            "timestampSpec": {"column": "t", "format": "millis"},
            "dimensionsSpec": {"dimensions": ["item"]},
            "metricsSpec": list(metrics),
            "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": query, "rollup": True},
        }
    )


def records(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Few times and items, so that many records are of one moment; each value is null now and then."""
    dice = random.Random(seed)
    moments = [JUNE_MS + dice.randrange(DAY_MS // 4) for _ in range(12)]
    made = []
    for n in range(count):
        values = {"n": n, "f": n / 4, "d": n / 3, "s": f"é{n}"}
        held = {name: value for name, value in values.items() if dice.random() > 0.2}
        made.append({"t": dice.choice(moments), "item": dice.choice(["a", "b", None]), **held})
    return made


def pandas_says(given: Sequence[dict[str, Any]], query: str = "h") -> pd.DataFrame:
    """One row for each hour and item: of the records in the order of time, and of one time as they came."""
    table = pd.DataFrame(list(given)).reindex(columns=["t", "item", "n", "f", "d", "s"])
    table["item"] = table["item"].fillna("")
    table["hour"] = pd.to_datetime(table["t"], unit="ms", utc=True).dt.floor(query)
    table = table.sort_values("t", kind="stable")
    groups = table.groupby(["hour", "item"])
    found = pd.DataFrame({"rows": groups.size(), "sum": groups["n"].sum(min_count=1)})
    for which, at in (("First", 0), ("Last", -1)):
        chosen = groups.nth(at).set_index(["hour", "item"])
        for kind, field in (("long", "n"), ("float", "f"), ("double", "d"), ("string", "s")):
            found[f"{kind}{which}"] = chosen[field]
    return found.reset_index()


def told(table: pd.DataFrame) -> list[list[str]]:
    """Rows of a datasource, or what pandas says, in one form."""
    frame = table.rename(columns={"__time": "hour"})
    frame["hour"] = pd.to_datetime(frame["hour"], utc=True).dt.as_unit("ms")
    frame["item"] = frame["item"].fillna("")
    for name in frame.columns:
        if name.startswith(("long", "float", "double")) or name in ("rows", "sum"):
            frame[name] = frame[name].astype(float)
    plain = frame[sorted(frame.columns)].astype(object)
    return sorted(plain.where(plain.notna(), None).map(repr).to_numpy().tolist())


def decoded(schema: DataSchema, some: Sequence[dict[str, Any]]) -> pa.Table:
    with closing(JsonDecoder(schema)) as decoder:
        found = decoder.decode([json.dumps(record).encode() for record in some])
    assert not found.unparseable
    return found.rows


def shelf_with(place: Path, given: Sequence[dict[str, Any]], cuts: Sequence[int]) -> Shelf:
    """A file for each part of the records, which came in this order."""
    shelf = Shelf(place, schema_of())
    for start, end in pairwise([0, *cuts, len(given)]):
        shelf.add(decoded(shelf.schema, given[start:end]))
    return shelf


def of_files(shelf: Shelf, files: Sequence[SegmentFile]) -> pd.DataFrame:
    return shelf.rows(list(files)).to_pandas()


@pytest.mark.parametrize("seed", range(4))
def test_generations_of_merges_keep_the_first_and_last_of_all_records(tmp_path: Path, seed: int) -> None:
    given = records(600, seed)
    cuts = sorted(random.Random(seed).sample(range(1, 600), 11))
    shelf = shelf_with(tmp_path, given, cuts)
    files = list(shelf.files)
    assert all(f.extents for f in files)
    random.Random(seed).shuffle(files)  # who merges reads them in any order
    while len(files) > 1:
        shelf.files = files[:3]
        merged = merge(shelf.job(), shelf.storage, shelf.scratch, shelf.ids)
        assert merged.files[0].extents and {c.name for c in merged.files[0].columns}.isdisjoint(EXTENTS)
        files = [*files[3:], *merged.files]
    assert told(of_files(shelf, files)) == told(pandas_says(given))
    [whole] = shelf.write(decoded(shelf.schema, given))
    hidden = [pq.read_table(shelf.storage.open(f.path)) for f in (*files, whole)]
    for name in (EXTENTS[0], EXTENTS[2]):
        assert hidden[0].column(name).to_pylist() == hidden[1].column(name).to_pylist()


def test_rows_that_wait_on_disk_keep_their_order_beside_those_in_memory(tmp_path: Path) -> None:
    given = records(500)
    schema = schema_of()
    shelf = Shelf(tmp_path, schema)
    tuning = TuningConfig.model_validate({"maxRowsInMemory": 100, "maxPendingPersists": 1})
    index = RowIndex(schema=schema, tuning=tuning, scratch=tmp_path / "scratch")
    for part in range(2):  # the second time after the first ones are written
        for start in range(part * 250, part * 250 + 250, 50):
            rows = decoded(schema, given[start : start + 50])
            index.add(rows, np.zeros(50, np.int32), np.arange(start, start + 50))
        shelf.files += index.write(version="v", storage=shelf.storage, ids=shelf.ids)
        index.clear()
    index.close()
    assert len(shelf.files) == 2
    files = merge(shelf.job(), shelf.storage, shelf.scratch, shelf.ids).files
    assert told(of_files(shelf, files)) == told(pandas_says(given))


@pytest.mark.parametrize("merged", [False, True])
def test_rows_written_anew_have_the_first_and_last_of_all_records(tmp_path: Path, merged: bool) -> None:
    """The rows of segments are records again, as for a ``compact`` task with a queryGranularity.

    What is dealt out comes in no order, as from Spark's shuffle.
    """
    given = records(600)
    shelf = shelf_with(tmp_path, given, [100, 230, 410])
    files = merge(shelf.job(), shelf.storage, shelf.scratch, shelf.ids).files if merged else shelf.files
    columns = {c.name: c.type for c in files[0].columns if c.name != "__time"}
    held = SegmentContents(columns, shelf.schema.metricsSpec, True, Granularity.DAY)
    day = {"type": "compact", "dataSource": "d", "interval": "2025-06-01/P1D"}
    spec = parse_compact_task({**day, "granularitySpec": {"queryGranularity": "DAY"}}).batch_task(held).spec
    shelf.files = files
    run = Run(spec, tmp_path, size=1, deep=tmp_path, segments=shelf.job().segments)
    random.Random(1).shuffle(run.chunks)
    [anew] = run.written(tmp_path)
    assert anew.extents
    assert told(of_files(shelf, [anew])) == told(pandas_says(given, "D"))


def test_a_file_of_an_earlier_version_is_refused_with_the_reason_and_sorted_without_rollup(tmp_path: Path) -> None:
    shelf = shelf_with(tmp_path, records(60), [20, 40])
    old = shelf.files[1]
    whole = pq.read_table(shelf.storage.open(old.path))
    stripped = tmp_path / "old.parquet"
    pq.write_table(whole.drop_columns(list(EXTENTS)), stripped)
    content = stripped.read_bytes()
    (tmp_path / "deep" / old.path).write_bytes(content)
    changes = {"size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), "extents": False}
    shelf.files[1] = old.model_copy(update=changes)
    with pytest.raises(LacksExtents, match=f"{old.path} does not have the times .* by an earlier version") as failed:
        merge(shelf.job(), shelf.storage, shelf.scratch, shelf.ids)
    assert failed.value.permanent
    [file] = merge(shelf.job(rollup=False), shelf.storage, shelf.scratch, shelf.ids).files
    assert (file.rows, file.extents) == (sum(f.rows for f in shelf.files), False)
    assert pq.read_schema(shelf.storage.open(file.path)).names == ["__time", "item", *(m["name"] for m in METRICS)]


def test_nobody_is_shown_the_hidden_columns(tmp_path: Path) -> None:
    shelf = shelf_with(tmp_path, records(60), [])
    [file] = shelf.files
    names = ["__time", "item", *(m["name"] for m in METRICS)]
    assert pq.read_schema(shelf.storage.open(file.path)).names == [*names, *EXTENTS]
    assert [c.name for c in file.columns] == names
    assert shelf.rows([file]).column_names == names
    assert read_segments(shelf.storage, [file.path]).schema.names == names
    registered = RegisteredFile(path=file.path, size_bytes=file.size_bytes, sha256=file.sha256)
    order = RowsOrder(
        deep_storage=str(tmp_path / "deep"),
        files=[registered],
        last_ms=[0],
        limit=500,
        masked=False,
        footer=True,
        reading_s=60,
    )
    answer = read_newest(order)
    assert ([c.name for c in answer.columns], len(answer.rows), answer.problems) == (names, file.rows, [])
    assert answer.footer is not None and [c.name for c in answer.footer.columns] == names
    stored = shelf.rows([file]).column("longFirst").to_pylist()
    shown = [row[names.index("longFirst")] for row in answer.rows]
    assert sorted(shown, key=repr) == sorted(stored, key=repr)


def test_a_schema_without_such_metrics_has_no_hidden_columns(tmp_path: Path) -> None:
    schema = schema_of(METRICS[:2])
    shelf = Shelf(tmp_path, schema)
    [file] = shelf.write(decoded(schema, records(20)))
    assert not file.extents
    assert pq.read_schema(shelf.storage.open(file.path)).names == ["__time", "item", "rows", "sum"]


@pytest.mark.parametrize("name", EXTENTS)
def test_no_column_has_a_hidden_ones_name(name: str, tmp_path: Path) -> None:
    named: list[dict[str, Any]] = [
        {"dimensionsSpec": {"dimensions": [name]}},
        {"metricsSpec": [{"type": "count", "name": name}]},
    ]
    for parts in named:
        with pytest.raises(ValidationError, match=f"{name} is a name of Headgate's own"):
            DataSchema.model_validate({"dataSource": "d", "timestampSpec": {}, **parts})
    open_schema = schema_of().model_copy(
        update={"dimensionsSpec": schema_of().dimensionsSpec.model_copy(update={"useSchemaDiscovery": True})}
    )
    shelf = Shelf(tmp_path, open_schema)
    [file] = shelf.write(decoded(open_schema, [{"t": JUNE_MS, "item": "a", "other": 1, name: "mine", "n": 5}]))
    assert [c.name for c in file.columns][:3] == ["__time", "item", "other"]
    assert {c.name for c in file.columns}.isdisjoint(EXTENTS)
    assert pq.read_table(shelf.storage.open(file.path)).column(EXTENTS[0]).to_pylist() == [JUNE_MS]
