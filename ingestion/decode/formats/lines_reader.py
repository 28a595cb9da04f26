"""``lines``: each line is a row, kept whole in the field ``line``."""

from __future__ import annotations

from collections.abc import Sequence

from ingestion.decode.envelope import Envelope
from ingestion.decode.formats.base import Texts, decoded_text, json_encoder, one_line, read_texts


class LinesReader:
    """Reads records of one line, with or without its end (of several: ``ingestion.decode.multi_row``)."""

    def __init__(self) -> None:
        self._encode = json_encoder()

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        return read_texts(payloads, self._text)

    def _text(self, payload: bytes) -> str:
        return self._encode({"line": one_line(decoded_text(payload))})
