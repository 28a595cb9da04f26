# ruff: noqa: S608 - the SQL is built of constants and of expressions that were taken apart and checked
"""Expressions at work on a batch's records, those with fields of the same kinds together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.columns import Values, cast, first_bytes
from ingestion.decode.druid_values import EvaluationFailed
from ingestion.decode.engine import Engine
from ingestion.decode.expression_size import ExpressionCost
from ingestion.decode.expressions import BadExpression, parse_expression, shorten
from ingestion.decode.fields import Mask, flat, validity
from ingestion.decode.value_kinds import BEYOND, BOOLEAN, DOUBLE, JSON, LONG, NULL, STRING, TYPED
from ingestion.rows import TIME

_MAX_COMBINATIONS = 64  # of types in one batch; rarer ones see every field as text
_MAX_PREPARED = 4 * _MAX_COMBINATIONS
_MEMORY_SHARE = 0.25  # of the memory that the engine may have
_MAX_READ_BYTES = 128 * 1024 * 1024  # bytes that functions go through: a second at worst
_KIND_OF_BYTE = np.full(256, DOUBLE, np.uint8)
_KIND_OF_BYTE[list(b'"tf{[')] = (STRING, BOOLEAN, BOOLEAN, JSON, JSON)
_EXPRESSION_ERRORS = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ConversionException,
    duckdb.InvalidInputException,
    duckdb.NotImplementedException,
    duckdb.OutOfRangeException,
    duckdb.ParserException,
    duckdb.SyntaxException,
)
_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1
_numbers = count()
Lengths = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Statement:
    sql: str
    measured: ExpressionCost
    lossy: bool  # it sees a field as null that is none


@dataclass(frozen=True)
class Results:
    """What an expression gave, by record."""

    texts: pa.Array  # the values as JSON text, null where there is none
    failed: Mask  # where it failed, or took a number beyond a double for null
    lengths: Lengths  # of the texts in bytes, also of those that are left out because they are longer than they may be

    @classmethod
    def of(cls, texts: pa.Array, failed: Mask, most: Lengths) -> Results:
        """Without the texts that are longer than ``most``."""
        lengths = lengths_of(texts)
        fit = lengths <= most
        return cls(texts if fit.all() else _keep_only(texts, fit), failed, lengths)

    @classmethod
    def joined(cls, parts: Sequence[Results]) -> Results:
        return cls(
            pa.concat_arrays([p.texts for p in parts]),
            np.concatenate([p.failed for p in parts]),
            np.concatenate([p.lengths for p in parts]),
        )

    def select(self, indexes: Lengths) -> Results:
        return Results(self.texts.take(pa.array(indexes)), self.failed[indexes], self.lengths[indexes])


def lengths_of(texts: pa.Array) -> Lengths:
    """In bytes; of null what it takes in memory, which is usually nothing."""
    if not len(texts):
        return np.empty(0, np.int64)
    places = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.diff(places).astype(np.int64)


def _keep_only(texts: pa.Array, is_wanted: Mask) -> pa.Array:
    """Null instead of those that are not wanted; nothing of these stays in memory."""
    places = pa.array(np.cumsum(is_wanted) - 1, mask=~is_wanted)
    return texts.filter(pa.array(is_wanted)).take(places)


class ExpressionRunner:
    """An expression, ready to run. Raises ``BadExpression`` if it makes sense for no types at all."""

    def __init__(self, engine: Engine, text: str, language: str = "sql", condition: bool = False) -> None:
        self._engine = engine
        self.expression = parse_expression(text, engine, language, condition)
        self.fields = [name for name in self.expression.columns if name != TIME]
        self._source = f"expression_fields_{next(_numbers)}"
        schema = pa.schema([(f"f{i}", pa.string()) for i in range(len(self.fields))] + [("ms", pa.int64())])
        engine.register(self._source, schema)
        self._empty = schema.empty_table()
        self._statements: OrderedDict[tuple[int, ...], _Statement | None] = OrderedDict()
        self._check_for_any_types()

    def run(self, columns: Mapping[str, pa.Array], ms: Lengths, most: Lengths) -> Results:
        """The results for all records; ``columns`` hold the fields as JSON text, ``ms`` the times.

        ``most``: how many bytes are kept of each.
        """
        texts = [Values(columns[name]).texts for name in self.fields]
        table = pa.table([*texts, pa.array(ms, pa.int64())], names=self._empty.column_names)
        if not self.fields or not len(table):
            return self._results(table, most, (NULL,) * len(self.fields))
        kinds = np.stack([_kinds(t) for t in texts], axis=1)
        if (kinds == kinds[0]).all():
            return self._results(table, most, tuple(kinds[0].tolist()))
        combinations, combination_of, sizes = np.unique(kinds, axis=0, return_inverse=True, return_counts=True)
        frequent = set(np.argsort(-sizes)[:_MAX_COMBINATIONS].tolist())
        parts, places = [], []
        for number, kind in enumerate(combinations.tolist()):
            field_kinds = kind if number in frequent else [self.expression.rare(k) for k in kind]
            place = np.flatnonzero(combination_of.reshape(-1) == number)
            places.append(place)
            parts.append(self._results(table.take(pa.array(place)), most[place], tuple(field_kinds)))
        return Results.joined(parts).select(np.argsort(np.concatenate(places)))

    def _results(self, table: pa.Table, most: Lengths, kinds: tuple[int, ...]) -> Results:
        """Of records whose fields are of these kinds: in portions, where they are large.

        Raises ``MemoryError`` where one record may need more than there is.
        """
        statement = self._statement(kinds)
        if statement is None:
            return self._otherwise(table, most, _all_failed(len(table)))
        made_bytes, read_bytes = statement.measured.made.bytes_of(table), statement.measured.read.bytes_of(table)
        memory = self._engine.memory_limit_bytes
        if made_bytes <= memory * _MEMORY_SHARE and read_bytes <= _MAX_READ_BYTES:
            return self._computed(table, most, statement)
        if len(table) > 1:
            middle = len(table) // 2
            first = self._results(table.slice(0, middle), most[:middle], kinds)
            return Results.joined([first, self._results(table.slice(middle), most[middle:], kinds)])
        if made_bytes > memory:
            raise MemoryError(
                f"{shorten(self.expression.text)} may need {made_bytes:,.0f} bytes for this record, but may use "
                f"only {memory:,}"
            )
        return self._computed(table, most, statement)

    def _computed(self, table: pa.Table, most: Lengths, statement: _Statement) -> Results:
        try:
            answer = self._engine.run(statement.sql, self._source, table)
        except _EXPRESSION_ERRORS:
            return self._otherwise(table, most, _all_failed(len(table)))
        failed = np.asarray(answer.column("failed").to_numpy(), np.bool_) | statement.lossy
        results = Results.of(flat(answer.column("v")).cast(pa.string()), failed, most)
        return self._otherwise(table, most, results) if failed.any() else results

    def _otherwise(self, table: pa.Table, most: Lengths, results: Results) -> Results:
        """The results, with the failed records evaluated again one by one."""
        evaluator = self.expression.evaluator
        if evaluator is None:
            return results
        failed = np.flatnonzero(results.failed)
        columns = {name: table.column(i).take(pa.array(failed)).to_pylist() for i, name in enumerate(self.fields)}
        times = table.column("ms").take(pa.array(failed)).to_pylist()
        texts, still = results.texts.to_pylist(), results.failed.copy()
        for number, place in enumerate(failed.tolist()):
            self._engine.check_interrupted()
            with suppress(EvaluationFailed):
                texts[place] = evaluator.text({name: texts_[number] for name, texts_ in columns.items()}, times[number])
                still[place] = False
        completed = Results.of(pa.array(texts, pa.string()), still, most)
        return Results(completed.texts, completed.failed, np.maximum(completed.lengths, results.lengths))

    def _statement(self, kinds: tuple[int, ...]) -> _Statement | None:
        """What is run for these kinds; the one longest unused is forgotten, for records may bring ever new ones."""
        if kinds not in self._statements:
            self._statements[kinds] = self._try_statement(kinds)
            if len(self._statements) > _MAX_PREPARED:
                forgotten = self._statements.popitem(last=False)[1]
                if forgotten is not None:
                    self._engine.forget(forgotten.sql)
        self._statements.move_to_end(kinds)
        return self._statements[kinds]

    def _try_statement(self, kinds: tuple[int, ...]) -> _Statement | None:
        """TRY gives null where the expression fails, and a structure that holds null where it is null."""
        kind_by_field = dict(zip(self.fields, kinds, strict=True))
        form = self.expression.form(kind_by_field)
        if form is None:
            return None
        fields = {name: f"f{i}" for i, name in enumerate(self.fields)}
        columns = [
            f"{self.expression.column(name, kind_by_field.get(name, NULL), fields.get(name, ''))} AS c{i}"
            for i, name in enumerate(self.expression.columns)
        ]
        inner = f"SELECT {', '.join([*columns, '0 AS nothing'])} FROM {self._source}"
        tried = f"SELECT TRY({{'v': CAST(to_json({form.sql}) AS VARCHAR)}}) AS r FROM ({inner})"
        return _Statement(f"SELECT r.v AS v, r IS NULL AS failed FROM ({tried})", form.measured, BEYOND in kinds)

    def _check_for_any_types(self) -> None:
        if self.expression.evaluator is not None:
            return
        problem = "it is valid for no type of its fields"
        for kind in TYPED:
            statement = self._statement((kind,) * len(self.fields))
            if statement is None:
                continue
            try:
                self._engine.run(statement.sql, self._source, self._empty)
            except _EXPRESSION_ERRORS as error:
                problem = str(error).splitlines()[0] if kind == STRING else problem
            else:
                return
        raise BadExpression(f"{shorten(self.expression.text)}: {problem}")


def _all_failed(count: int) -> Results:
    """All of them fail."""
    return Results(pa.nulls(count, pa.string()), np.ones(count, np.bool_), np.zeros(count, np.int64))


def _kinds(texts: pa.Array) -> npt.NDArray[np.uint8]:
    kinds = np.full(len(texts), NULL, np.uint8)
    kinds[validity(texts)] = _KIND_OF_BYTE[first_bytes(texts)]
    if (kinds == DOUBLE).any():
        kinds[_matches(texts, "^-?[0-9]{1,18}$")] = LONG
        _refine_number_kinds(kinds, texts)
    return kinds


def _refine_number_kinds(kinds: npt.NDArray[np.uint8], texts: pa.Array) -> None:
    """Of the other numbers, those that are a long after all, and those that are no double."""
    for place in np.flatnonzero(_matches(texts, "^-?[0-9]{19}$")).tolist():
        if _MIN_LONG <= int(texts[place].as_py()) <= _MAX_LONG:
            kinds[place] = LONG
    others = np.flatnonzero(kinds == DOUBLE)
    numbers = cast(texts.take(pa.array(others)), pa.float64())
    if numbers is not None:
        kinds[others[~np.isfinite(numbers.to_numpy(zero_copy_only=False))]] = BEYOND


def _matches(texts: pa.Array, pattern: str) -> Mask:
    return np.asarray(
        pc.match_substring_regex(texts, pattern).fill_null(False).to_numpy(zero_copy_only=False), np.bool_
    )
