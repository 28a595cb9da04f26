"""Text from outside, before it meets the database."""

from __future__ import annotations


def storable(text: str) -> bool:
    """Whether PostgreSQL can hold the text: it refuses NUL characters and half surrogate pairs."""
    return "\x00" not in text and not any("\ud800" <= c <= "\udfff" for c in text)
