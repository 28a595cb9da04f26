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
from ingestion.decode.druid_values import Fails, of_json, unwrapped
from ingestion.decode.java_texts import UNREADABLE, whole_number
from ingestion.decode.written_numbers import number_of
from ingestion.rows import JSON_TYPE
from ingestion.specs.schema.cast_types import CastType

_ARROW = {"LONG": pa.int64(), "DOUBLE": pa.float64()}


@dataclass(frozen=True)
class CastColumn:
    """A field's values as a column of that type."""

    column: pa.Array
    failed: pa.Array  # true where there is a value, and none of that type


def cast_column(typer: ColumnTyper, values: Values, wanted: CastType) -> CastColumn:
    """All values of a field, taken for the type."""
    column = _of_one_kind(typer, values, wanted)
    if column is not None:
        return CastColumn(column, pc.and_(values.texts.is_valid(), column.is_null()))
    encoded = values.texts.dictionary_encode()
    found = [_cast(text, wanted) for text in encoded.dictionary.to_pylist()]
    each = pa.array([value for value, _ in found], _ARROW.get(wanted, pa.string()))
    failed = pa.array([failed for _, failed in found], pa.bool_())
    column = each.take(encoded.indices)
    arrays = wanted.startswith("ARRAY<")
    return CastColumn(column.cast(JSON_TYPE) if arrays else column, failed.take(encoded.indices).fill_null(False))


def _of_one_kind(typer: ColumnTyper, values: Values, wanted: CastType) -> pa.Array | None:
    """What needs no look at each value: numbers as numbers, texts as texts."""
    if wanted in _ARROW and values.numbers == values.total:
        return typer.typed(values, wanted.lower())
    return values.unquoted if wanted == "STRING" and values.strings == values.total else None


def _cast(text: str, wanted: CastType) -> tuple[Any, bool]:
    """The value that a column holds of a JSON text, and whether there is none."""
    try:
        value = json.loads(text, parse_int=whole_number, parse_float=number_of, parse_constant=_no_json)
        found = unwrapped(cast_to(of_json(value), wanted))
    except (Fails, *UNREADABLE):
        return None, True
    if isinstance(found, list):
        return (None, True) if _beyond(*found) else (json.dumps(found, ensure_ascii=False), False)
    return (None, True) if _beyond(found) else (found, False)


def _beyond(*values: Any) -> bool:
    return any(isinstance(value, float) and not math.isfinite(value) for value in values)


def _no_json(_: str) -> Any:
    raise Fails
