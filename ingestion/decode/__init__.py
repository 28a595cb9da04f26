"""Record bytes of any input format to Arrow through DuckDB. Knows no Kafka and no Django.

Two decoders with one face: ``JsonDecoder`` works in this process, ``IsolatedDecoder`` in a child process that a record
may kill. ``decode(payloads, window, envelope)`` returns a ``Decoded`` in which every payload ended in exactly one way;
a bad record never fails its batch. Neither is thread-safe: one decoder per thread.

What is decided here, and why, stands in the docstrings of ``json_decoder`` (records), ``columns``
(values), ``times`` (timestamps), ``filters`` and ``formats`` (what is not JSON).
"""

from ingestion.decode.decoded import Decoded
from ingestion.decode.envelope import Envelope
from ingestion.decode.errors import DecodeError, DecoderBroken, RegistryUnreachable, TooSlow, TooWide, UnusableSchema
from ingestion.decode.isolated import IsolatedDecoder
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.whole import decoded_whole
from ingestion.decode.window import MessageWindow
from ingestion.rows import joined_rows, row_indexes

__all__ = [
    "DecodeError",
    "Decoded",
    "DecoderBroken",
    "Envelope",
    "IsolatedDecoder",
    "JsonDecoder",
    "MessageWindow",
    "RegistryUnreachable",
    "TooSlow",
    "TooWide",
    "UnusableSchema",
    "decoded_whole",
    "joined_rows",
    "row_indexes",
]
