# ruff: noqa: S608 - the SQL is built of constants
"""Strings of several values: arrays in the field of a string dimension.

A batch in which a record has an array there gives a column of lists, in which every text is a list of one; a batch
without arrays a plain column of texts. Elements become texts as DuckDB writes them. An empty array is null.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.engine import TEXTS, Engine
from ingestion.decode.fields import flat
from ingestion.rows import LIST_TYPE

_SORTED = "list_sort(v, 'ASC', 'NULLS FIRST')"
_ORDERED = {
    "ARRAY": "v",
    "SORTED_ARRAY": _SORTED,
    # list_distinct leaves nulls out.
    "SORTED_SET": "list_concat(CASE WHEN len(v) > list_count(v) THEN [NULL] ELSE [] END, list_sort(list_distinct(v)))",
}


def has_arrays(texts: pa.Array) -> bool:
    """Whether one of the JSON texts is an array."""
    return bool(pc.any(pc.starts_with(texts, "[")).as_py())


def lists(engine: Engine, texts: pa.Array, singles: pa.Array, handling: str) -> pa.Array:
    """A column of lists. ``texts``: the field's JSON texts; ``singles``: what those are as text that are no arrays."""
    sql = f"""
SELECT CASE WHEN len(v) > 0 THEN {_ORDERED[handling]} END AS v
FROM (SELECT json_extract_string(e, '$[*]') AS v FROM texts)"""
    lists = flat(engine.run(sql, TEXTS, pa.table({"e": texts})).column(0)).cast(LIST_TYPE)
    arrays = pc.starts_with(texts, "[").fill_null(False)
    return pc.if_else(arrays, lists, _lists_of_one(singles))


def _lists_of_one(singles: pa.Array) -> pa.Array:
    held = [None if text is None else [text] for text in singles.to_pylist()]
    return pa.array(held, LIST_TYPE)
