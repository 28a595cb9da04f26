"""Text that the metadata store can hold."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

_REPLACEMENTS = {0: "\u2400", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}


def storable_text(text: str) -> str:
    """The text, of the same length, as JSON in UTF-8 and PostgreSQL can hold it: no NUL, no half surrogate pairs."""
    return text.translate(_REPLACEMENTS)


StorableText = Annotated[str, AfterValidator(storable_text)]
