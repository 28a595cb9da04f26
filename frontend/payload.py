"""A record's bytes as something that can be read: text where it is text, else a hexadecimal dump. Never markup."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from unicodedata import category

SHOWN_BYTES = 16 * 1024
_DUMP_WIDTH = 16


@dataclass(frozen=True)
class Payload:
    """A payload's beginning as a page shows it."""

    kind: str  # text, json, hexadecimal, empty (no bytes), or missing (a null)
    text: str
    size_bytes: int
    cut: bool  # more bytes than are shown


def payload_of(value: bytes | memoryview | None, limit: int = SHOWN_BYTES, size_bytes: int | None = None) -> Payload:
    """At most ``limit`` bytes of a key or value. ``size_bytes``: of the whole, if ``value`` is only its start."""
    if value is None:
        return Payload("missing", "", 0, False)
    data = bytes(value)
    if not data:
        return Payload("empty", "", 0, False)
    size = max(len(data), size_bytes or 0)
    shown, cut = data[:limit], size > min(limit, len(data))
    text = _as_text(shown, cut)
    if text is not None:
        return Payload("text", text, size, cut)
    return Payload("hexadecimal", _dump(shown), size, cut)


def payload_as(form: str, value: bytes | memoryview | None, limit: int = SHOWN_BYTES) -> Payload:
    """A payload in the form that the reader asks for: hexadecimal, or json (indented); any other: see ``payload_of``.

    JSON is read whole: a part of it is none.
    """
    payload = payload_of(value, limit)
    if payload.kind not in ("text", "hexadecimal"):
        return payload
    data = bytes(value or b"")
    if form == "hexadecimal":
        return Payload("hexadecimal", _dump(data[:limit]), len(data), len(data) > limit)
    text = _indented(data) if form == "json" and len(data) <= limit else None
    return payload if text is None else Payload("json", text, len(data), False)


def json_of(value: bytes | memoryview | None, limit: int = SHOWN_BYTES) -> tuple[bool, Any]:
    """Whether the payload is JSON and no longer than ``limit``, and its value."""
    data = bytes(value or b"")
    if not data or len(data) > limit:
        return False, None
    try:
        return True, json.loads(data)
    except (ValueError, RecursionError):
        return False, None


def _indented(data: bytes) -> str | None:
    try:
        text = json.dumps(json.loads(data), indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
    except (ValueError, RecursionError):
        return None
    return _as_text(text, cut=False)


def _as_text(data: bytes, cut: bool) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        # The cut may have gone through a character: only then are up to three broken bytes at the end no fault.
        if not cut or error.start < len(data) - 3:
            return None
        text = data[: error.start].decode()
    if any(category(c) == "Cc" and c not in "\t\n\r" for c in text):
        return None
    return visible(text)


def visible(text: str) -> str:
    """Text in which what changes the direction or hides itself is written as an escape."""
    return "".join(c if _visible(c) else f"\\u{ord(c):04x}" for c in text)


def _visible(character: str) -> bool:
    """Not what changes the direction or hides itself: a reader must see what is there."""
    return character in "\t\n\r" or not category(character).startswith(("C", "Zl", "Zp"))


def _dump(data: bytes) -> str:
    lines = (data[i : i + _DUMP_WIDTH] for i in range(0, len(data), _DUMP_WIDTH))
    return "\n".join(_dump_line(i * _DUMP_WIDTH, line) for i, line in enumerate(lines))


def _dump_line(offset: int, line: bytes) -> str:
    shown = "".join(chr(b) if 32 <= b < 127 else "." for b in line)
    return f"{offset:08x}  {line.hex(' '):<{_DUMP_WIDTH * 3 - 1}}  {shown}"
