"""A position in a topic: ``earliest``, ``latest``, an instant, or a duration before now. One text for it everywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ingestion.specs.base import CENTURY

EXAMPLES = "earliest, latest, a time with a zone such as 2026-11-27T09:00:00Z, or a duration before now such as PT30M"
MAX_LENGTH = 100  # characters
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_DURATION = re.compile(
    r"P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,3})?)S)?)?", re.ASCII
)
_CALENDAR = re.compile(r"P(?:\d+Y)?(?:\d+M)?(?:\d+W)?(?:\d+D)?(?:T.*)?", re.ASCII)
_DIGITS = re.compile(r"-?\d+", re.ASCII)


@dataclass(frozen=True)
class Position:
    """Where reading begins, in every partition of a topic."""

    kind: Literal["earliest", "latest", "instant", "ago"]
    instant: datetime | None = None  # in UTC: at the first record of this time or later
    ago: timedelta | None = None  # the same, as long before now; see ``at``

    @classmethod
    def parse(cls, text: str) -> Position:
        """Raises ``ValueError`` with what is wrong and what to write instead."""
        if text == "earliest":
            return cls("earliest")
        if text == "latest":
            return cls("latest")
        if text.startswith("P"):
            return cls("ago", ago=_parse_duration(text))
        return cls("instant", instant=_parse_instant(text))

    @classmethod
    def of_instant(cls, instant: datetime) -> Position:
        """``instant``: with its zone."""
        return cls("instant", instant=instant.astimezone(UTC))

    def at(self, now: datetime) -> Position:
        """A duration counted from ``now`` is an instant; other positions stay as they are."""
        if self.ago is None:
            return self
        return replace(self, kind="instant", instant=now.astimezone(UTC) - self.ago, ago=None)

    @property
    def timestamp_ms(self) -> int | None:
        """Of an instant, as Kafka's records have it: rounded up, and never negative. Kafka has meanings for these."""
        return None if self.instant is None else max(0, -((_EPOCH - self.instant) // _MS))

    def __str__(self) -> str:
        """A text that ``parse`` reads as the same position."""
        if self.instant is not None:
            return self.instant.isoformat().replace("+00:00", "Z")
        return self.kind if self.ago is None else _write_duration(self.ago)


def _parse_duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()) or text.endswith("T"):
        if _CALENDAR.fullmatch(text) and re.search(r"[YM]", text.partition("T")[0]):
            raise ValueError(f"{text!r} has months or years, which differ in length. For 30 minutes, write PT30M")
        raise ValueError(f"{text!r} is not a duration such as PT30M, PT12H or P7D")
    weeks, days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    try:
        ago = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        ago = CENTURY + _MS
    if ago > CENTURY:
        raise ValueError(f"{text!r} is longer than a century. To read everything, write earliest")
    return ago


def _parse_instant(text: str) -> datetime:
    refused = ValueError(f"{text!r} is not a position. Write {EXAMPLES}")
    if _DIGITS.fullmatch(text) or "T" not in text:
        raise refused
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise refused from None
    if time.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone. Add Z for UTC, or the difference to UTC such as +01:00")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise refused from None


def _write_duration(value: timedelta) -> str:
    minutes, rest = divmod(value, timedelta(minutes=1))
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    seconds = f"{rest / timedelta(seconds=1):.3f}".rstrip("0").rstrip(".") if rest else ""
    times = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M"), (seconds, "S")) if number)
    return (f"P{days}D" if days else "P") + (f"T{times}" if times else "" if days else "T0S")


def _check(text: str) -> str:
    Position.parse(text)
    return text


PositionText = Annotated[str, Field(max_length=MAX_LENGTH), AfterValidator(_check)]  # in a spec
