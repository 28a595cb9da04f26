"""The pages about compaction and retention name every field of the tasks that merge and delete segments."""

from __future__ import annotations

from pydantic import BaseModel

from ingestion.specs.tasks.segment_tasks import CompactInputSpec, CompactIOConfig, CompactTaskSpec, KillTaskSpec
from tests.lint.sources import PROJECT, differences, no_faults, text_of
from tests.support.pages import codes, rows, section

PAGES = PROJECT / "docs" / "reference"


TABLES: dict[tuple[str, str], type[BaseModel]] = {
    ("compaction.md", "Compact tasks"): CompactTaskSpec,
    ("retention.md", "Kill tasks"): KillTaskSpec,
}


def test_every_field_has_a_row_and_no_other() -> None:
    faults = []
    for (page, heading), model in TABLES.items():
        table = rows(section(heading, text_of(PAGES / page)))
        named = {code for row in table for code in codes(row[0])}
        faults += [f"{page}, {heading}: {fault}" for fault in differences(named, model.model_fields)]
    no_faults(faults, "each field has a row, and each row a field")


def test_what_a_compact_task_reads_is_named() -> None:
    text = section("Compact tasks", text_of(PAGES / "compaction.md"))
    [io_config] = [row[1] for row in rows(text) if codes(row[0]) == ["ioConfig"]]
    assert {*CompactIOConfig.model_fields, *CompactInputSpec.model_fields} <= set(codes(io_config))
