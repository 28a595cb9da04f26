"""Spark's own reader over segments with and without ids of columns, as a manifest's line has it read them."""

from __future__ import annotations

from pathlib import Path

from tests.support.spark_session import spark_session
from tests.support.two_versions import WANTED, TwoVersions, shown, with_files_of_two_versions


def test_files_of_two_versions_are_read_by_their_names(tmp_path: Path) -> None:
    shelf = with_files_of_two_versions(TwoVersions(tmp_path / "shelf"))
    with spark_session(tmp_path, "local[1]") as spark:
        columns = spark.read.option("mergeSchema", "true").parquet(*shelf.paths[1:])
        rows = [row.asDict() for row in columns.collect()]
    assert shown(rows) == [row for row in WANTED if row["n"] % 10]
