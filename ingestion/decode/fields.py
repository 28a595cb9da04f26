# ruff: noqa: S608 - the SQL is built of constants; field names pass through engine.pointer, values are bound
"""Which top-level fields a batch has, and their values as JSON text: one column a field, one parse for all of them.

A field is found by its JSON pointer, so that names which differ only by case, are empty, or hold quotes, dots or NUL
are all different fields. Of a field that a record holds twice the first one counts, as DuckDB reads it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.engine import RECORDS, Engine, Suspects, sql_json_pointer

Mask = npt.NDArray[np.bool_]
MAX_DISCOVERED = 1000  # of one record, and read at once
MAX_IN_BATCH = 2000  # a table of each record's own would be as large as their square
LONGEST_NAME = 1000  # characters; every segment lists its columns in the metadata store
_WHAT_TO_DO = "list the dimensions, or exclude fields"
_JSON_KEYS = "SELECT json_keys(j) AS keys FROM records"


class TooManyFields(Exception):
    """More fields than are read at once: the records have to be read in smaller parts. ``fields``: how many."""

    def __init__(self, fields: int) -> None:
        self.fields = fields
        super().__init__(f"{fields} fields to discover")


@dataclass(frozen=True)
class Fields:
    """The fields of a batch of JSON texts."""

    is_object: Mask  # which texts are JSON objects
    columns: dict[str, pa.Array]  # name → JSON text, null where the field is missing
    # How many fields each record holds (null for one that is no object); None when nobody asked.
    counts: pa.Array | None


@dataclass(frozen=True)
class FieldPaths:
    """Where in a record DuckDB finds fields that are not read by their names. Such a field is null, never missing."""

    named: Mapping[str, str] = field(default_factory=dict)  # name → a path as an SQL literal


BY_NAME = FieldPaths()


class FieldReader:
    """Reads the ``fixed`` fields, and with ``discovers`` every other field it has met in earlier batches as well.

    ``unlimited`` says which names don't count against the fields that may be discovered. ``places`` do not go with
    ``discovers``.
    """

    def __init__(
        self,
        engine: Engine,
        fixed: Iterable[str],
        discovers: bool,
        unlimited: Callable[[str], bool] = lambda _: False,
        places: FieldPaths = BY_NAME,
    ) -> None:
        self._engine = engine
        self._fixed = list(dict.fromkeys(fixed))
        self._discovers = discovers
        self._unlimited = unlimited
        self._places = places
        self._sql = self._checking_sql = ""
        self._texts = Suspects(engine, RECORDS)
        self.names: list[str] = []
        self._use(self._fixed)

    def read(self, texts: pa.Array) -> Fields:
        """The fields of every text, in the same order."""
        return self._fields(self._texts.run(self._sql, self._checking_sql, pa.table({"j": texts})))

    def _fields(self, table: pa.Table) -> Fields:
        is_object = table.column("is_object").to_numpy().astype(np.bool_, copy=False)
        columns = {name: flat(table.column(f"c{i}")) for i, name in enumerate(self.names)}
        return Fields(is_object, columns, flat(table.column("counts")) if self._discovers else None)

    def learn(self, texts: pa.Array, fields: Fields, is_kept: Mask) -> tuple[bool, dict[int, str]]:
        """Take in what fields the ``is_kept`` records hold beyond the known ones.

        Returns whether there are new ones (then read again), and the errors, by index, of records that hold a field
        that can be no column, or too many. Raises ``TooManyFields``.
        """
        errors = self._too_wide(texts, fields, is_kept)
        if errors:
            is_kept = is_kept.copy()
            is_kept[list(errors)] = False
        more = self._with_further_fields(fields, is_kept)
        if not more.size:
            return False, errors
        lists = self._keys(texts, more)
        unusable = self._with_unusable_names(lists, more)
        if unusable:
            is_kept = is_kept.copy()
            is_kept[list(unusable)] = False
            lists = lists.filter(pa.array(is_kept[more]))
        return self._learn_from(texts, lists, is_kept), errors | unusable

    def with_doubles(self, fields: Fields, is_kept: Mask) -> dict[int, str]:
        """The errors, by index, of kept records that hold a field twice; once ``learn`` knows all of their fields."""
        return dict.fromkeys(self._with_further_fields(fields, is_kept).tolist(), "has a field twice")

    def _with_unusable_names(self, lists: pa.Array, indexes: npt.NDArray[np.int64]) -> dict[int, str]:
        """By index, what is wrong with records of these fields of which one can be no column."""
        every = pc.list_flatten(lists)
        bad = {n: why for n in pc.unique(every).to_pylist() if (why := unusable_name(n)) and not self._unlimited(n)}
        if not bad:
            return {}
        is_bad = pc.is_in(every, value_set=pa.array(list(bad), pa.string()))
        places = indexes[pc.list_parent_indices(lists).filter(is_bad).to_numpy()].tolist()
        return {i: bad[name] for i, name in zip(places, every.filter(is_bad).to_pylist(), strict=True)}

    def _learn_from(self, texts: pa.Array, lists: pa.Array, is_kept: Mask) -> bool:
        """Whether there are new ones. ``lists``: the fields of kept records that hold more than the known ones."""
        known = set(self.names)
        new = [n for n in pc.unique(pc.list_flatten(lists)).to_pylist() if n not in known]
        if not new:
            return False
        if len(known) + len(new) - len(self._fixed) <= MAX_DISCOVERED:
            self._use([*self.names, *new])
        else:
            self._learn_only(texts, np.flatnonzero(is_kept))
        return True

    def _too_wide(self, texts: pa.Array, fields: Fields, is_kept: Mask) -> dict[int, str]:
        """Records that alone hold more fields than may be discovered, whatever is read with them."""
        if fields.counts is None or (pc.max(fields.counts).as_py() or 0) <= MAX_DISCOVERED:
            return {}
        counts = fields.counts.fill_null(0).to_numpy(zero_copy_only=False)
        suspects = np.flatnonzero((counts > MAX_DISCOVERED) & is_kept)
        fixed, faults = set(self._fixed), {}
        for index, names in zip(suspects.tolist(), self._keys(texts, suspects).to_pylist(), strict=True):
            count = len({n for n in names if n not in fixed and not self._unlimited(n)})
            if count > MAX_DISCOVERED:
                faults[index] = (
                    f"has {count:,} fields to discover, at most {MAX_DISCOVERED:,} are allowed: {_WHAT_TO_DO}"
                )
        return faults

    def forget_all_but(self, used: Iterable[str]) -> None:
        """Drop fields that the stream no longer holds, once they are the greater part."""
        keep = list(dict.fromkeys([*self._fixed, *used]))
        if len(self.names) > 64 and len(self.names) > 2 * len(keep):
            self._use(keep)

    def _use(self, names: list[str]) -> None:
        self._engine.forget(self._sql)
        self._engine.forget(self._checking_sql)
        self.names = names
        self._sql = _fields_sql(names, self._discovers, self._places, check=False)
        self._checking_sql = _fields_sql(names, self._discovers, self._places, check=True)

    def _with_further_fields(self, fields: Fields, kept: Mask) -> npt.NDArray[np.int64]:
        """Indexes of kept records that hold more fields than were read."""
        read = sum(len(c) - c.null_count for c in fields.columns.values())
        if fields.counts is None or (pc.sum(fields.counts).as_py() or 0) == read:
            return np.empty(0, np.int64)
        read_counts = np.zeros(len(kept), np.int64)
        for column in fields.columns.values():
            read_counts += validity(column)
        counts = fields.counts.fill_null(0).to_numpy(zero_copy_only=False)
        return np.flatnonzero((counts > read_counts) & kept)

    def _keys(self, texts: pa.Array, indexes: npt.NDArray[np.int64]) -> pa.Array:
        table = pa.table({"j": texts.take(pa.array(indexes))})
        return flat(self._engine.run(_JSON_KEYS, RECORDS, table).column(0))

    def _learn_only(self, texts: pa.Array, indexes: npt.NDArray[np.int64]) -> None:
        """And forget all others. Raises ``TooManyFields``."""
        fixed = set(self._fixed)
        names = pc.unique(pc.list_flatten(self._keys(texts, indexes))).to_pylist()
        discovered = [name for name in names if name not in fixed]
        limited = sum(not self._unlimited(name) for name in discovered)
        if limited > MAX_DISCOVERED:
            raise TooManyFields(limited)
        self._use([*self._fixed, *discovered])


def unusable_name(name: str) -> str:
    """Why a field of this name can't be discovered as a column; empty if it can."""
    if "\0" in name:
        return f"has a field with a NUL character in its name: {json.dumps(name[:20])}"
    if len(name) > LONGEST_NAME:
        shown = json.dumps(name[:20])
        return f"has a field with a name of {len(name):,} characters, more than {LONGEST_NAME:,}: {shown}"
    return ""


def is_absent(texts: pa.Array | None) -> bool:
    """Whether no record has the field."""
    return texts is None or texts.null_count == len(texts)


def filter_columns(columns: dict[str, pa.Array], kept: pa.Array) -> dict[str, pa.Array]:
    return {name: column.filter(kept) for name, column in columns.items()}


def flat(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def validity(array: pa.Array) -> Mask:
    """True where the array is not null."""
    if not array.null_count:
        return np.ones(len(array), np.bool_)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _fields_sql(names: list[str], counts: bool, places: FieldPaths, check: bool) -> str:
    opens = r"""CASE WHEN starts_with(j, '{') THEN TRUE ELSE starts_with(ltrim(j, E' \t\r\n'), '{') END"""
    paths = {name: places.named.get(name) or sql_json_pointer(name) for name in names}
    numbers = {name: number for number, name in enumerate(paths, 1)}
    columns = ["is_object", *(f"{_value_sql(name, numbers, places)} AS c{i}" for i, name in enumerate(names))]
    inner = [f"coalesce({opens}, FALSE) AS is_object", f"json_extract(j, [{', '.join(paths.values())}]) AS l"]
    if counts:
        columns.append("counts")
        inner.append("len(json_keys(j)) AS counts")
    texts = "(SELECT CASE WHEN json_valid(j) THEN j END AS j FROM records)" if check else "records"
    return f"SELECT {', '.join(columns)} FROM (SELECT {', '.join(inner)} FROM {texts})"


def _value_sql(name: str, numbers: Mapping[str, int], places: FieldPaths) -> str:
    field_sql = f"l[{numbers[name]}]::VARCHAR"
    return f"CASE WHEN is_object THEN coalesce({field_sql}, 'null') END" if name in places.named else field_sql
