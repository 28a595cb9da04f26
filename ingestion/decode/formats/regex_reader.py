"""``regex``: a pattern matches each line as a whole; what its groups hold are the values, as texts.

As in Druid: a group that took no part is null, one that matched nothing an empty text; a value that holds the list
delimiter is a list. Without columns the values are ``column_1``, ``column_2`` and so on; of more groups than columns
the last are left out. With ``rowsPerRecord`` 1 the pattern matches the whole record, the ends of its lines included.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingestion.decode.druid_patterns import pattern
from ingestion.decode.druid_values import EvaluationFailed
from ingestion.decode.engine import Engine
from ingestion.decode.envelope import Envelope
from ingestion.decode.errors import UnusableSchema
from ingestion.decode.formats.base import BadRecord, Texts, decoded_text, json_encoder, one_line, read_texts
from ingestion.specs.formats.input_format import RegexInputFormat
from ingestion.specs.schema.java_classes import BadPattern


class RegexReader:
    """Reads records of one row (of several: ``ingestion.decode.multi_row``).

    Raises ``UnusableSchema`` for a pattern that can't be read, or means something else in Java.
    """

    def __init__(self, spec: RegexInputFormat, engine: Engine) -> None:
        try:
            self._pattern = pattern(spec.pattern)
        except BadPattern as error:
            raise UnusableSchema(str(error)) from None
        self._columns = spec.columns or [f"column_{n + 1}" for n in range(self._pattern.groups)]
        self._list_delimiter = spec.listDelimiter
        self._whole = spec.rowsPerRecord == 1
        self._encode = json_encoder()
        self._engine = engine

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        return read_texts(payloads, self._text)

    def _text(self, payload: bytes) -> str:
        self._engine.check_interrupted()
        text = decoded_text(payload)
        try:
            values = self._pattern.matched(text if self._whole else one_line(text))
        except EvaluationFailed:
            raise BadRecord("Java may match this text differently by the pattern") from None
        if values is None:
            raise BadRecord("the pattern does not match")
        return self._encode(
            {
                name: value.split(self._list_delimiter) if value and self._list_delimiter in value else value
                for name, value in zip(self._columns, values, strict=False)
            }
        )
