"""The header that names the masked columns of an answer of SQL."""

from __future__ import annotations

from collections.abc import Iterable

_MAX_HEADER = 2_000  # characters


def masked_header(names: Iterable[str]) -> str:
    """What a header can hold of these."""
    text = ", ".join(names).encode("ascii", "backslashreplace").decode()
    return text if len(text) <= _MAX_HEADER else text[:_MAX_HEADER] + "..."
