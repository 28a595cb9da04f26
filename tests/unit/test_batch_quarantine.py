"""What a batch task puts into quarantine: records that can't be read, whole, as far as there is room for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestion.batch.lines import Line
from ingestion.batch.split_quarantine import MAX_BYTES, QuarantineLimits, SplitQuarantine, merge_quarantines
from ingestion.specs.messages.batch_protocol import FileRecord
from tests.support.batch_run import JSON, START_MS, Run, below, spec_of


def a_file(folder: Path, lines: list[str]) -> None:
    (folder / "a.json").write_text("".join(f"{line}\n" for line in lines))


def good(n: int) -> str:
    return json.dumps({"t": START_MS + n, "n": n})


@pytest.mark.parametrize("careful", [False, True])
def test_each_is_kept_whole_with_its_place(tmp_path: Path, careful: bool) -> None:
    a_file(tmp_path, [good(1), "{nonsense", good(2), '{"t": "yesterday"}', '{"t": 1735689600000, "n": "x"}'])
    run = Run(spec_of(below(tmp_path, "*.json"), JSON), tmp_path, careful=careful)
    kept = merge_quarantines((t.quarantine for t in run.told), 100)
    at = len(good(1)) + 1
    path = tmp_path / "a.json"
    assert [(r.place, r.position, r.reason, r.payload) for r in kept] == [
        (f"{path}, byte {at}", at, "unparseable", b"{nonsense"),
        (f"{path}, byte {2 * at + 10}", 2 * at + 10, "unparseable", b'{"t": "yesterday"}'),
    ]
    assert all(r.error for r in kept)
    assert (run.summed("unparseable"), run.summed("with_error")) == (2, 1)


def test_of_a_file_without_lines_it_is_the_row_as_json(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [START_MS, None], "page": ["a", "b"]}), tmp_path / "a.parquet")
    run = Run(spec_of(below(tmp_path, "*.parquet"), {"type": "parquet"}), tmp_path)
    [record] = merge_quarantines((t.quarantine for t in run.told), 100)
    assert (record.position, json.loads(record.payload)) == (1, {"page": "b"})
    assert record.place == f"{tmp_path / 'a.parquet'}, row 1"


def test_beyond_the_room_of_a_split_they_are_counted_and_not_kept(tmp_path: Path) -> None:
    a_file(tmp_path, [f"{{{n:05}" for n in range(1_000)])
    run = Run(spec_of(below(tmp_path, "*.json"), JSON), tmp_path, size=1_000, room=QuarantineLimits(7, MAX_BYTES))
    assert run.summed("unparseable") == 1_000 and len(run.splits) > 1
    assert {len(t.quarantine.records) for t in run.told} == {7}
    first = merge_quarantines((t.quarantine for t in run.told), 10)
    assert [r.payload for r in first[:7]] == [f"{{{n:05}".encode() for n in range(7)] and len(first) == 10
    none = Run(spec_of(below(tmp_path, "*.json"), JSON), tmp_path, room=QuarantineLimits(0, MAX_BYTES))
    assert none.summed("unparseable") == 1_000 and merge_quarantines((t.quarantine for t in none.told), 0) == []


def test_one_that_has_not_enough_room_is_cut_and_says_so() -> None:
    kept = SplitQuarantine()
    room = QuarantineLimits(10, 12)
    for number in range(3):
        kept.add(Line("f, byte", number, b"0123456789"), "no JSON" * 400, room, crashed=False)
    assert [r.payload for r in kept.records] == [b"0123456789", b"01"]
    assert kept.records[1].error.endswith("(Only the first 2 of its 10 bytes are stored.)")
    assert all(FileRecord.model_validate_json(r.model_dump_json()) == r for r in kept.records)


@pytest.mark.parametrize(("splits", "size"), [(1, MAX_BYTES), (64, 1 << 20), (1 << 20, 16 * 1024)])
def test_what_the_driver_holds_of_all_splits_is_bounded(splits: int, size: int) -> None:
    assert QuarantineLimits.of_split(10, splits) == QuarantineLimits(10, size)


def test_one_message_carries_no_more_than_it_may() -> None:
    def whole(number: int) -> SplitQuarantine:
        kept = SplitQuarantine()
        payload: Any = b"x" * (MAX_BYTES // 2)
        kept.add(Line("f, byte", number, payload), "no JSON", QuarantineLimits(1, MAX_BYTES), crashed=True)
        return kept

    assert [(r.position, r.reason) for r in merge_quarantines(map(whole, range(3)), 100)] == [
        (0, "decoder_crash"),
        (1, "decoder_crash"),
    ]
