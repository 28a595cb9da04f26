"""Fields made from nested values: ``inputFormat.flattenSpec``, with Druid's JSON names.

Source: Druid's reference of input formats. Docstrings and messages name what Headgate refuses.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator

from ingestion.specs.base import NullTaking
from ingestion.specs.formats.jq import parse_jq
from ingestion.specs.formats.json_path import parse_json_path
from ingestion.specs.limits import (
    MAX_FLATTENED,
    MAX_PROGRAMS,
    MAX_SEARCHES,
    MAX_STEPS,
    ColumnName,
    FieldName,
    duplicates,
    list_names,
)


class FormatModel(NullTaking):
    """Frozen. Unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, serialize_by_alias=True)


class FlattenField(FormatModel):
    """One field that is made from a nested value."""

    type: Literal["root", "path", "tree", "jq"]
    name: ColumnName
    expr: FieldName | None = None
    nodes: list[FieldName] | None = Field(default=None, max_length=MAX_STEPS)

    @model_validator(mode="after")
    def _check_expression(self) -> FlattenField:
        if self.type == "path":
            if not self.expr:
                raise ValueError("a field of type path needs expr, a JsonPath such as $.foo.bar")
            parse_json_path(self.expr)
        if self.type == "jq":
            if not self.expr:
                raise ValueError("a field of type jq needs expr, a program such as .foo.bar")
            parse_jq(self.expr)
        if self.type == "tree" and not self.nodes:
            raise ValueError('a field of type tree needs nodes, the path of names such as ["foo", "bar"]')
        if self.type != "tree" and self.nodes is not None:
            raise ValueError("only fields of type tree may have nodes")
        return self


class FlattenSpec(FormatModel):
    """Fields made from nested values. They are added to the record's own fields or replace them."""

    useFieldDiscovery: bool = True
    fields: list[FlattenField] = Field(default_factory=list, max_length=MAX_FLATTENED)

    @field_validator("fields", mode="before")
    @classmethod
    def _expand_names(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [{"type": "root", "name": v} if isinstance(v, str) else v for v in value]

    @model_validator(mode="after")
    def _check_unique_names(self) -> FlattenSpec:
        twice = duplicates(f.name for f in self.fields)
        if twice:
            raise ValueError(f"fields are named twice: {list_names(twice)}")
        return self

    @model_validator(mode="after")
    def _limit_searches(self) -> FlattenSpec:
        paths = (parse_json_path(f.expr or "") for f in self.fields if f.type == "path")
        searches = sum(path.searches for path in paths)
        if searches > MAX_SEARCHES:
            raise ValueError(
                f"the JsonPaths have {searches} wildcards and descents; at most {MAX_SEARCHES} are allowed"
            )
        programs = sum(f.type == "jq" for f in self.fields)
        if programs > MAX_PROGRAMS:
            raise ValueError(f"there are {programs} fields of type jq; at most {MAX_PROGRAMS} are allowed")
        return self


def _refuse_jq(spec: FlattenSpec) -> FlattenSpec:
    if any(f.type == "jq" for f in spec.fields):
        raise ValueError("fields of type jq need the format json: use type path with a JsonPath")
    return spec


FlattenSpecByPaths = Annotated[FlattenSpec, AfterValidator(_refuse_jq)]
"""Of formats that are no JSON, with which Druid takes no jq either."""
