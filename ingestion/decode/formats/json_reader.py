"""``json``: records that are JSON texts. One with a comma before an end is none, unless the spec lets it pass."""

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
_ERROR = "not JSON: a comma before the end of an object or an array"


class JsonReader:
    """Payloads as they are."""

    def __init__(self, spec: JsonInputFormat) -> None:
        self._lets_pass = spec.featureSpec.get("ALLOW_TRAILING_COMMA", False)

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        texts, errors = texts_of(payloads)
        if self._lets_pass or not _may_have_one(texts):
            return texts, errors
        suspects = pc.match_substring_regex(texts, _COMMA_BEFORE_END).fill_null(False)
        places = np.flatnonzero(suspects.to_numpy(zero_copy_only=False)).tolist()
        bad = {place: _ERROR for place in places if _has_one(texts[place].as_py())}
        if not bad:
            return texts, errors
        marks = np.zeros(len(texts), np.bool_)
        marks[list(bad)] = True
        return pc.if_else(pa.array(marks), None, texts), errors | bad


def _may_have_one(texts: pa.Array) -> bool:
    """Whether a comma, or a blank with perhaps a comma before it, stands before a bracket or a brace."""
    _, ends, held = texts.buffers()
    if held is None:
        return False
    bounds = np.frombuffer(ends, np.int32)[[texts.offset, texts.offset + len(texts)]]
    data = np.frombuffer(held, np.uint8)[bounds[0] : bounds[1]]
    before = data[np.maximum(np.flatnonzero((data & _AS_BRACKET) == _END) - 1, 0)]
    return bool(((before == ord(",")) | (before <= _BLANK)).any())


def _has_one(text: str) -> bool:
    return re.search(_COMMA_BEFORE_END, _STRING.sub('""', text)) is not None
