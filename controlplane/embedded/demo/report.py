"""What became of the demo's records, and whether every count is right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet
from rich.table import Table

OUTCOMES = ("published", "rolled_up", "thrown_away", "unparseable", "duplicates", "released")
COLUMNS = {
    "polled": "polled",
    "published": "published",
    "rolled_up": "rolled up",
    "unparseable": "unparseable",
    "redelivered": "redelivered",
    "duplicates": "duplicates dropped",
    "quarantined": "quarantined",
    "segments": "segments",
    "rows_per_s": "rows/s",
}


@dataclass(frozen=True, slots=True)
class DatasourceReport:
    """Counts of records, over all tasks the datasource ever had. `rows_in_files` were counted in the Parquet files."""

    name: str
    produced: int
    rows: int
    rows_in_files: int
    segments: int
    counts: dict[str, int]
    rows_per_s: float

    @classmethod
    def of(cls, answer: dict[str, Any], produced: int, segments_folder: Path) -> DatasourceReport:
        totals = answer["totals"]
        counts = {name: int(totals[name]) for name in (*OUTCOMES, "polled", "redelivered", "quarantined")}
        return cls(
            name=answer["name"],
            produced=produced,
            rows=int(answer["rows"]),
            rows_in_files=rows_in_files(segments_folder / answer["name"]),
            segments=int(answer["segments"]),
            counts=counts,
            rows_per_s=rows_per_s(counts["published"], totals["started_at"], totals["last_publish_at"]),
        )

    def problems(self) -> list[str]:
        """One sentence for every count that is not right."""
        counts = self.counts
        outcomes = sum(counts[name] for name in OUTCOMES)
        expected = {
            f"{counts['published']} records published": (counts["published"], self.produced),
            f"{self.rows} rows in the datasource": (self.rows, self.produced),
            f"{self.rows_in_files} rows in the segments' files": (self.rows_in_files, self.produced),
            f"{outcomes} outcomes of polled records": (outcomes, counts["polled"]),
            f"{counts['unparseable']} unparseable records": (counts["unparseable"], 0),
        }
        return [
            f"{self.name}: {what}, but it should be {right}"
            for what, (found, right) in expected.items()
            if found != right
        ]

    def as_json(self) -> dict[str, Any]:
        return {
            "datasource": self.name,
            "produced": self.produced,
            "rows": self.rows,
            "rows_in_files": self.rows_in_files,
            "segments": self.segments,
            "rows_per_s": round(self.rows_per_s, 1),
            **self.counts,
        }


def rows_in_files(folder: Path) -> int:
    return sum(pyarrow.parquet.read_metadata(file).num_rows for file in folder.rglob("*.parquet"))


def rows_per_s(rows: int, started_at: str | None, last_publish_at: str | None) -> float:
    """From the start of the first indexer to the last publish; 0 when there was none."""
    if not started_at or not last_publish_at:
        return 0.0
    seconds = (datetime.fromisoformat(last_publish_at) - datetime.fromisoformat(started_at)).total_seconds()
    return rows / seconds if seconds > 0 else 0.0


def report_table(reports: Iterable[DatasourceReport]) -> Table:
    table = Table(title="What became of the records")
    table.add_column("datasource")
    for title in COLUMNS.values():
        table.add_column(title, justify="right")
    for report in reports:
        values = report.as_json()
        table.add_row(report.name, *(f"{values[key]:,.0f}" for key in COLUMNS))
    return table
