"""Dimensions of type auto with a ``castToType``: each value is taken for that type, as by ``cast`` in an expression.

| type | values |
|---|---|
| LONG, DOUBLE | numbers, also in texts, of a LONG the whole part; ``true`` is 1; other texts are null |
| STRING | texts; numbers as Java writes them; ``true`` is 1 |
| ARRAY<LONG> and the like | JSON arrays of such values; a plain value is an array of one |

Objects are cast to nothing, arrays of other than one value to no plain type, NaN and Infinity to no double.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.columns import ColumnTyper, Values
from ingestion.decode.druid_arrays import cast_to
from ingestion.decode.druid_values import EvaluationFailed, from_json, to_json_value
from ingestion.decode.exact_numbers import parse_number
from ingestion.decode.java_texts import UNREADABLE, long_or_double
from ingestion.rows import JSON_TYPE
from ingestion.specs.schema.data_schema import CastType

_ARROW = {"LONG": pa.int64(), "DOUBLE": pa.float64()}


@dataclass(frozen=True)
class CastColumn:
    """A field's values as a column of that type."""

    column: pa.Array
    failed: pa.Array  # true where there is a value, and none of that type


def cast_column(typer: ColumnTyper, values: Values, cast_type: CastType) -> CastColumn:
    """All values of a field, taken for the type."""
    column = _cast_uniform(typer, values, cast_type)
    if column is not None:
        return CastColumn(column, pc.and_(values.texts.is_valid(), column.is_null()))
    encoded = values.texts.dictionary_encode()
    casts = [_cast_text(text, cast_type) for text in encoded.dictionary.to_pylist()]
    each = pa.array([value for value, _ in casts], _ARROW.get(cast_type, pa.string()))
    failed = pa.array([failed for _, failed in casts], pa.bool_())
    column = each.take(encoded.indices)
    arrays = cast_type.startswith("ARRAY<")
    return CastColumn(column.cast(JSON_TYPE) if arrays else column, failed.take(encoded.indices).fill_null(False))


def _cast_uniform(typer: ColumnTyper, values: Values, cast_type: CastType) -> pa.Array | None:
    """What needs no look at each value: numbers as numbers, texts as texts."""
    if cast_type in _ARROW and values.numbers == values.total:
        return typer.typed(values, cast_type.lower())
    return values.unquoted if cast_type == "STRING" and values.strings == values.total else None


def _cast_text(text: str, cast_type: CastType) -> tuple[Any, bool]:
    """The value that a column holds of a JSON text, and whether there is none."""
    try:
        value = json.loads(text, parse_int=long_or_double, parse_float=parse_number, parse_constant=_reject_constant)
        cast_value = to_json_value(cast_to(from_json(value), cast_type))
    except (EvaluationFailed, *UNREADABLE):
        return None, True
    if isinstance(cast_value, list):
        return (None, True) if _has_infinity(*cast_value) else (json.dumps(cast_value, ensure_ascii=False), False)
    return (None, True) if _has_infinity(cast_value) else (cast_value, False)


def _has_infinity(*values: Any) -> bool:
    return any(isinstance(value, float) and not math.isfinite(value) for value in values)


def _reject_constant(_: str) -> Any:
    raise EvaluationFailed
