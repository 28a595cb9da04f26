"""Files to segments without Spark: every line once however it is cut, and what is written is what pandas reads."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from ingestion.batch import splits
from ingestion.batch.bins import Bins, plan_bins
from ingestion.batch.inputs import Inputs
from ingestion.batch.lines import open_part, read_layout, read_lines
from ingestion.batch.reading import IntervalMs
from ingestion.batch.shuffle_partitions import ShufflePartitions
from ingestion.batch.splits import Part, split_bytes
from ingestion.segments.accepted_times import AcceptedTimes
from ingestion.segments.errors import DamagedSegment
from ingestion.specs.messages.batch_protocol import Reachable
from ingestion.specs.messages.compaction import InputSegment
from ingestion.task.errors import TooManyParseExceptions
from tests.support.batch_run import DAY_MS, JSON, START_MS, Run, a_table, below, is_same, local, spec_of


@pytest.mark.parametrize("breaks", [["\n", "\r\n", "\n\n"], ["\n"]])
@pytest.mark.parametrize("of_json", [True, False])
@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_every_line_is_in_one_part_wherever_a_file_is_cut(
    tmp_path: Path, size: int, of_json: bool, breaks: list[str]
) -> None:
    dice = random.Random(7)
    written = [f'{{"n": {i}, "x": "{"é" * dice.randrange(20)}"}}' for i in range(60 if size > 1 else 15)]
    text = "".join(line + dice.choice(breaks) for line in written).rstrip("\n")
    (tmp_path / "x.json").write_bytes(text.encode())
    inputs = Inputs(Reachable(local_folders=[str(tmp_path)]))
    [file] = inputs.list_files(local(baseDir=str(tmp_path), filter="*"))
    found = []
    for start in range(0, file.size, size):
        part = Part(file, start, min(start + size, file.size))
        with open_part(part, inputs) as (name, stream, end):
            begins = read_layout(spec_of(below(tmp_path), JSON).ioConfig.line_format, name, stream).first_row
            for lines in read_lines(part, name, stream, begins, end, of_json=of_json):
                found += [(at, p.decode()) for at, p in zip(lines.positions, lines.payloads, strict=True)]
                assert lines.size_bytes == sum(map(len, lines.payloads))
                assert [lines[i].payload for i in range(len(lines))] == list(lines.payloads)
    assert [line for _, line in found] == written
    assert all(text.encode()[at:].startswith(line.encode()) for at, line in found)


@pytest.mark.parametrize("careful", [False, True])
@pytest.mark.parametrize("form", ["csv", "tsv", "json"])
def test_what_is_written_is_what_pandas_reads(tmp_path: Path, form: str, careful: bool) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    wanted = a_table(3_000)
    for number, part in enumerate(np.array_split(wanted.index, 3)):
        rows = wanted.loc[part]
        if form == "csv":  # each file has its columns in an order of its own
            order = ["t", "page", "n"] if number else ["n", "t", "page"]
            text = "# made by hand\n" + rows[order].to_csv(index=False, lineterminator="\r\n" if number else "\n")
        elif form == "tsv":
            text = rows.to_csv(index=False, header=False, sep="\t", quoting=3, quotechar="\x00", escapechar=None)
        else:
            text = rows.to_json(orient="records", lines=True, force_ascii=False)
        (inputs / f"{number}.txt").write_bytes(
            (b"\xef\xbb\xbf" if number == 2 and form == "csv" else b"") + text.encode()
        )
    forms: dict[str, dict[str, Any]] = {
        "csv": {"type": "csv", "hasHeaderRow": True, "skipHeaderRows": 1},
        "tsv": {"type": "tsv", "columns": ["t", "page", "n"]},
        "json": JSON,
    }
    run = Run(spec_of(below(inputs), forms[form], tuning={"maxRowsPerSegment": 700}), inputs, careful=careful)
    assert len(run.splits) > 3
    assert (run.summed("polled"), run.summed("processed"), run.summed("unparseable")) == (3_000, 3_000, 0)
    files = run.written(tmp_path)
    assert {f.rows <= 700 and f.offsets == {} for f in files} == {True}
    assert {f.interval_start for f in files} == {datetime(2025, 1, day, tzinfo=UTC) for day in (1, 2, 3)}
    assert is_same(run.stored(tmp_path / "again"), wanted)


def test_rows_roll_up_over_all_files_of_an_interval(tmp_path: Path) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    wanted = a_table(4_000)
    for number, part in enumerate(np.array_split(wanted.index, 4)):
        (inputs / f"{number}.json").write_text(wanted.loc[part].to_json(orient="records", lines=True))
    schema = {
        "dimensionsSpec": {"dimensions": ["page"]},
        "granularitySpec": {"queryGranularity": "HOUR", "rollup": True},
        "metricsSpec": [{"type": "count", "name": "rows"}, {"type": "longSum", "name": "sum", "fieldName": "n"}],
    }
    stored = Run(spec_of(below(inputs), JSON, schema=schema), inputs).stored(tmp_path)
    hours = wanted.assign(t=wanted["t"] // 3_600_000 * 3_600_000)
    expected = hours.groupby(["t", "page"], dropna=False)["n"].agg(["size", "sum"]).reset_index()
    found = stored.assign(t=stored["__time"].dt.as_unit("ms").astype("int64")).sort_values(["t", "page"])
    expected = expected.sort_values(["t", "page"])
    assert found["rows"].tolist() == expected["size"].tolist()
    assert found["sum"].tolist() == expected["sum"].tolist()
    assert found["page"].fillna("").tolist() == expected["page"].fillna("").tolist()


def test_every_record_is_counted_once(tmp_path: Path) -> None:
    """Of what the spec's intervals touch the whole segment interval is taken, as in Druid."""
    good = [{"t": START_MS + day * DAY_MS, "n": day} for day in range(6)]
    lines = [json.dumps(r) for r in good] + ["{", '{"t": null}', json.dumps({"t": START_MS, "n": "x"})]
    lines += [json.dumps({"t": START_MS, "n": 100})]
    schema = {
        "granularitySpec": {"rollup": False, "intervals": ["2025-01-01T05/2025-01-01T06", "2025-01-03/P2D"]},
        "transformSpec": {"filter": {"type": "not", "field": {"type": "selector", "dimension": "n", "value": "100"}}},
    }
    source = {"type": "combining", "delegates": [{"type": "inline", "data": "\n".join(lines)}]}
    run = Run(spec_of(source, JSON, schema=schema), tmp_path)
    told = {
        name: run.summed(name) for name in ("polled", "processed", "with_error", "filtered", "outside", "unparseable")
    }
    assert told == {"polled": 10, "processed": 4, "with_error": 1, "filtered": 1, "outside": 3, "unparseable": 2}
    assert [(one.place, one.start, one.stored) for one in run.told[0].unread] == [
        (f"inputSource inline, byte {sum(len(line) + 1 for line in lines[:number])}", lines[number], number == 8)
        for number in (6, 7, 8)
    ]
    for tuning, fails in (
        ({"maxParseExceptions": 3}, False),
        ({"maxParseExceptions": 2}, True),
        ({"reportParseExceptions": True}, True),
    ):
        spec = spec_of(source, JSON, schema=schema, tuning=tuning)
        if fails:
            with pytest.raises(TooManyParseExceptions, match=r"inputSource inline, byte \d+: "):
                Run(spec, tmp_path)
        else:
            Run(spec, tmp_path)


def test_splits_are_as_large_as_a_task_is_worth() -> None:
    assert split_bytes(100, 1 << 30, 2) == splits._MIN_BYTES
    assert split_bytes(1 << 40, 1 << 30, 2) == splits._MAX_BYTES
    assert split_bytes(1 << 40, 1 << 20, 2) == 1 << 20
    assert split_bytes(160 << 20, 1 << 30, 4) == 10 << 20


@pytest.mark.parametrize(
    ("rows", "most", "bins"),
    [
        ({}, 10, Bins(0, {})),
        ({(0, 1): 5}, 10, Bins(1, {(0, 1): (0, 1)})),
        (
            {(0, 1): 5, (1, 2): 5, (2, 3): 5, (3, 4): 5},
            10,
            Bins(2, {(0, 1): (0, 1), (1, 2): (0, 1), (2, 3): (1, 1), (3, 4): (1, 1)}),
        ),
        ({(0, 1): 2, (1, 2): 25, (2, 3): 2}, 10, Bins(5, {(0, 1): (0, 1), (1, 2): (1, 3), (2, 3): (4, 1)})),
    ],
)
def test_small_intervals_share_a_writer_and_each_partition_of_a_large_one_has_one(
    rows: dict[IntervalMs, int], most: int, bins: Bins
) -> None:
    assert plan_bins(rows, most, 2, {place: -(-many // most) for place, many in rows.items()}) == bins


@pytest.mark.parametrize(
    ("rows", "most", "writers", "shares"),
    [
        ({(0, 1): 5}, 10, 2, 1),
        ({(0, 1): 5, (1, 2): 5, (2, 3): 5, (3, 4): 5}, 10, 2, 2),
        ({(0, 1): 2, (1, 2): 25, (2, 3): 2}, 10, 2, 5),
        ({(0, 1): 1_000}, 10, 2, 16),  # each writes several segments
        ({(day, day + 1): 300_000 for day in range(10)}, 5_000_000, 2, 10),  # four a writer, in whole intervals
        ({(day, day + 1): 1 for day in range(1_000)}, 5_000_000, 2, 3),  # lanes have 8 or 9 days each
        ({(-DAY_MS, 0): 3, (0, DAY_MS): 3, (119 * DAY_MS, 120 * DAY_MS): 30}, 10, 1, 4),  # the first shares its lanes
    ],
)
def test_what_was_read_is_in_lanes_each_of_which_one_task_writes(
    rows: dict[IntervalMs, int], most: int, writers: int, shares: int
) -> None:
    lanes = ShufflePartitions.of(writers)
    found = lanes.shares(rows, most, writers)
    assert len(found) == shares
    each = [lane for share in found for lane in share]
    assert len(each) == len(set(each))
    used = {lanes.lane_of(place, split, number) for place in rows for split in range(9) for number in range(9)}
    assert used <= set(each) and max(each) < lanes.report_partition < lanes.count
    for place, many in rows.items():
        mine = {lanes.lane_of(place, split, number) for split in range(99) for number in range(9)}
        writing = [share for share in found if mine & set(share)]
        assert len(writing) == 1 or many > most or place == (-DAY_MS, 0)


def test_times_are_taken_by_whole_segment_intervals() -> None:
    schema = spec_of(
        {"type": "inline", "data": "x"},
        JSON,
        schema={"granularitySpec": {"intervals": ["2025-01-02T12/2025-01-03T00", "2025-01-03/2025-01-03T00:00:01"]}},
    )
    taken = AcceptedTimes(schema.dataSchema)
    ms = np.array([START_MS + DAY_MS - 1, START_MS + DAY_MS, START_MS + 3 * DAY_MS - 1, START_MS + 3 * DAY_MS])
    assert taken.holding(ms).tolist() == [False, True, True, False]
    assert AcceptedTimes(spec_of({"type": "inline", "data": "x"}, JSON).dataSchema).holding(ms).all()


def test_rows_of_segments_are_rows_again_under_another_schema(tmp_path: Path) -> None:
    """Every type that a column may have; a new granularity, a filter and a transform; rollup of what was a row each."""
    records: list[dict[str, Any]] = [
        {
            "t": START_MS + n * 600_000,
            "s": f"é{n % 3}",
            "l": 2**60 + n,
            "d": n / 7,
            "m": ["b", "a"],
            "j": {"x": [n, None]},
        }
        | ({} if n % 5 else {"b": n % 2 == 0, "s": None})
        for n in range(300)
    ]
    source = {"type": "inline", "data": "\n".join(map(json.dumps, records))}
    schema = {
        "dimensionsSpec": {"useSchemaDiscovery": True},
        "granularitySpec": {"segmentGranularity": "HOUR", "rollup": False},
    }
    first = Run(spec_of(source, JSON, schema=schema), tmp_path, deep=tmp_path)
    files = first.written(tmp_path)
    inputs = [
        InputSegment(id=uuid4(), path=f.path, rows=f.rows, size_bytes=f.size_bytes, sha256=f.sha256) for f in files
    ]
    same = {**schema, "timestampSpec": {"column": "__time", "format": "millis"}}
    druid = {"type": "druid", "dataSource": "w", "interval": "2025-01-01/P1M"}
    again = Run(spec_of(druid, None, schema=same), tmp_path, deep=tmp_path, segments=inputs)
    assert (again.summed("processed"), again.summed("parse_exceptions")) == (300, 0)
    both = [run.stored(tmp_path / name).sort_values("__time") for run, name in ((first, "one"), (again, "other"))]
    before, after = (rows[sorted(rows.columns)].astype(object).map(repr).to_numpy().tolist() for rows in both)
    assert before == after

    rolled = {
        "timestampSpec": same["timestampSpec"],
        "dimensionsSpec": {"dimensions": ["s"]},
        "granularitySpec": {"segmentGranularity": "MONTH", "queryGranularity": "DAY"},
        "metricsSpec": [{"type": "count", "name": "n"}, {"type": "doubleSum", "name": "twice", "fieldName": "dd"}],
        "transformSpec": {
            "transforms": [{"type": "expression", "name": "dd", "expression": "d * 2"}],
            "filter": {"type": "not", "field": {"type": "selector", "dimension": "s", "value": "é1"}},
        },
    }
    half = {**druid, "interval": "2025-01-01/2025-01-02"}
    found = Run(spec_of(half, None, schema=rolled), tmp_path, deep=tmp_path, segments=inputs)
    taken = [r for r in records if r["t"] < START_MS + DAY_MS]
    assert (found.summed("polled"), found.summed("filtered")) == (144, sum(r["s"] in ("é1", None) for r in taken))
    stored = found.stored(tmp_path / "rolled")
    wanted = {name: [r["d"] * 2 for r in taken if r["s"] == name] for name in ("é0", "é2")}
    assert {row.s: row.n for row in stored.itertuples()} == {name: len(values) for name, values in wanted.items()}
    for row in stored.itertuples():
        assert row.twice == pytest.approx(sum(wanted[row.s]), rel=1e-12)


def test_a_segment_that_is_not_what_was_registered_ends_the_task(tmp_path: Path) -> None:
    first = Run(spec_of({"type": "inline", "data": '{"t": 1}'}, JSON), tmp_path, deep=tmp_path)
    [file] = first.written(tmp_path)
    wrong = InputSegment(id=uuid4(), path=file.path, rows=1, size_bytes=file.size_bytes, sha256="0" * 64)
    druid = {"type": "druid", "dataSource": "w", "interval": "1970-01-01/P1D"}
    spec = spec_of(druid, None, schema={"timestampSpec": {"column": "__time", "format": "millis"}})
    with pytest.raises(DamagedSegment):
        Run(spec, tmp_path, deep=tmp_path, segments=[wrong])
