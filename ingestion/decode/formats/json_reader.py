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
from ingestion.decode.payloads import decode_texts
from ingestion.specs.formats.input_format import JsonInputFormat

_END = ord("]")
_AS_BRACKET = 0xDF  # makes a bracket of a brace
_COMMA = ord(",")
_BLANK = ord(" ")
_MAX_BLANKS = 16  # that are gone back over; before an end of indented JSON there are some
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
Indexes = npt.NDArray[np.int64]


class JsonReader:
    """Payloads as they are."""

    def __init__(self, spec: JsonInputFormat) -> None:
        self._takes_commas = spec.featureSpec.get("ALLOW_TRAILING_COMMA", False)
        self._takes_no_numbers = spec.featureSpec.get("ALLOW_NON_NUMERIC_NUMBERS", False)

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        texts, errors = decode_texts(payloads)
        with_number, with_comma = _find_suspects(texts)
        bad = {}
        if not self._takes_no_numbers:
            bad = _find_errors(texts, with_number, _NO_NUMBER, _NOT_FINITE)
        if not self._takes_commas:
            bad |= _find_errors(texts, with_comma, _COMMA_BEFORE_END, _WITH_COMMA)
        if not bad:
            return texts, errors
        marks = np.zeros(len(texts), np.bool_)
        marks[list(bad)] = True
        return pc.if_else(pa.array(marks), None, texts), errors | bad


def _find_errors(texts: pa.Array, suspects: Indexes, pattern: str, error: str) -> dict[int, str]:
    """The error by index of those of the texts in which the pattern finds something outside of strings."""
    if not len(suspects):
        return {}
    suspect_texts = texts if len(suspects) == len(texts) else texts.take(pa.array(suspects))
    matches = pc.match_substring_regex(suspect_texts, pattern).fill_null(False)
    places = suspects[matches.to_numpy(zero_copy_only=False)].tolist()
    return {place: error for place in places if re.search(pattern, _STRING.sub('""', texts[place].as_py()))}


def _find_suspects(texts: pa.Array) -> tuple[Indexes, Indexes]:
    """The texts in which NaN or Infinity may stand, and those in which a comma may stand before an end.

    What stands before a comma or an end tells it: such a word by its first and last letter, a comma, or many blanks.
    """
    _, offsets, buffer = texts.buffers()
    if buffer is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(buffer, np.uint8)[bounds[0] : bounds[-1]]
    is_end = (data & _AS_BRACKET) == _END
    places = np.flatnonzero(is_end | (data == _COMMA))
    at = np.maximum(places - 1, 0)
    for _ in range(_MAX_BLANKS):
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
    return _texts_at(starts, numbers), _texts_at(starts, commas)


def _texts_at(starts: npt.NDArray[np.int32], places: Indexes) -> Indexes:
    return np.unique(np.searchsorted(starts, places, "right") - 1)
