"""What every reader of a format does: payloads in, one JSON object's text for each out."""

from __future__ import annotations

import json
import re
import secrets
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from operator import itemgetter
from typing import Any, Protocol
from uuid import UUID

import duckdb
import pyarrow as pa

from ingestion.decode.envelope import Envelope
from ingestion.decode.errors import DecodeError
from ingestion.decode.exact_numbers import NumberToken, decimal_number
from ingestion.decode.payloads import empty_reason

_MAX_SHOWN = 200
_TOKEN = itemgetter(1)  # of a match
_MARK = f"\ufdd0{secrets.token_hex(8)}"  # one that no producer knows, so that no text of theirs begins with it
_MARKED = re.compile(rf'"{_MARK}(-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|NaN|-?Infinity)"')
Texts = tuple[pa.Array, dict[int, str]]


class Reader(Protocol):
    """Reads one format. Not thread-safe."""

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        """A string array with every payload's JSON text, null where there is none, and the errors of those by index.

        A text need not be valid JSON, nor an object: the next stage says so then. Raises ``RegistryUnreachable`` when
        nothing can be said of the records for now.
        """


class BadRecord(Exception):
    """The record can't be read; the message says why, in one line without the payload."""


def read_texts(
    payloads: Sequence[bytes | None], text_of: Callable[[bytes], str], *, empty_is_a_record: bool = False
) -> Texts:
    """Each payload's text by ``text_of``. Its exceptions become the record's error, except a ``DecodeError``."""
    texts: list[str | None] = []
    errors: dict[int, str] = {}
    for index, payload in enumerate(payloads):
        text = None
        if payload is None or not (payload or empty_is_a_record):
            errors[index] = empty_reason(payload)
        else:
            try:
                text = text_of(payload)
            except (DecodeError, duckdb.InterruptException):
                raise
            except Exception as error:  # what a library makes of arbitrary bytes is beyond counting
                errors[index] = short_error(error)
        texts.append(text)
    return to_text_array(texts, errors), errors


def decoded_text(payload: bytes) -> str:
    """In UTF-8, without a byte order mark. Raises ``BadRecord``."""
    try:
        return payload.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise BadRecord(f"not UTF-8: {error.reason} at byte {error.start}") from None


def one_line(text: str) -> str:
    """The text without the end of its line. Raises ``BadRecord`` where there are several."""
    line = text.removesuffix("\n").removesuffix("\r")
    if "\n" in line or "\r" in line:
        raise BadRecord("there are several lines instead of one")
    return line


def short_error(error: Exception) -> str:
    """An error in one short line."""
    text = (str(error).splitlines() or [""])[0][:_MAX_SHOWN]
    if isinstance(error, BadRecord):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def to_text_array(texts: list[str | None], errors: dict[int, str]) -> pa.Array:
    """The texts as Arrow has them; one that is no Unicode text becomes an error."""
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        for index, text in enumerate(texts):
            if text is not None and not _is_unicode(text):
                texts[index] = None
                errors[index] = "a text in it has half of a surrogate pair"
        return pa.array(texts, pa.string())


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def json_encoder(binary_as_string: bool = False) -> Callable[[Any], str]:
    """Writes values as JSON: bytes in base64 (or as the UTF-8 text they hold), dates in ISO.

    A ``NumberToken`` and a decimal are numbers that keep their digits (see ``exact_numbers``).
    """

    def other(value: Any) -> Any:
        if isinstance(value, NumberToken):
            return _MARK + value.token  # in quotes for now: this encoder writes other numbers in one way alone
        if isinstance(value, Decimal):
            number = decimal_number(value)
            return number if isinstance(number, str) else _MARK + number.token
        if isinstance(value, bytes | bytearray | memoryview):
            raw = bytes(value)
            return raw.decode(errors="replace") if binary_as_string else b64encode(raw).decode()
        if isinstance(value, UUID):
            return str(value)
        if isinstance(value, date):
            return f"{value.isoformat()}T00:00:00.000Z"
        raise BadRecord(f"a value of type {type(value).__name__} has no JSON form")

    encode = json.JSONEncoder(default=other, ensure_ascii=False, check_circular=False, separators=(",", ":")).encode

    def encoded(value: Any) -> str:
        text = encode(value)
        return _MARKED.sub(_TOKEN, text) if _MARK in text else text

    return encoded
