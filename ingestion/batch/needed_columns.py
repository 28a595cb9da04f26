"""Which columns of a file a spec reads: the others may hold what they like."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ingestion.decode.engine import Engine
from ingestion.decode.expressions import BadExpression
from ingestion.decode.formats import JSON
from ingestion.decode.named_fields import flattened_by, named_fields
from ingestion.specs.formats.flatten_spec import FlattenField
from ingestion.specs.formats.input_format import InputFormat
from ingestion.specs.formats.json_path import parse_json_path
from ingestion.specs.schema.data_schema import DataSchema


def needed_columns(schema: DataSchema, written: InputFormat, engine: Engine) -> Callable[[str], bool]:
    """Whether a column is read of rows that are ``written`` so. ``engine``: to look into expressions with."""
    try:
        read = named_fields(engine, schema, JSON, timed=True)
    except BadExpression:  # which the decoder tells
        return lambda _: True
    named = {name for name, readers in read.items() if readers != ["dimensionExclusions"]}
    named.add(schema.timestampSpec.column)
    roots = list(_root_columns(flattened_by(written)))
    if None in roots:
        return lambda _: True
    named.update(root for root in roots if root is not None)
    if not schema.dimensionsSpec.discovers:
        return named.__contains__
    undiscovered = schema.undiscovered
    return lambda column: column in named or column not in undiscovered


def _root_columns(fields: list[FlattenField]) -> Iterator[str | None]:
    """The column that each looks into; None where that may be any."""
    for field in fields:
        if field.type == "root":
            yield field.expr or field.name
        elif field.type == "tree":
            yield field.nodes[0] if field.nodes else None
        else:
            first = next(iter(parse_json_path(field.expr or "").steps), None) if field.type == "path" else None
            yield first.name if first is not None and first.kind == "name" else None
