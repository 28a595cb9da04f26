"""The rows of several partitions that may go to other members: together they need no more memory than one index may."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingestion.segments.index import share_bytes
from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segment
from ingestion.specs.offsets import expanded
from ingestion.specs.tasks.ingestion_spec import TuningConfig
from ingestion.task.indexes import Indexes
from tests.support.column_ids import some_ids
from tests.support.desk import numbers
from tests.support.indexer import assignment

MIB = 1024 * 1024
ROWS = 1_000  # of a batch: 16 kB
MakeIndexes = Callable[..., Indexes]


@pytest.fixture
def make_indexes(tmp_path: Path) -> MakeIndexes:
    def make(**tuning: Any) -> Indexes:
        given = assignment(tmp_path)
        held = TuningConfig.model_validate({"maxBytesInMemory": MIB, **tuning})
        spec = given.spec.model_copy(update={"tuningConfig": held})
        return Indexes(given.model_copy(update={"spec": spec}), tmp_path / "scratch", by_partition=True)

    return make


def add(indexes: Indexes, number: int, partitions: int = 4) -> None:
    """The ``number``-th batch: as many records of each partition, in turn."""
    mine = np.arange(ROWS) % partitions
    offsets = np.arange(ROWS) // partitions + number * (ROWS // partitions)
    for index, part in indexes.split_by_index(numbers(ROWS, number), mine):
        index.add(part, mine, offsets)
    indexes.make_room()


def test_many_partitions_spill_instead_of_handing_off(make_indexes: MakeIndexes, tmp_path: Path) -> None:
    indexes, most = make_indexes(), 0
    for number in range(200):  # three times what memory may hold
        add(indexes, number)
        most = max(most, sum(i.size_bytes for i in indexes._indexes.values()))
        assert not indexes.full
    assert share_bytes(indexes._tuning) < most < MIB
    files = indexes.write(LocalStorage(tmp_path / "deep", fsync=False), some_ids())
    assert sum(f.rows for f in files) == 200 * ROWS
    assert {p: len(list(expanded(r))) for f in files for p, r in f.offsets.items()} == dict.fromkeys(
        range(4), 50 * ROWS
    )
    indexes.close()


def test_a_partition_that_went_away_takes_what_was_spilled_of_it_along(
    make_indexes: MakeIndexes, tmp_path: Path
) -> None:
    indexes = make_indexes()
    for number in range(100):
        add(indexes, number)
    assert indexes.drop([1, 3])
    storage = LocalStorage(tmp_path / "deep", fsync=False)
    files = indexes.write(storage, some_ids())
    assert {p for f in files for p in f.offsets} == {0, 2}
    assert sum(len(read_segment(storage, f.path)) for f in files) == 50 * ROWS
    indexes.close()
    assert not [p for p in (tmp_path / "scratch").rglob("*") if p.is_file()]
