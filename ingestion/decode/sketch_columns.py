"""The column of a metric that is a sketch: of each record's value or values, or of the sketch that it holds.

| | HLLSketchBuild, thetaSketch | quantilesDoublesSketch | HLLSketchMerge, thetaSketch of sketches |
|---|---|---|---|
| null, missing | the empty sketch | the empty sketch | the empty sketch |
| number | a long; with a fraction, or beyond a long, a double | the number | at fault |
| text | the text; nothing if it is empty | a number; a sketch in base64; nothing if it is empty | a sketch in base64 |
| array | what is in it, as Java's texts | at fault | at fault |
| true, false, object | at fault | at fault | at fault |

What is at fault, over which Druid fails the task, gives the empty sketch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode import java_texts
from ingestion.decode.columns import ColumnTyper, Values, first_bytes
from ingestion.decode.fields import validity
from ingestion.sketches import single_values
from ingestion.sketches.hashing import Hashes, hash_doubles, hash_longs, hash_texts
from ingestion.sketches.merging import Integers, Merger, read_sketch
from ingestion.sketches.types import sketches
from ingestion.specs.schema.sketch_metrics import HllMetric, QuantilesMetric, SketchMetric, ThetaMetric

_FRACTION = "[.eE]"
_ENDLESS = "^[-+][iInN]"  # -Infinity, which is no more a number here than Infinity is
_NUMBER = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)", re.ASCII)
_HEXADECIMAL = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?", re.ASCII)


@dataclass
class _Parts:
    """Sketches of some rows; of one row several, if it has an array."""

    rows: list[Integers] = field(default_factory=list)
    sketches: list[pa.Array] = field(default_factory=list)

    def add(self, rows: Integers, stored: pa.Array) -> None:
        if len(rows):
            self.rows.append(rows)
            self.sketches.append(stored)


@dataclass(frozen=True)
class SketchColumn:
    """A column, and the rows that hold something of which it has nothing, with what is wrong."""

    column: pa.Array
    faults: pa.Array
    problem: str


def sketch_column(typer: ColumnTyper, values: Values, metric: SketchMetric) -> SketchColumn:
    """A sketch for each row, none is null."""
    texts = values.texts
    kinds = _RowsByKind.of(texts)
    merger = Merger.of(metric)
    parts = _Parts()
    if isinstance(metric, QuantilesMetric):
        numbers = kinds.numbers
        parts.add(numbers, single_values.from_numbers(metric, _doubles(texts.take(pa.array(numbers)))))
        _add_sketches(parts, typer, texts, kinds.strings, lambda text: _number_or_sketch(text, metric, merger))
        at_fault, problem = kinds.others, f"is neither a number nor a {metric.kind} in base64"
    elif metric.reads_sketches:
        _add_sketches(parts, typer, texts, kinds.strings, lambda text: read_sketch(text, merger))
        at_fault = np.concatenate([kinds.numbers, kinds.others])
        problem = f"is not a {metric.kind} in base64"
    else:
        _add_distinct(parts, typer, texts, kinds, metric)
        at_fault = kinds.unhashed
        problem = "is neither a text, a number nor an array of them"
    column, without = _column(parts, len(texts), single_values.empty_sketch(metric), merger)
    wrong = np.zeros(len(texts), np.bool_)
    wrong[at_fault] = True
    if metric.reads_sketches:
        wrong[kinds.strings] |= without[kinds.strings]
    return SketchColumn(column, pa.array(wrong), problem)


@dataclass(frozen=True)
class _RowsByKind:
    """Which rows hold what, by their JSON texts' first byte."""

    strings: Integers
    numbers: Integers
    arrays: Integers
    unhashed: Integers  # objects, true, false, and what is not JSON

    @classmethod
    def of(cls, texts: pa.Array) -> _RowsByKind:
        codes = np.zeros(len(texts), np.uint8)
        codes[validity(texts)] = first_bytes(texts)
        signed = np.flatnonzero(np.isin(codes, list(b"-+")))
        endless = pc.match_substring_regex(texts.take(pa.array(signed)), _ENDLESS).to_numpy(zero_copy_only=False)
        codes[signed[endless]] = ord("I")
        rows_by_kind = {kind: np.flatnonzero(np.isin(codes, list(bytes_))) for kind, bytes_ in _FIRST_BYTES.items()}
        return cls(rows_by_kind["strings"], rows_by_kind["numbers"], rows_by_kind["arrays"], rows_by_kind["unhashed"])

    @property
    def others(self) -> Integers:
        return np.concatenate([self.arrays, self.unhashed])


_FIRST_BYTES = {"strings": b'"', "numbers": b"-+0123456789.", "arrays": b"[", "unhashed": b"{tfNnIi"}


def _add_distinct(
    parts: _Parts, typer: ColumnTyper, texts: pa.Array, kinds: _RowsByKind, metric: HllMetric | ThetaMetric
) -> None:
    encoding = "utf8" if isinstance(metric, ThetaMetric) else metric.stringEncoding

    def hashed(rows: Integers, hashes: Hashes) -> None:
        parts.add(rows, single_values.from_hashes(metric, hashes))

    strings = _unquoted(typer, texts, kinds.strings)
    not_empty = np.flatnonzero(pc.not_equal(strings, "").to_numpy(zero_copy_only=False))
    hashed(kinds.strings[not_empty], hash_texts(strings.take(pa.array(not_empty)), encoding))
    _add_numbers(hashed, texts, kinds.numbers)
    rows, elements = _array_elements(texts, kinds.arrays)
    hashed(rows, hash_texts(elements, encoding))


def _add_numbers(hashed: Callable[[Integers, Hashes], None], texts: pa.Array, rows: Integers) -> None:
    """Whole ones within 64 bits as longs, others as doubles."""
    numbers = texts.take(pa.array(rows))
    as_longs = Values(numbers).integers
    if as_longs is not None:
        hashed(rows, hash_longs(as_longs.to_numpy(zero_copy_only=False)))
        return
    fraction = pc.match_substring_regex(numbers, _FRACTION).to_numpy(zero_copy_only=False)
    digits = [int(text) if len(text) < 400 else 1 << 64 for text in numbers.filter(pa.array(~fraction)).to_pylist()]
    fraction[~fraction] = [not -(2**63) <= value < 2**63 for value in digits]
    longs = np.array([value for value in digits if -(2**63) <= value < 2**63], np.int64)
    hashed(rows[~fraction], hash_longs(longs))
    hashed(rows[fraction], hash_doubles(_doubles(numbers.filter(pa.array(fraction)))))


def _doubles(texts: pa.Array) -> npt.NDArray[np.float64]:
    return np.array([float(text) for text in texts.to_pylist()], np.float64)


def _unquoted(typer: ColumnTyper, texts: pa.Array, rows: Integers) -> pa.Array:
    return typer.typed(Values(texts.take(pa.array(rows))), "string").fill_null("")


def _array_elements(texts: pa.Array, rows: Integers) -> tuple[Integers, pa.Array]:
    """What is in arrays, with the row of each; nulls and empty texts are left out."""
    pairs = [
        (row, element)
        for row, text in zip(rows.tolist(), texts.take(pa.array(rows)).to_pylist(), strict=True)
        for element in java_texts.array_elements(text)
        if element
    ]
    return np.array([row for row, _ in pairs], np.int64), pa.array([element for _, element in pairs], pa.string())


def _add_sketches(
    parts: _Parts, typer: ColumnTyper, texts: pa.Array, rows: Integers, reader: Callable[[str], bytes | None]
) -> None:
    """Those of the texts that can be read."""
    read_sketches = [reader(text) for text in _unquoted(typer, texts, rows).to_pylist()]
    is_sketch = np.array([sketch is not None for sketch in read_sketches], np.bool_)
    parts.add(rows[is_sketch], pa.array([sketch for sketch in read_sketches if sketch is not None], pa.binary()))


def _number_or_sketch(text: str, metric: QuantilesMetric, merger: Merger) -> bytes | None:
    if not text:
        return single_values.empty_sketch(metric)
    number = _number(text)
    if number is None:
        return read_sketch(text, merger)
    if number != number:
        return single_values.empty_sketch(metric)
    sketch: bytes = single_values.from_numbers(metric, np.array([number]))[0].as_py()
    return sketch


def _number(text: str) -> float | None:
    """What Druid takes for a number there: all that Java writes, also with the letter of its type. None: it is none."""
    if _NUMBER.fullmatch(text):
        return float(text.rstrip("fFdD"))
    return _parse_hexadecimal(text.rstrip("fFdD")) if _HEXADECIMAL.fullmatch(text) else None


def _parse_hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:  # as of decimal digits, it is beyond all
        return -math.inf if text.startswith("-") else math.inf


def _column(parts: _Parts, count: int, empty: bytes, merger: Merger) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """The column, and which rows have no part."""
    without = np.ones(count, np.bool_)
    if not parts.rows:
        return sketches(pa.repeat(pa.scalar(empty, pa.binary()), count), merger.type), without
    if len(parts.rows) == 1 and len(parts.rows[0]) == count and np.array_equal(parts.rows[0], np.arange(count)):
        return sketches(parts.sketches[0], merger.type), ~without
    rows = np.concatenate(parts.rows)
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    in_order = sketches(pa.concat_arrays(parts.sketches).take(pa.array(order)), merger.type)
    starts = np.append(0, np.flatnonzero(np.diff(ordered)) + 1)
    merged = merger.merged(in_order, starts).storage
    without[ordered[starts]] = False
    place = np.cumsum(~without) - 1
    by_row = merged.take(pa.array(place, mask=without))
    return sketches(by_row.fill_null(pa.scalar(empty, pa.binary())) if without.any() else by_row, merger.type), without
