"""What became of the demo's records, and whether every count is right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet
from rich.table import Table

from ingestion.specs.counters import COUNTERS, OUTCOMES

# Of the counters, those with a row in the table.
SHOWN = ("published", "rolled_up", "unparseable", "duplicates", "redelivered", "quarantined")
ROWS = {
    "polled": "polled",
    **{counter.name: counter.label.lower() for counter in COUNTERS if counter.name in SHOWN},
    "segments": "segments",
    "rows_per_s": "rows/s",
}


@dataclass(frozen=True, slots=True)
class DatasourceReport:
    """Counts of records, over all tasks the datasource ever had. `rows` is what the datasource says of itself,
    `rows_of_segments` the sum over its segments, `rows_in_files` that over their Parquet files.
    """

    name: str
    produced: int
    rows: int
    rows_of_segments: int
    rows_in_files: int
    segments: int
    counts: dict[str, int]
    rows_per_s: float

    @classmethod
    def of(
        cls, datasource: dict[str, Any], segments: Iterable[dict[str, Any]], produced: int, storage: Path
    ) -> DatasourceReport:
        """From the answers of REST; the segments' paths are inside the folder `storage`."""
        totals, listed = datasource["totals"], list(segments)
        return cls(
            name=datasource["name"],
            produced=produced,
            rows=datasource["rows"],
            rows_of_segments=sum(segment["rows"] for segment in listed),
            rows_in_files=sum(rows_in_file(storage / segment["path"]) for segment in listed),
            segments=len(listed),
            counts={"polled": totals["polled"], **{counter.name: totals[counter.name] for counter in COUNTERS}},
            rows_per_s=totals["rows_per_s"] or 0.0,
        )

    def problems(self) -> list[str]:
        """One sentence for every count that is not right."""
        counts = self.counts
        outcomes = sum(counts[outcome.name] for outcome in OUTCOMES) - counts["further_rows"]
        expected = {
            f"{counts['published']} records published": (counts["published"], self.produced),
            f"{self.rows} rows in the datasource": (self.rows, self.produced),
            f"{self.rows_of_segments} rows of its segments": (self.rows_of_segments, self.produced),
            f"{self.rows_in_files} rows in the segments' files": (self.rows_in_files, self.produced),
            f"{outcomes} outcomes of polled records": (outcomes, counts["polled"]),
            f"{counts['unparseable']} unparseable records": (counts["unparseable"], 0),
        }
        return [
            f"{self.name}: {what}, but it should be {right}"
            for what, (actual, right) in expected.items()
            if actual != right
        ]

    def as_json(self) -> dict[str, Any]:
        return {
            "datasource": self.name,
            "produced": self.produced,
            "rows": self.rows,
            "rows_of_segments": self.rows_of_segments,
            "rows_in_files": self.rows_in_files,
            "segments": self.segments,
            "rows_per_s": round(self.rows_per_s, 1),
            **self.counts,
        }


def rows_in_file(file: Path) -> int:
    """None at all when the file is not there."""
    return int(pyarrow.parquet.read_metadata(file).num_rows) if file.is_file() else 0


def report_table(reports: Sequence[DatasourceReport]) -> Table:
    """A row for each count, a column for each datasource."""
    table = Table(title="What became of the records")
    table.add_column("datasource")
    for report in reports:
        table.add_column(report.name, justify="right")
    for key, title in ROWS.items():
        table.add_row(title, *(f"{report.as_json()[key]:,.0f}" for report in reports))
    return table
