"""An index whose disk or deep storage is at fault: it says so, loses nothing and takes nothing half for whole."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestion.segments.errors import DeepStorageError, SegmentError
from ingestion.specs.offsets import expanded
from tests.support.desk import Desk, numbers


@contextmanager
def full_disk(size_bytes: int) -> Iterator[None]:
    """No file of this process may grow beyond that, which stands for a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_stops_taking_in_and_loses_nothing(desk: Callable[..., Desk]) -> None:
    one = desk(maxRowsInMemory=20_000)
    with full_disk(50_000):
        one.add(numbers(20_000))  # its persist fails beside
        for _ in range(3):
            with pytest.raises(DeepStorageError, match="store rows in the scratch folder") as caught:
                add_again_and_again(one, numbers(20_000, seed=2))
            assert not caught.value.permanent
            assert one.spilled == []
    held = one.index.rows
    one.add(numbers(100, seed=3))
    (file,) = one.write()
    assert file.rows == held + 100
    assert file.offsets == {0: [(0, one.offset)]}


def add_again_and_again(one: Desk, rows: pa.Table) -> None:
    """The one who comes when a persist is known to have failed is told; that is the third at the latest."""
    for _ in range(3):
        one.add(rows)


def test_what_could_not_be_persisted_is_written_all_the_same(desk: Callable[..., Desk]) -> None:
    """The index's folder can't be made; the segment's file is small enough for the disk."""
    one = desk(maxRowsInMemory=10)
    one.scratch.mkdir(parents=True)
    one.add(numbers(5))
    one.index._folder.write_text("a file where the folder should be")
    one.add(numbers(5, seed=2))
    one.settle()
    with pytest.raises(DeepStorageError):
        one.add(numbers(1))
    assert one.index.rows == 10
    (file,) = one.write()
    assert (file.rows, file.offsets) == (10, {0: [(0, 10)]})
    one.index._folder.unlink()


def test_a_storage_that_refuses_may_be_asked_again(desk: Callable[..., Desk]) -> None:
    one = desk(maxRowsInMemory=100, maxRowsPerSegment=150)
    for seed in range(4):
        one.add(numbers(100, seed))
    one.deep.write_text("a file where the folder should be")
    with pytest.raises(DeepStorageError):
        one.write()
    assert {p.parent for p in one.spilled} == {one.index._folder}
    one.deep.unlink()
    files = one.write()
    assert [f.rows for f in files] == [150, 150, 100]
    assert sorted(o for f in files for o in expanded(f.offsets[0])) == list(range(400))


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone"])
def test_a_damaged_run_is_never_taken_for_whole(desk: Callable[..., Desk], damage: str) -> None:
    one = desk(maxRowsInMemory=5_000)
    one.add(numbers(5_000))
    one.settle()
    (file,) = one.spilled
    content = bytearray(file.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 1
    os.truncate(file, len(content) - 1)
    file.write_bytes(content[:-1] if damage == "cut" else content)
    if damage == "gone":
        file.unlink()
    with pytest.raises(SegmentError, match=r"can't be read back|not what was written"):
        one.write()
    assert [p for p in one.deep.rglob("*") if p.is_file()] == []


def test_compression_of_what_is_kept_is_chosen(desk: Callable[..., Desk]) -> None:
    for spec, codecs in ((None, {"LZ4"}), ({"dimensionCompression": "none"}, {"UNCOMPRESSED", "ZSTD"})):
        one = desk(maxRowsInMemory=10, **({"indexSpecForIntermediatePersists": spec} if spec else {}))
        one.add(numbers(10))
        one.settle()
        group = pq.ParquetFile(one.spilled[0]).metadata.row_group(0)
        assert {group.column(i).compression for i in range(group.num_columns)} == codecs
