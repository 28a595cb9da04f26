"""How the intervals of a datasource are the partitions of an Iceberg table: the specs that every table has.

A manifest is for one interval, and takes the finest spec that holds the whole interval: hour 486,000 of 1970, day
20,240, and so on. An interval that no unit holds, such as a week across a year's end, takes the spec without fields;
readers then go by the times of each file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ingestion.specs.time_column import TIME_ID

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_FIELD = 1000  # Iceberg numbers the fields of partitions from here on
_HOUR = timedelta(hours=1)
# The unit's ordinal of a time, by Iceberg's name of the transform; the finest first.
_UNITS: dict[str, Callable[[datetime], int]] = {
    "hour": lambda at: (at - _EPOCH) // _HOUR,
    "day": lambda at: (at - _EPOCH).days,
    "month": lambda at: (at.year - 1970) * 12 + at.month - 1,
    "year": lambda at: at.year - 1970,
}
LAST_FIELD = _FIRST_FIELD + len(_UNITS) - 1
DEFAULT_SPEC = 1


@dataclass(frozen=True)
class Partition:
    """The partition of an interval: a spec by its number, and the value of its only field; None where it has none."""

    spec: int
    value: int | None

    @classmethod
    def of(cls, start: datetime, end: datetime) -> Partition:
        """That of ``[start, end)``, in UTC."""
        last = end - timedelta(microseconds=1)
        for spec, ordinal in enumerate(_UNITS.values(), 1):
            if ordinal(start) == ordinal(last):
                return cls(spec, ordinal(start))
        return cls(0, None)


def spec_fields(spec: int) -> list[dict[str, Any]]:
    """The fields of a spec as Iceberg's JSON has them: one, and none for spec 0."""
    if spec == 0:
        return []
    transform = list(_UNITS)[spec - 1]
    number = _FIRST_FIELD + spec - 1
    return [{"source-id": TIME_ID, "field-id": number, "name": f"time_{transform}", "transform": transform}]


def all_specs() -> list[dict[str, Any]]:
    """What a table's metadata says of them."""
    return [{"spec-id": spec, "fields": spec_fields(spec)} for spec in range(len(_UNITS) + 1)]
