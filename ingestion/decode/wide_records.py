"""Few records decoded together, however many fields they hold."""

from __future__ import annotations

from collections.abc import Sequence

from ingestion.decode.decoded import Decoded, join_decoded
from ingestion.decode.envelope import Envelope, take_records
from ingestion.decode.errors import TooWide
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow


def decode_together(
    decoder: JsonDecoder,
    payloads: Sequence[bytes | None],
    window: MessageWindow,
    envelope: Envelope | None = None,
) -> Decoded:
    """``JsonDecoder.decode`` of records that are few: one table has all their fields, however many those are."""
    try:
        return decoder.decode(payloads, window, envelope)
    except TooWide:
        middle = len(payloads) // 2
    parts = [
        decode_together(decoder, payloads[span.start : span.stop], window, take_records(envelope, span)).moved(span)
        for span in (range(middle), range(middle, len(payloads)))
    ]
    return join_decoded(parts)
