# ruff: noqa: S608 - the SQL is built of constants; field names pass through engine.pointer, values are bound
"""From a field's JSON texts to a typed column. What does not fit the type becomes null, never an error.

| type | values |
|---|---|
| string | strings; numbers, objects and what is in arrays as Java writes them; true/false; arrays: see ``multivalue`` |
| long, double, float | see ``numbers`` |
| json | any value as JSON text; whole numbers that are beyond a long as doubles |
| auto, discovered | what fits all: long, double (numbers), boolean, string; json with objects or arrays; else string |

Most columns hold values of one kind: those are converted by Arrow in a few nanoseconds a value. All others go through
DuckDB, value by value, with the same results.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode import java_texts, multivalue, numbers
from ingestion.decode.engine import TEXTS, Engine
from ingestion.decode.fields import flat, validity
from ingestion.decode.numbers import TEXT, Use
from ingestion.rows import JSON_TYPE, as_floats

AS_TEXT = f"SELECT {TEXT} AS v FROM texts"
Bytes = npt.NDArray[np.uint8]
_IN_WHOLE_NUMBERS = np.isin(np.arange(256), list(b"-0123456789"))


class Values:
    """One field's JSON texts (null: missing or JSON null), and of which kinds they are."""

    def __init__(self, texts: pa.Array) -> None:
        self.texts = texts
        counts = np.bincount(first_bytes(texts), minlength=256)
        if counts[ord("n")]:
            nulls = pc.equal(texts, "null")
            self.texts = pc.if_else(nulls, None, texts)
            counts[ord("n")] -= pc.sum(nulls).as_py() or 0
        self.strings = int(counts[ord('"')])
        self.nested = int(counts[ord("{")] + counts[ord("[")])
        self.booleans = int(counts[ord("t")] + counts[ord("f")])
        self.total = int(counts.sum())
        self.numbers = self.total - self.strings - self.nested - self.booleans

    def without_nested(self) -> Values:
        """Null where there is an object, or an array of more than plain values."""
        if not self.nested:
            return self
        return Values(pc.if_else(java_texts.are_nested(self.texts), None, self.texts))

    @cached_property
    def unquoted(self) -> pa.Array | None:
        """The texts of strings without their quotes; None when an escape makes that more than cutting."""
        if (_text_bytes(self.texts) == ord("\\")).any():
            return None
        cut = pc.binary_slice(self.texts.cast(pa.binary()), 1, -1)
        return cut.view(pa.string())

    @cached_property
    def integers(self) -> pa.Array | None:
        """The values as int64; None when not all of them are whole numbers of 64 bits."""
        if self.numbers < self.total or not _IN_WHOLE_NUMBERS[_text_bytes(self.texts.drop_null())].all():
            return None
        return cast(self.texts, pa.int64())


@dataclass(frozen=True)
class ColumnTyper:
    """Converts ``Values``."""

    engine: Engine

    def typed(self, values: Values, kind: str, use: Use = "dimension", lists: str | None = None) -> pa.Array:
        """A column of a dimension's ``kind`` (string, long, float, double, json or auto).

        ``to_lists``: how a string's several values are ordered; None keeps arrays as one text.
        """
        if kind == "json":
            return _to_json_column(values)
        if kind == "long":
            return self._long(values, use)
        if kind in ("float", "double"):
            column = self._double(values, use)
            return column if kind == "double" else as_floats(column)
        if kind == "auto":
            return self.discovered(values)
        texts = self._string(values)
        if lists is None or not values.nested or not multivalue.has_arrays(values.texts):
            return texts
        return multivalue.to_lists(self.engine, values.texts, texts, lists)

    def discovered(self, values: Values) -> pa.Array:
        """A column of the type that the values suggest; string when there is none."""
        if values.nested:
            return _to_json_column(values)
        if values.total and values.numbers == values.total:
            return self._double(values, "dimension") if values.integers is None else values.integers
        if values.total and values.booleans == values.total:
            return pc.equal(values.texts, "true")
        return self._string(values)

    def _long(self, values: Values, use: Use) -> pa.Array:
        return numbers.longs(self.engine, values.texts, use) if values.integers is None else values.integers

    def _double(self, values: Values, use: Use) -> pa.Array:
        column = cast(values.texts, pa.float64()) if values.numbers == values.total else None
        if column is None:
            return numbers.doubles(self.engine, values.texts, use)
        finite = pc.is_finite(column)
        return column if pc.all(finite).as_py() in (True, None) else pc.if_else(finite, column, None)

    def _string(self, values: Values) -> pa.Array:
        if values.strings == values.total and values.unquoted is not None:
            return values.unquoted
        texts = values.texts
        if values.strings:
            texts = flat(self.engine.run(AS_TEXT, TEXTS, pa.table({"e": texts})).column(0)).cast(pa.string())
        return java_texts.with_java_texts(texts, values.texts) if values.numbers or values.nested else texts


def _to_json_column(values: Values) -> pa.Array:
    return java_texts.with_doubles(values.texts).cast(JSON_TYPE)


def cast(texts: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """The texts as Arrow reads them; None when it can't read one (which takes it long: look first)."""
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return None


def _text_bytes(texts: pa.Array) -> Bytes:
    """The bytes of all texts, one after the other (of a slice: also of its neighbours)."""
    data = texts.buffers()[2]
    return np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def first_bytes(texts: pa.Array) -> Bytes:
    """The first byte of every text that is not null (JSON text is never empty)."""
    if not len(texts):
        return np.empty(0, np.uint8)
    starts = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts)]
    return _text_bytes(texts)[starts[validity(texts)]]
