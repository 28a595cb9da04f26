"""Values as the JSON texts that Jackson, and so Druid, writes of them."""

from __future__ import annotations

import json
import re
from typing import Any

from ingestion.decode.druid_values import number_text

_CONTROL = re.compile(r"\\(u00[01][0-9a-f]|.)")


def json_text(value: Any) -> str:
    """Without blanks; of doubles with Java's digits, and what is no number in quotes."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(name)}:{json_text(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(json_text(inner) for inner in value) + "]"
    if isinstance(value, float):
        text = number_text(value)
        return text if text[-1].isdigit() else f'"{text}"'
    return _in_quotes(value) if isinstance(value, str) else json.dumps(value)


def _in_quotes(text: str) -> str:
    """Control characters have capital digits."""
    written = json.dumps(text, ensure_ascii=False)
    return written if text.isprintable() else _CONTROL.sub(_capital, written)


def _capital(match: re.Match[str]) -> str:
    return f"\\u{match[1][1:].upper()}" if len(match[1]) > 1 else match[0]
