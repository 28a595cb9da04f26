"""The page about batch ingestion names every field of a batch task's spec, with its default and its bounds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic.fields import FieldInfo

from ingestion.specs.batch import (
    WITHOUT_EFFECT,
    BatchIOConfig,
    BatchTuningConfig,
    SplitHintSpec,
    parse_batch_spec,
)
from ingestion.specs.file_format import AvroFileInputFormat, OrcInputFormat, ParquetInputFormat
from ingestion.specs.input_source import (
    AzureInputSource,
    CombiningInputSource,
    DruidInputSource,
    GoogleInputSource,
    HttpInputSource,
    InlineInputSource,
    LocalInputSource,
    ObjectsInputSource,
    S3InputSource,
)
from ingestion.specs.partitions import (
    DynamicPartitionsSpec,
    HashedPartitionsSpec,
    RangePartitionsSpec,
    SingleDimPartitionsSpec,
)
from tests.support.pages import codes, rows
from tests.unit.test_docs_specs import _bounds, _default

_PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGE = "\n".join((_PAGES / name).read_text() for name in ("batch.md", "partitions.md"))
FIELDS: dict[str, FieldInfo] = {
    f"{prefix}.{field.alias or name}": field
    for prefix, model in (
        ("ioConfig", BatchIOConfig),
        ("tuningConfig", BatchTuningConfig),
        ("dynamic", DynamicPartitionsSpec),
        ("hashed", HashedPartitionsSpec),
        ("range", RangePartitionsSpec),
        ("single_dim", SingleDimPartitionsSpec),
        ("tuningConfig.splitHintSpec", SplitHintSpec),
        ("parquet", ParquetInputFormat),
        ("orc", OrcInputFormat),
        ("avro_ocf", AvroFileInputFormat),
    )
    for name, field in model.model_fields.items()
    if name not in WITHOUT_EFFECT or model is not BatchTuningConfig
}
ROWS = {found[0]: row for row in rows(PAGE) if (found := codes(row[0])) and "." in found[0]}


def test_every_field_has_a_row_and_no_other() -> None:
    assert set(ROWS) == set(FIELDS)
    named = re.search(r"as without effect: (.*?)\. What is not", PAGE, re.DOTALL)
    assert named and set(codes(named[1])) == {f"tuningConfig.{name}" for name in WITHOUT_EFFECT}


@pytest.mark.parametrize("path", sorted(FIELDS))
def test_a_field_has_its_default_and_its_bounds(path: str) -> None:
    field, (_, _, default, meaning) = FIELDS[path], ROWS[path]
    assert default == (_default(field) if path != "tuningConfig.splitHintSpec" else "`{}`")
    for bound in _bounds(field):
        assert f"{bound:,}" in meaning or f"`{bound}`" == default, f"{path} is bounded by {bound:,}"


def test_every_input_source_has_a_row_with_its_fields() -> None:
    models = (
        InlineInputSource,
        LocalInputSource,
        HttpInputSource,
        S3InputSource,
        GoogleInputSource,
        AzureInputSource,
        CombiningInputSource,
        DruidInputSource,
    )
    told = {named[0]: codes(row[1]) for row in rows(PAGE) if (named := codes(row[0])) and len(row) == 3}
    for model in models:
        fields = {name for name, field in model.model_fields.items() if field.annotation is not type(None)}
        inside = {"bucket", "path"} if issubclass(model, ObjectsInputSource) else set()
        assert set(told[get_args(model.model_fields["type"].annotation)[0]]) == fields - {"type"} | inside


def test_the_specs_on_the_page_are_good_ones() -> None:
    blocks = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert [parse_batch_spec(json.loads(block)).spec.reindexes for block in blocks] == [False, True]
