"""``json``: records that are JSON texts.

One with a comma before an end is none, nor is one with NaN or Infinity, unless the spec lets it pass: DuckDB reads
both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.envelope import Envelope
from ingestion.decode.formats.base import Texts
from ingestion.decode.payloads import texts_of
from ingestion.specs.input_format import JsonInputFormat

_END = ord("]")
_AS_BRACKET = 0xDF  # makes a bracket of a brace
_BLANK = ord(" ")
_COMMA_BEFORE_END = r",\s*[\]}]"
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_WITH_COMMA = "not JSON: a comma before the end of an object or an array"
_NO_NUMBER = r"(?i)[:,\[\s][-+]?(nan|inf|infinity)\s*[,\]}]"
_NOT_FINITE = "not JSON: NaN or Infinity. featureSpec.ALLOW_NON_NUMERIC_NUMBERS lets them pass"


class JsonReader:
    """Payloads as they are."""

    def __init__(self, spec: JsonInputFormat) -> None:
        self._takes_commas = spec.featureSpec.get("ALLOW_TRAILING_COMMA", False)
        self._takes_no_numbers = spec.featureSpec.get("ALLOW_NON_NUMERIC_NUMBERS", False)

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        texts, errors = texts_of(payloads)
        bad = {}
        if not self._takes_no_numbers:
            bad = _with(texts, _NO_NUMBER, _NOT_FINITE)
        if not self._takes_commas and _may_have_comma(texts):
            bad |= _with(texts, _COMMA_BEFORE_END, _WITH_COMMA)
        if not bad:
            return texts, errors
        marks = np.zeros(len(texts), np.bool_)
        marks[list(bad)] = True
        return pc.if_else(pa.array(marks), None, texts), errors | bad


def _with(texts: pa.Array, pattern: str, error: str) -> dict[int, str]:
    """The error by index of texts in which the pattern finds something outside of strings."""
    suspects = pc.match_substring_regex(texts, pattern).fill_null(False)
    places = np.flatnonzero(suspects.to_numpy(zero_copy_only=False)).tolist()
    return {place: error for place in places if re.search(pattern, _STRING.sub('""', texts[place].as_py()))}


def _may_have_comma(texts: pa.Array) -> bool:
    """Whether a comma, or a blank with perhaps a comma before it, stands before a bracket or a brace."""
    _, ends, held = texts.buffers()
    if held is None:
        return False
    bounds = np.frombuffer(ends, np.int32)[[texts.offset, texts.offset + len(texts)]]
    data = np.frombuffer(held, np.uint8)[bounds[0] : bounds[1]]
    before = data[np.maximum(np.flatnonzero((data & _AS_BRACKET) == _END) - 1, 0)]
    return bool(((before == ord(",")) | (before <= _BLANK)).any())
