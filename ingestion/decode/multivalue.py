# ruff: noqa: S608 - the SQL is built of constants
"""Strings of several values: arrays in the field of a string dimension.

A batch in which a record has several values there gives a column of lists, in which every text is a list of one; any
other batch a plain column of texts. What is in an array becomes texts as in Java. An empty array is null, and so is
``[null]``.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode import java_texts
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
# Arrays with something that Java writes in another way than JSON has it.
_ODD = r"(?s)^\[.*([\[{]|[0-9][.eE]|[0-9]{19})"


def has_arrays(texts: pa.Array) -> bool:
    """Whether one of the JSON texts is an array."""
    return bool(pc.any(pc.starts_with(texts, "[")).as_py())


def to_lists(engine: Engine, texts: pa.Array, singles: pa.Array, handling: str) -> pa.Array:
    """A column of lists. ``texts``: the field's JSON texts; ``singles``: what those are as text that are no arrays."""
    sql = f"""
SELECT CASE WHEN len(o) > 1 OR o[1] IS NOT NULL THEN o END AS v
FROM (SELECT {_ORDERED[handling]} AS o FROM (SELECT json_extract_string(e, '$[*]') AS v FROM texts))"""
    plain = _with_text_elements(texts)
    lists = flat(engine.run(sql, TEXTS, pa.table({"e": plain})).column(0)).cast(LIST_TYPE)
    arrays = pc.starts_with(texts, "[").fill_null(False)
    if (pc.max(pc.list_value_length(pc.if_else(arrays, lists, None))).as_py() or 0) < 2:
        return pc.if_else(arrays, _first_elements(lists), singles)
    return pc.if_else(arrays, lists, _lists_of_one(singles))


def _with_text_elements(texts: pa.Array) -> pa.Array:
    """The JSON texts, in which arrays hold strings alone if they held anything that Java writes in its own way."""
    is_odd = pc.match_substring_regex(texts, _ODD).fill_null(False)
    if not pc.any(is_odd).as_py():
        return texts
    rewritten = [
        json.dumps(java_texts.array_elements(text), ensure_ascii=False) for text in texts.filter(is_odd).to_pylist()
    ]
    return pc.replace_with_mask(texts, is_odd, pa.array(rewritten, pa.string()))


def _first_elements(lists: pa.Array) -> pa.Array:
    """Of lists of one, or null."""
    return pa.array([None if values is None else values[0] for values in lists.to_pylist()], pa.string())


def _lists_of_one(singles: pa.Array) -> pa.Array:
    singletons = [None if text is None else [text] for text in singles.to_pylist()]
    return pa.array(singletons, LIST_TYPE)
