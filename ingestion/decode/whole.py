"""Few records decoded together, however many fields they hold."""

from __future__ import annotations

from collections.abc import Sequence

from ingestion.decode.decoded import Decoded, joined
from ingestion.decode.envelope import Envelope, taken
from ingestion.decode.errors import TooWide
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.window import MessageWindow


def decoded_whole(
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
        decoded_whole(decoder, payloads[there.start : there.stop], window, taken(envelope, there)).moved(there)
        for there in (range(middle), range(middle, len(payloads)))
    ]
    return joined(parts)
