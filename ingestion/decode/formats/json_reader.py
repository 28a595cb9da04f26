"""``json``: records that are JSON texts.

One with a comma before an end is none, nor is one with NaN or Infinity, unless the spec lets it pass: DuckDB reads
both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.envelope import Envelope
from ingestion.decode.formats.base import Texts
from ingestion.decode.payloads import texts_of
from ingestion.specs.formats.input_format import JsonInputFormat

_END = ord("]")
_AS_BRACKET = 0xDF  # makes a bracket of a brace
_COMMA = ord(",")
_BLANK = ord(" ")
_MOST_BLANKS = 16  # that are gone back over; before an end of indented JSON there are some
_COMMA_BEFORE_END = r",\s*[\]}]"
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_WITH_COMMA = "not JSON: a comma before the end of an object or an array"
_NO_NUMBER = r"(?i)[:,\[\s][-+]?(nan|inf|infinity)\s*[,\]}]"
_LOWER = 0x20
_NO_NUMBERS = (b"nan", b"inf", b"infinity")
_LENGTHS, _FIRSTS = np.zeros(256, np.int64), np.zeros(256, np.uint8)  # of the word that ends so, by its last byte
for _word in _NO_NUMBERS:
    _lasts = list(_word[-1:] + _word[-1:].upper())
    _LENGTHS[_lasts], _FIRSTS[_lasts] = len(_word), _word[0]
_NOT_FINITE = "not JSON: NaN or Infinity. featureSpec.ALLOW_NON_NUMERIC_NUMBERS lets them pass"
Places = npt.NDArray[np.int64]


class JsonReader:
    """Payloads as they are."""

    def __init__(self, spec: JsonInputFormat) -> None:
        self._takes_commas = spec.featureSpec.get("ALLOW_TRAILING_COMMA", False)
        self._takes_no_numbers = spec.featureSpec.get("ALLOW_NON_NUMERIC_NUMBERS", False)

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        texts, errors = texts_of(payloads)
        with_number, with_comma = _suspects(texts)
        bad = {}
        if not self._takes_no_numbers:
            bad = _with(texts, with_number, _NO_NUMBER, _NOT_FINITE)
        if not self._takes_commas:
            bad |= _with(texts, with_comma, _COMMA_BEFORE_END, _WITH_COMMA)
        if not bad:
            return texts, errors
        marks = np.zeros(len(texts), np.bool_)
        marks[list(bad)] = True
        return pc.if_else(pa.array(marks), None, texts), errors | bad


def _with(texts: pa.Array, suspects: Places, pattern: str, error: str) -> dict[int, str]:
    """The error by index of those of the texts in which the pattern finds something outside of strings."""
    if not len(suspects):
        return {}
    held = texts if len(suspects) == len(texts) else texts.take(pa.array(suspects))
    found = pc.match_substring_regex(held, pattern).fill_null(False)
    places = suspects[found.to_numpy(zero_copy_only=False)].tolist()
    return {place: error for place in places if re.search(pattern, _STRING.sub('""', texts[place].as_py()))}


def _suspects(texts: pa.Array) -> tuple[Places, Places]:
    """The texts in which NaN or Infinity may stand, and those in which a comma may stand before an end.

    What stands before a comma or an end tells it: such a word by its first and last letter, a comma, or many blanks.
    """
    _, offsets, held = texts.buffers()
    if held is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(held, np.uint8)[bounds[0] : bounds[-1]]
    is_end = (data & _AS_BRACKET) == _END
    places = np.flatnonzero(is_end | (data == _COMMA))
    at = np.maximum(places - 1, 0)
    for _ in range(_MOST_BLANKS):
        if not (is_blank := data[at] <= _BLANK).any():
            break
        at = np.maximum(at - is_blank, 0)
    before = data[at]
    is_blank = before <= _BLANK
    starts = bounds[:-1] - bounds[0]
    lengths = _LENGTHS[before]
    is_word = lengths > 0
    is_word[is_word] = data[np.maximum((at + 1 - lengths)[is_word], 0)] | _LOWER == _FIRSTS[before[is_word]]
    numbers = places[is_blank | is_word]
    commas = places[is_end[places] & (is_blank | (before == _COMMA))]
    return _holders(starts, numbers), _holders(starts, commas)


def _holders(starts: npt.NDArray[np.int32], places: Places) -> Places:
    return np.unique(np.searchsorted(starts, places, "right") - 1)
