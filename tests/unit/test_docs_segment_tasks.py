"""The pages about compaction and retention name every field of the tasks that merge and delete segments."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from ingestion.specs.segment_tasks import CompactInputSpec, CompactIOConfig, CompactTaskSpec, KillTaskSpec
from tests.support.pages import codes, rows, section

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference"


@pytest.mark.parametrize(
    ("page", "heading", "model"),
    [("compaction.md", "Compact tasks", CompactTaskSpec), ("retention.md", "Kill tasks", KillTaskSpec)],
)
def test_every_field_has_a_row_and_no_other(page: str, heading: str, model: type[BaseModel]) -> None:
    named = {code for row in rows(section(heading, (PAGES / page).read_text())) for code in codes(row[0])}
    assert named == set(model.model_fields)


def test_what_a_compact_task_reads_is_named() -> None:
    text = section("Compact tasks", (PAGES / "compaction.md").read_text())
    [io_config] = [row[1] for row in rows(text) if codes(row[0]) == ["ioConfig"]]
    assert {*CompactIOConfig.model_fields, *CompactInputSpec.model_fields} <= set(codes(io_config))
