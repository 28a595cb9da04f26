# ruff: noqa: S608 - the SQL is built of constants; field names pass through engine.pointer, values are bound
"""From a field's JSON texts to a typed column. What does not fit the type becomes null, never an error.

| type | values |
|---|---|
| string | strings; numbers as written in the record; true/false; objects as JSON text; arrays: see ``multivalue`` |
| long | whole numbers of 64 bits; of other numbers the whole part (as Druid); strings with a whole number; true is 1 |
| double, float | numbers; strings that hold a number; true is 1. NaN, Infinity and what is beyond a double: null |
| json | any value as JSON text |
| auto, discovered | what fits all: long, double (numbers), boolean, string; json with objects or arrays; else string |

Most columns hold values of one kind: those are converted by Arrow in a few nanoseconds a value. All others go through
DuckDB, value by value, with the same results.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode import multivalue
from ingestion.decode.engine import TEXTS, Engine
from ingestion.decode.fields import Mask, flat, validity
from ingestion.rows import JSON_TYPE

TEXT = "CASE WHEN starts_with(e, '\"') THEN json_extract_string(e, '$') ELSE e END"
NUMBER_PATTERN = r"'\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*'"
_AS_TEXT = f"SELECT {TEXT} AS v FROM texts"
_AS_DOUBLE = f"""
SELECT CASE WHEN isfinite(d) THEN d END AS v FROM (
  SELECT CASE WHEN e = 'true' THEN 1.0 WHEN e = 'false' THEN 0.0
              WHEN regexp_full_match(t, {NUMBER_PATTERN}) THEN TRY_CAST(t AS DOUBLE) END AS d
  FROM (SELECT e, {TEXT} AS t FROM texts))"""
_AS_LONG = rf"""
SELECT CASE WHEN e = 'true' THEN 1 WHEN e = 'false' THEN 0
            WHEN regexp_full_match(t, '\s*[-+]?[0-9]+\s*') THEN TRY_CAST(t AS BIGINT)
            WHEN NOT regexp_full_match(t, {NUMBER_PATTERN}) THEN NULL
            WHEN NOT starts_with(e, '"') OR trunc(TRY_CAST(t AS DOUBLE)) = TRY_CAST(t AS DOUBLE)
            THEN TRY_CAST(trunc(TRY_CAST(t AS DOUBLE)) AS BIGINT) END AS v
FROM (SELECT e, {TEXT} AS t FROM texts)"""


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

    @cached_property
    def unquoted(self) -> pa.Array | None:
        """The texts of strings without their quotes; None when an escape makes that more than cutting."""
        if (_bytes(self.texts) == ord("\\")).any():
            return None
        cut = pc.binary_slice(self.texts.cast(pa.binary()), 1, -1)
        return cut.view(pa.string())

    @cached_property
    def whole(self) -> pa.Array | None:
        """The values as int64; None when not all of them are whole numbers of 64 bits."""
        if self.numbers < self.total or not _IN_WHOLE_NUMBERS[_bytes(self.texts.drop_null())].all():
            return None
        return cast(self.texts, pa.int64())


@dataclass(frozen=True)
class ColumnTyper:
    """Converts ``Values``. ``record_text`` gives the record's text at a row: numbers are looked up there as written."""

    engine: Engine

    def typed(
        self, values: Values, kind: str, name: str, record_text: Callable[[int], str], lists: str | None = None
    ) -> pa.Array:
        """A column of a dimension's ``kind`` (string, long, float, double, json or auto).

        ``lists``: how a string's several values are ordered; None keeps arrays as JSON text.
        """
        if kind == "json":
            return values.texts.cast(JSON_TYPE)
        if kind == "long":
            return self._long(values)
        if kind in ("float", "double"):
            return self._double(values)
        if kind == "auto":
            return self.discovered(values, name, record_text)
        texts = self._string(values, name, record_text)
        if lists is None or not values.nested or not multivalue.has_arrays(values.texts):
            return texts
        return multivalue.lists(self.engine, values.texts, texts, lists)

    def discovered(self, values: Values, name: str, record_text: Callable[[int], str]) -> pa.Array:
        """A column of the type that the values suggest; string when there is none."""
        if values.nested:
            return values.texts.cast(JSON_TYPE)
        if values.total and values.numbers == values.total:
            return self._number(values)
        if values.total and values.booleans == values.total:
            return pc.equal(values.texts, "true")
        return self._string(values, name, record_text)

    def _number(self, values: Values) -> pa.Array:
        return self._double(values) if values.whole is None else values.whole

    def _long(self, values: Values) -> pa.Array:
        return self._converted(_AS_LONG, values, pa.int64()) if values.whole is None else values.whole

    def _double(self, values: Values) -> pa.Array:
        column = cast(values.texts, pa.float64()) if values.numbers == values.total else None
        if column is None:
            return self._converted(_AS_DOUBLE, values, pa.float64())
        finite = pc.is_finite(column)
        return column if pc.all(finite).as_py() in (True, None) else pc.if_else(finite, column, None)

    def _string(self, values: Values, name: str, record_text: Callable[[int], str]) -> pa.Array:
        if values.strings == values.total and values.unquoted is not None:
            return values.unquoted
        texts = self._converted(_AS_TEXT, values, pa.string()) if values.strings else values.texts
        return _with_numbers_as_written(texts, values, name, record_text) if values.numbers else texts

    def _converted(self, sql: str, values: Values, wanted: pa.DataType) -> pa.Array:
        return flat(self.engine.run(sql, TEXTS, pa.table({"e": values.texts})).column(0)).cast(wanted)


def cast(texts: pa.Array, wanted: pa.DataType) -> pa.Array | None:
    """The texts as Arrow reads them; None when it can't read one (which takes it long: look first)."""
    try:
        return texts.cast(wanted)
    except pa.ArrowInvalid:
        return None


def _bytes(texts: pa.Array) -> Bytes:
    """The bytes of all texts, one after the other (of a slice: also of its neighbours)."""
    data = texts.buffers()[2]
    return np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def first_bytes(texts: pa.Array) -> Bytes:
    """The first byte of every text that is not null (JSON text is never empty)."""
    if not len(texts):
        return np.empty(0, np.uint8)
    starts = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts)]
    return _bytes(texts)[starts[validity(texts)]]


def _with_numbers_as_written(texts: pa.Array, values: Values, name: str, record_text: Callable[[int], str]) -> pa.Array:
    """DuckDB writes 1.10 as 1.1 and 1e2 as 100.0: fetch such numbers from the records."""
    rows = np.flatnonzero(_rewritten(values.texts))
    if not rows.size:
        return texts
    held = texts.to_pylist()
    for row in rows.tolist():
        held[row] = number_as_written(record_text(row), name) or held[row]
    return pa.array(held, pa.string())


def _rewritten(texts: pa.Array) -> Mask:
    bare = pc.match_substring_regex(texts, r"^-?[0-9][0-9]*[.eE]").fill_null(False)
    return np.asarray(bare.to_numpy(zero_copy_only=False), np.bool_)


class _Written(str):
    """A number's text."""


def number_as_written(record: str, name: str) -> str | None:
    """The text of the number in the top-level field ``name`` (the first of that name), or None."""
    try:
        members = json.loads(
            record, parse_float=_Written, parse_int=_Written, object_pairs_hook=lambda pairs: dict(reversed(pairs))
        )
    except (ValueError, RecursionError):
        return None
    value = members.get(name)
    return str(value) if isinstance(value, _Written) else None
