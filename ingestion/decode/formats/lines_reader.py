"""``lines``: a record is a text of one line, kept whole in the field ``line``."""

from __future__ import annotations

from collections.abc import Sequence

from ingestion.decode.envelope import Envelope
from ingestion.decode.formats.base import BadRecord, Texts, decoded_text, json_encoder, texts_by


class LinesReader:
    """A line's end may stand behind it. A record of several lines would be several rows, and is unparseable."""

    def __init__(self) -> None:
        self._encode = json_encoder()

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        return texts_by(payloads, self._text)

    def _text(self, payload: bytes) -> str:
        line = decoded_text(payload)
        line = line.removesuffix("\n").removesuffix("\r")
        if "\n" in line or "\r" in line:
            raise BadRecord("there are several lines, and not one")
        return self._encode({"line": line})
