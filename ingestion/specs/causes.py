"""Causes of quarantined records: the reason, and the message without the values of the single record.

Names of fields, transforms and types stay, and so does the problem. Values, numbers, places and ids are removed.
Records whose causes have the same fingerprint are fixed and replayed together.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

MAX_CHARACTERS = 300
FINGERPRINT_LENGTH = 16
_NUMBER, _VALUE = "#", "…"

_CUT = re.compile(r" \(Only the first [\d,]+ of its [\d,]+ bytes are stored\.\)$")
# Messages that end with what the record holds.
_TAILS = (
    re.compile(r"^(.*? has no time of format .+?): .*$", re.DOTALL),
    re.compile(r"^(.*? is not between year 1 and \d{4}-\S+Z): .*$", re.DOTALL),
)
_QUOTED = re.compile(r"(?<!\w)b?('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(?!\w)", re.DOTALL)
# The words before a quoted name of the spec's or the schema's; what is quoted elsewhere is a value.
_NAMES = re.compile(r"\b(?:fields?|transforms?|columns?|dimensions?|metrics?|types?|messages?|structs?|enums?) $")
_IDENTIFIER = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b0x[0-9a-fA-F]+\b")
_DIGITS = re.compile(r"(?<![\w-])[-+]?\d[\d,]*(?:[.:]\d+)*(?:[eE][-+]?\d+)?(?![\w])")
_MOMENT = re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True)
class Cause:
    """Why records are in quarantine or have a faulty field."""

    reason: str
    title: str  # the message without what is the record's own

    @property
    def fingerprint(self) -> str:
        """Equal causes have the same one, in every datasource and version."""
        return hashlib.sha256(f"{self.reason}\n{self.title}".encode()).hexdigest()[:FINGERPRINT_LENGTH]


def cause_of(reason: str, error: str) -> Cause:
    """The cause of a record with this reason and message."""
    text = _CUT.sub("", error)
    for tail in _TAILS:
        match = tail.match(text)
        if match:
            text = match[1]
    return Cause(reason, _SPACES.sub(" ", _without_values(text)).strip()[:MAX_CHARACTERS])


def _without_values(text: str) -> str:
    """Names stay as they are, numbers in them too; all else is stripped."""
    out, end = "", 0
    for match in _QUOTED.finditer(text):
        before = text[end : match.start()]
        named = _NAMES.search(before) is not None
        out += _stripped(before) + (match[0] if named else _VALUE)
        end = match.end()
    return out + _stripped(text[end:])


def _stripped(text: str) -> str:
    for pattern in (_IDENTIFIER, _MOMENT, _DIGITS):
        text = pattern.sub(_NUMBER, text)
    return text
