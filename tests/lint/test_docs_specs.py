"""The reference names every field of a spec, with its default, its choices and its bounds, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Le, MaxLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from ingestion.specs.formats import flatten_spec
from ingestion.specs.formats import input_format as format_models
from ingestion.specs.inputs.io_config import KafkaIOConfig, ShareGroupIOConfig
from ingestion.specs.kafka.properties import ALLOWED
from ingestion.specs.schema import filters as filter_models
from ingestion.specs.schema import metrics as metric_models
from ingestion.specs.schema import periods as period_models
from ingestion.specs.schema import sketch_metrics as sketch_models
from ingestion.specs.schema.granularity import Granularity
from ingestion.specs.tasks.ingestion_spec import SupervisorSpec
from tests.lint.sources import PROJECT, differences, no_faults, text_of
from tests.support import pages
from tests.support.pages import codes, rows

PAGES = PROJECT / "docs" / "reference"
SPEC_PAGES = (
    "specs",
    "data-schema",
    "metrics",
    "sketches",
    "filters-and-expressions",
    "io-config",
    "bounded-reads",
    "input-formats",
    "flatten-spec",
    "tuning-config",
    "positions",
)
REFERENCE = "\n".join(text_of(page) for page in sorted(PAGES.glob("*.md")))
SPECS = "\n".join(text_of(PAGES / f"{name}.md") for name in SPEC_PAGES)


def section(title: str) -> str:
    return pages.section(title, REFERENCE)


def fields_of(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every field of a model and of the models in it, by its path in the JSON."""
    for name, field in model.model_fields.items():
        path = prefix + name
        yield path, field
        if path.endswith("ioConfig"):
            yield from _io_config_fields()
            continue
        inner, is_list = _inner_model(field.annotation)
        if inner is not None and path not in ALIKE:
            # `spec` may be left out, so its parts are described without it.
            yield from fields_of(inner, "" if path == "spec" else f"{path}[]." if is_list else f"{path}.")


def _io_config_fields() -> Iterator[tuple[str, FieldInfo]]:
    """Those of a share group; and those of ``kafka`` that it does not have, or has otherwise."""
    shared = dict(fields_of(ShareGroupIOConfig, "ioConfig."))
    yield from shared.items()
    for path, field in fields_of(KafkaIOConfig, "ioConfig."):
        other = shared.get(path)
        if other is None or _told(other) != _told(field):
            yield f"kafka.{path}", field


def _told(field: FieldInfo) -> tuple[Any, ...]:
    """Type, default and bounds."""
    return field.annotation, field.default, field.metadata


def _inner_model(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel) and candidate.__module__ not in APART:
            return candidate, get_origin(annotation) is list
    return None, False


# The same fields are described with another one of the same kind.
ALIKE = {"spec.tuningConfig.indexSpecForIntermediatePersists", "tuningConfig.indexSpecForIntermediatePersists"}
# Their models are described by their type, not by the places where they may stand.
APART = {m.__name__ for m in (filter_models, flatten_spec, format_models, metric_models, period_models, sketch_models)}
SPEC_FIELDS = dict(fields_of(SupervisorSpec))
TYPED_FIELDS = {
    f"{get_args(kind.model_fields['type'].annotation)[0]}.{name}": field
    for models in (filter_models, metric_models, period_models, sketch_models)
    for kind in vars(models).values()
    if isinstance(kind, type) and issubclass(kind, BaseModel) and "type" in kind.model_fields
    for name, field in kind.model_fields.items()
}
PLACES = {"FlattenSpec": "flattenSpec", "FlattenField": "flattenSpec.fields[]", "HeaderFormat": "headerFormat"}
FORMAT_FIELDS = {
    f"{PLACES.get(name) or get_args(kind.model_fields['type'].annotation)[0]}.{field.alias or key}": field
    for name, kind in {**vars(format_models), **vars(flatten_spec)}.items()
    if not name.startswith("_") and isinstance(kind, type) and issubclass(kind, flatten_spec.FormatModel)
    for key, field in kind.model_fields.items()
}
FIELDS = {**SPEC_FIELDS, **TYPED_FIELDS, **FORMAT_FIELDS}
FIELD_ROWS = {codes(row[0])[0]: row for row in rows(SPECS) if len(row) == 4}


def test_every_field_is_described_and_nothing_else() -> None:
    assert len(SPEC_FIELDS) > 40
    assert len(TYPED_FIELDS) > 30
    assert len(FORMAT_FIELDS) > 60
    no_faults(differences(FIELD_ROWS, FIELDS), "the tables of the reference")


def test_a_field_has_its_default_its_choices_and_its_bounds() -> None:
    faults: list[str] = []
    for path, field in sorted(FIELDS.items()):
        row = FIELD_ROWS.get(path, [])
        faults += faults_of_row(path, field, row, default_of(field))
        faults += faults_of_choices(path, field, row)
    no_faults(faults, "rows of the reference say something else than the model")


def faults_of_row(path: str, field: FieldInfo, row: list[str], default: str) -> Iterator[str]:
    """Where the row of a field does not have its default or one of its bounds."""
    if len(row) != 4:
        yield f"{path}: has no row of four cells"
        return
    if row[2] != default:
        yield f"{path}: the row has the default {row[2]}, the model has {default}"
    for bound in _bounds(field):
        if f"{bound:,}" not in row[3] and f"`{bound}`" != row[2]:
            yield f"{path}: is bounded by {bound:,}"


def faults_of_choices(path: str, field: FieldInfo, row: list[str]) -> Iterator[str]:
    """The values that a field may have and that its row does not name."""
    for choice in _choices(field.annotation) if len(row) == 4 else ():
        if f"`{choice}`" not in row[3] and choice != row[2].strip("`"):
            yield f"{path}: may be {choice}"


def default_of(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "`{}`"
    if value is None:
        return "none"
    return f"`{json.dumps(to_jsonable_python(value))}`".replace('"', "")


def _choices(annotation: Any) -> Iterator[str]:
    if get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation))
    else:
        for part in get_args(annotation):
            yield from _choices(part)


def _bounds(field: FieldInfo) -> Iterator[int]:
    for limit in field.metadata:
        match limit:
            case Ge(ge=timedelta()):
                continue  # a period is never negative
            case Ge():
                yield int(str(limit.ge))
            case Le():
                yield int(str(limit.le))
            case MaxLen():
                yield limit.max_length


def test_granularities_and_client_properties_are_all_named() -> None:
    assert {g.value for g in Granularity} <= set(codes(section("dataSchema")))
    assert {c for row in rows(section("consumerProperties")) for c in codes(row[0])} == ALLOWED
