# ruff: noqa: S608 - the SQL is built of constants; names and the delimiter pass through engine.literal
"""``csv`` and ``tsv``/``delimited``: lines of values, the columns named by the spec or the record's header.

As in Druid: a value in a csv may stand in quotes (RFC 4180) and hold commas, line breaks and doubled quotes then, while
a quote in a tsv is a character like others; nothing between two delimiters is null, and so is ``""`` no null but an
empty text; a record with fewer values than columns has nulls, what is beyond the columns is left out; a value that
holds the list delimiter is a list. Values are texts unless ``tryParseNumbers`` says otherwise.

Header rows are those of the record itself, since a stream has no other beginning. Read here are records of one row;
``ingestion.decode.multi_row`` makes such of those with more.

Where the columns are the spec's, the plain records of a batch, without quotes, lists or line breaks, are taken apart by
DuckDB all at once, ten times as fast as here one by one; with the same results.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.engine import RECORDS, Engine, sql_literal
from ingestion.decode.envelope import Envelope
from ingestion.decode.fields import Mask, flat
from ingestion.decode.formats.base import BadRecord, Texts, decoded_text, json_encoder, read_texts
from ingestion.decode.payloads import decode_texts
from ingestion.specs.formats.input_format import CsvInputFormat, DelimitedInputFormat

_VALUE = re.compile(r'(?:"((?:[^"]|"")*)"|([^",\r\n][^,\r\n]*)?)(,|\r\n|\n|\r|\Z)')
_VALUE_OF_BYTES = re.compile(_VALUE.pattern.encode())
LINE_END = re.compile(r"\r\n|\n|\r")
_LONG = re.compile(r"-?\d{1,400}", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?[fFdD]?", re.ASCII)
Values = list[str | None]


class DelimitedReader:
    """Reads ``csv`` and ``tsv``."""

    def __init__(self, spec: CsvInputFormat | DelimitedInputFormat, engine: Engine) -> None:
        self._columns = None if spec.has_header else spec.columns
        self._skipped = spec.skipHeaderRows
        self._list_delimiter = spec.listDelimiter
        self._typed: Callable[[str], Any] = _number if spec.tryParseNumbers else str
        self._rows = _csv_rows if isinstance(spec, CsvInputFormat) else _RowSplitter(spec.delimiter)
        self._encode = json_encoder()
        self._engine = engine
        at_once = self._columns and not self._skipped and not spec.tryParseNumbers
        self._sql = _split_sql(self._columns or [], _delimiter(spec)) if at_once else ""
        self._special = [spec.listDelimiter, '"'] if isinstance(spec, CsvInputFormat) else [spec.listDelimiter]

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        if not self._sql:
            return read_texts(payloads, self._text)
        texts, errors = decode_texts(payloads)
        lines = pc.utf8_rtrim(texts, "\r\n")
        plain = self._is_plain(lines)
        if plain.all():
            return self._split_lines(lines), errors
        others = np.flatnonzero(~plain)
        slow, faults = read_texts([payloads[i] for i in others.tolist()], self._text)
        combined = pa.concat_arrays([self._split_lines(lines.filter(pa.array(plain))), slow])
        order = np.argsort(np.concatenate([np.flatnonzero(plain), others]))
        return combined.take(pa.array(order)), errors | {int(others[i]): fault for i, fault in faults.items()}

    def _is_plain(self, lines: pa.Array) -> Mask:
        """Which records are a line of values with nothing in them that means more."""
        is_odd = pc.match_substring_regex(lines, "^$|[\r\n]")
        for text in self._special:
            is_odd = pc.or_(is_odd, pc.match_substring(lines, text))
        return ~np.asarray(is_odd.fill_null(True).to_numpy(zero_copy_only=False), np.bool_)

    def _split_lines(self, lines: pa.Array) -> pa.Array:
        return flat(self._engine.run(self._sql, RECORDS, pa.table({"j": lines})).column(0))

    def _text(self, payload: bytes) -> str:
        text = decoded_text(payload)
        columns, values = self._columns, None
        if columns is not None and not self._skipped and '"' not in text:
            line = text.rstrip("\r\n")
            if line and "\n" not in line and "\r" not in line:
                values = self._rows(line)[0]
        if values is None:
            columns, values = self._header_and_values(text)
        return self._encode(self._record(columns or [], values))

    def _header_and_values(self, text: str) -> tuple[list[str], Values]:
        rows = self._rows(text)
        while rows and rows[-1] == [None]:  # an empty line at the end
            rows.pop()
        rows = rows[self._skipped :]
        columns = self._columns
        if columns is None:
            if not rows:
                raise BadRecord("there is no header row")
            columns = [name or f"column_{number}" for number, name in enumerate(rows.pop(0), 1)]
        if len(rows) != 1:
            raise BadRecord(f"there are {len(rows)} rows instead of one" if rows else "there is no row of values")
        return columns, rows[0]

    def _record(self, columns: list[str], values: Values) -> dict[str, Any]:
        delimiter, typed = self._list_delimiter, self._typed
        return {
            name: value
            if value is None
            else [typed(part) for part in value.split(delimiter)]
            if delimiter in value
            else typed(value)
            for name, value in zip(columns, values, strict=False)
        }


def _delimiter(spec: CsvInputFormat | DelimitedInputFormat) -> str:
    return "," if isinstance(spec, CsvInputFormat) else spec.delimiter


def _split_sql(columns: list[str], delimiter: str) -> str:
    values = ", ".join(f"{sql_literal(name)}, nullif(s[{i + 1}], '')" for i, name in enumerate(columns))
    split = f"SELECT string_split(j, {sql_literal(delimiter)}) AS s FROM records"
    return f"SELECT json_object({values})::VARCHAR AS j FROM ({split})"


class _RowSplitter:
    """The rows of a text with this delimiter, where quotes mean nothing."""

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter

    def __call__(self, text: str) -> list[Values]:
        return [[value or None for value in line.split(self._delimiter)] for line in LINE_END.split(text)]


def _csv_rows(text: str) -> list[Values]:
    if '"' not in text:
        return [[value or None for value in line.split(",")] for line in LINE_END.split(text)]
    rows: list[Values] = [[]]
    place, end = 0, ","
    while place < len(text) or end == ",":
        match = _VALUE.match(text, place)
        if match is None:
            raise BadRecord(f"not CSV: a quote without its end, or text after a closing quote, at character {place}")
        quoted, plain, end = match.groups()
        value = plain if quoted is None else quoted
        rows[-1].append(value and value.replace('""', '"'))
        if end not in (",", ""):
            rows.append([])
        place = match.end()
        if not end:
            break
    if not rows[-1]:
        rows[-1].append(None)
    return rows


def csv_line_ends(payload: bytes) -> list[tuple[int, int]]:
    """Where lines end that end outside of quotes, as half-open ranges of bytes; none in what is no CSV."""
    ends = []
    place = len(BOM_UTF8) if payload.startswith(BOM_UTF8) else 0
    while place < len(payload):
        match = _VALUE_OF_BYTES.match(payload, place)
        if match is None:
            return []
        if match[3] not in (b",", b""):
            ends.append(match.span(3))
        place = match.end()
    return ends


def _number(value: str) -> Any:
    if _LONG.fullmatch(value):
        return int(value)
    return float(value.rstrip("fFdD")) if _DOUBLE.fullmatch(value) else value
