"""Sketches that others wrote, as texts in base64."""

from __future__ import annotations

import base64
import binascii

from ingestion.sketches.merging import Merger


def read_sketch(text: str, merger: Merger) -> bytes | None:
    """The sketch, in the form that the metric asks for; None if the text is none of that kind.

    As in Druid, padding may be left out whole.
    """
    try:
        padding = "" if text.endswith("=") else "=" * (-len(text) % 4)
        raw = base64.b64decode(text + padding, validate=True)
        return merger.union.of([raw]) if merger.union.takes(raw) else None
    except (binascii.Error, RuntimeError, ValueError, IndexError, MemoryError):
        return None
