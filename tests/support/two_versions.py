"""Segments of a datasource, some of which an earlier version has written, whose files have no ids of columns."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from ingestion.rows import JSON_TYPE, LIST_TYPE
from ingestion.specs.messages.compaction import InputSegment
from ingestion.specs.messages.protocol import SegmentFile
from tests.support.column_ids import Ids, ids_in
from tests.support.desk import batch_of, schema_of
from tests.support.shelf import Shelf

LISTS = pa.array([["x", "y"], None], LIST_TYPE)
TEXTS = pa.array(['{"a":1}', None], pa.string()).cast(JSON_TYPE)


class TwoVersions(Shelf):
    """Files without rollup, and what their ids are."""

    def __init__(self, place: Path) -> None:
        super().__init__(place, schema_of())
        self.deep = place / "deep"

    def added(self, rows: pa.Table) -> dict[tuple[str, str], Ids]:
        """Written by themselves; the ids in the file."""
        self.add(rows)
        return self.ids_of(self.files[-1])

    def ids_of(self, file: SegmentFile) -> dict[tuple[str, str], Ids]:
        return ids_in(self.deep / file.path)

    def age(self, number: int) -> None:
        """Make of a file what an earlier version has written: without ids."""
        file = self.files[number]
        path = self.deep / file.path
        rows = pq.read_table(path)
        bare = [pa.field(f.name, LIST_TYPE if pa.types.is_list(f.type) else f.type) for f in rows.schema]
        pq.write_table(rows.cast(pa.schema(bare)), path, coerce_timestamps="us")
        data = path.read_bytes()
        told = {"size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        self.files[number] = file.model_copy(update=told)
        assert set(self.ids_of(file).values()) == {(None, None)}

    @property
    def paths(self) -> list[str]:
        return [str(self.deep / f.path) for f in self.files]

    @property
    def inputs(self) -> list[InputSegment]:
        return [
            InputSegment(id=uuid4(), path=f.path, rows=f.rows, size_bytes=f.size_bytes, sha256=f.sha256)
            for f in self.files
        ]


def with_files_of_two_versions(shelf: TwoVersions) -> TwoVersions:
    """A file of an earlier version, one of this one, and again one of an earlier version."""
    for n, more in enumerate(({"v": pa.array([7, 8])}, {"v": pa.array(["a", None]), "tags": LISTS}, {"tags": LISTS})):
        shelf.add(batch_of([n, n + 10], n=pa.array([n, n + 10]), j=TEXTS, **more))
    shelf.age(0)
    shelf.age(2)
    return shelf


WANTED: list[dict[str, Any]] = [
    {"n": 0, "v": "7", "tags": None},
    {"n": 1, "v": "a", "tags": ["x", "y"]},
    {"n": 2, "v": None, "tags": ["x", "y"]},
    {"n": 10, "v": "8", "tags": None},
    {"n": 11, "v": None, "tags": None},
    {"n": 12, "v": None, "tags": None},
]


def shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(({name: row[name] for name in ("n", "v", "tags")} for row in rows), key=lambda row: row["n"])
