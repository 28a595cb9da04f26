"""The page about batch ingestion names every field of a batch task's spec, with its default and its bounds."""

from __future__ import annotations

import json
import re
from typing import get_args

from pydantic.fields import FieldInfo

from ingestion.specs.formats.file_format import AvroFileInputFormat, OrcInputFormat, ParquetInputFormat
from ingestion.specs.inputs.input_source import (
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
from ingestion.specs.schema.partitions import (
    DynamicPartitionsSpec,
    HashedPartitionsSpec,
    RangePartitionsSpec,
    SingleDimPartitionsSpec,
)
from ingestion.specs.tasks.batch import (
    WITHOUT_EFFECT,
    BatchIOConfig,
    BatchTuningConfig,
    SplitHintSpec,
    parse_batch_spec,
)
from tests.lint.sources import PROJECT, differences, no_faults, text_of
from tests.lint.test_docs_specs import default_of, faults_of_row
from tests.support.pages import codes, rows

_PAGES = PROJECT / "docs" / "reference"
PAGE = "\n".join(text_of(_PAGES / name) for name in ("batch.md", "partitions.md"))
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
    no_faults(differences(ROWS, FIELDS), "the tables of fields")
    named = re.search(r"as without effect: (.*?)\. What is not", PAGE, re.DOTALL)
    assert named and set(codes(named[1])) == {f"tuningConfig.{name}" for name in WITHOUT_EFFECT}


def test_a_field_has_its_default_and_its_bounds() -> None:
    faults: list[str] = []
    for path, field in sorted(FIELDS.items()):
        default = default_of(field) if path != "tuningConfig.splitHintSpec" else "`{}`"
        faults += faults_of_row(path, field, ROWS.get(path, []), default)
    no_faults(faults, "rows of the page say something else than the model")


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
