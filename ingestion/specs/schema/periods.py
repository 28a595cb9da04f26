"""Druid's period and duration granularities: buckets of any length, in any time zone, counted from an origin.

Years, months, weeks and days are those of the zone's calendar: a day is from midnight to midnight, be it 23, 24 or 25
hours long. Hours, minutes, seconds and durations are of equal length always. Without an origin, buckets are counted
from the beginning of 1970 in the zone; a single week from a Monday.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cached_property
from typing import Any, Literal
from zoneinfo import ZoneInfo

from dateutil.relativedelta import relativedelta
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ingestion.specs.errors import error_text
from ingestion.specs.limits import FieldName
from ingestion.specs.schema.granularity import MAX_TIME, MIN_TIME, Granularity

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_PERIOD = re.compile(
    r"P(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)S)?)?"
)
_OFFSET = re.compile(r"([+-])([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
_LONGEST = timedelta(days=366 * 9999)


class _Buckets(BaseModel):
    """A granularity that is an object in the JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    origin: datetime | None = None

    @field_validator("origin", mode="before")
    @classmethod
    def _parse_duration(cls, value: Any) -> Any:
        """A number is one of milliseconds, as in Druid."""
        if isinstance(value, str) and value.lstrip("+-").isdigit():
            raise ValueError("must be a time in ISO 8601, or milliseconds since 1970")
        if isinstance(value, int) and not isinstance(value, bool):
            try:
                return _EPOCH + value * _MILLISECOND
            except OverflowError:
                raise ValueError("must be between the years 1 and 9999") from None
        return value

    @field_validator("origin")
    @classmethod
    def _convert_to_utc(cls, value: datetime | None) -> datetime | None:
        return value if value is None else value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)


class DurationGranularity(_Buckets):
    """Buckets of ``duration`` milliseconds each, counted from ``origin``."""

    type: Literal["duration"]
    duration: int = Field(ge=1, le=_LONGEST // _MILLISECOND)

    @property
    def fixed_ms(self) -> tuple[int, int] | None:
        """Origin and width of the buckets in milliseconds."""
        return _milliseconds(self.origin or _EPOCH), self.duration

    def bucket(self, time: datetime) -> tuple[datetime, datetime]:
        """The half-open interval of ``time`` (aware, UTC): (start, end)."""
        return _fixed_bucket(time, _milliseconds(self.origin or _EPOCH), self.duration)


class PeriodGranularity(_Buckets):
    """Buckets of an ISO 8601 ``period``, in the calendar of ``timeZone`` (UTC without one)."""

    type: Literal["period"]
    period: FieldName
    timeZone: FieldName | None = None

    @field_validator("timeZone")
    @classmethod
    def _check_zone(cls, value: str | None) -> str | None:
        try:
            zone_of(value)
        except (ValueError, OSError, LookupError):
            raise ValueError(
                "must be a time zone's name, such as Europe/Zurich, UTC, or an offset such as -08:00"
            ) from None
        return value

    @model_validator(mode="after")
    def _check_period_kind(self) -> PeriodGranularity:
        match = _PERIOD.fullmatch(self.period)
        parts = {name: int(number) for name, number in match.groupdict().items() if number} if match else {}
        if not any(parts.values()) or self.period.endswith("T"):
            raise ValueError(f"period {self.period!r} must be an ISO 8601 period such as PT15M, P1D or P1M")
        if any(number > 10_000_000 for number in parts.values()) or self._days > _LONGEST.days:
            raise ValueError(f"period {self.period!r} is too long")
        kinds = [self._months > 0, self._days > 0, self._time > timedelta(0)]
        if sum(kinds) > 1 and (kinds[0] or self.timeZone is not None):
            raise ValueError(
                f"period {self.period!r} mixes units of different lengths: use only years and months, only weeks and "
                "days, or only hours and smaller units"
            )
        return self

    @property
    def fixed_ms(self) -> tuple[int, int] | None:
        """Origin and width of the buckets in milliseconds if all are equally long, else None."""
        if self._months or (self._days and not _is_utc(self._zone)) or self._of_odd_hours:
            return None
        width = self._time + timedelta(days=self._days)
        return _milliseconds(_utc(self._origin, self._zone)), width // _MILLISECOND

    def bucket(self, time: datetime) -> tuple[datetime, datetime]:
        """The half-open interval of ``time`` (aware, UTC): (start, end)."""
        fixed = self.fixed_ms
        if fixed is not None:
            return _fixed_bucket(time, *fixed)
        if self._of_odd_hours:
            return self._hours(time)
        number = self._estimate(time)
        while self._edge(number) > time:
            number -= 1
        while self._edge(number + 1) <= time:
            number += 1
        return self._edge(number), self._edge(number + 1)

    @cached_property
    def _of_odd_hours(self) -> bool:
        """Whole hours of a zone whose clock was once moved by less than an hour, counted by that clock."""
        hours_alone = self._time and not self._time % timedelta(hours=1) and not self._days
        return bool(hours_alone) and self.origin is None and not _is_utc(self._zone) and _moved_by_parts(self._zone)

    def _hours(self, time: datetime) -> tuple[datetime, datetime]:
        """One hour by the clock; several by those that have passed since 1970, from that hour by either clock."""
        width = self._time // timedelta(hours=1)
        passed = int((time - _utc(self._origin, self._zone)) // timedelta(hours=1))
        if width == 1:
            offset = time.astimezone(self._zone).utcoffset() or timedelta(0)
            start = time - (time + offset - _EPOCH) % timedelta(hours=1)
            return start, start + self._time
        since = timedelta(hours=passed - passed % width)
        start = min(_utc(self._origin + since, self._zone), _utc(self._origin, self._zone) + since)
        return start, start + self._time

    def _estimate(self, time: datetime) -> int:
        """Which bucket it is, give or take one."""
        try:
            local = time.astimezone(self._zone)
        except OverflowError:
            local = time
        first = self._origin
        if self._months:
            return ((local.year - first.year) * 12 + local.month - first.month) // self._months
        return (local.date() - first.date()).days // self._days

    def _edge(self, number: int) -> datetime:
        """Where a bucket begins. A time that the zone skips is the end of what it skips; of two the first one."""
        try:
            local = self._origin + relativedelta(months=number * self._months) + timedelta(number * self._days)
            edge = _utc(local, self._zone)
        except (OverflowError, ValueError):
            return MIN_TIME if number <= 0 else MAX_TIME
        return min(edge, MAX_TIME)

    @cached_property
    def _parts(self) -> dict[str, int]:
        match = _PERIOD.fullmatch(self.period)
        return {name: int(number or 0) for name, number in match.groupdict().items()} if match else {}

    @property
    def _months(self) -> int:
        return self._parts["years"] * 12 + self._parts["months"]

    @property
    def _days(self) -> int:
        return self._parts["weeks"] * 7 + self._parts["days"]

    @property
    def _time(self) -> timedelta:
        parts = self._parts
        return timedelta(hours=parts["hours"], minutes=parts["minutes"], seconds=parts["seconds"])

    @cached_property
    def _zone(self) -> tzinfo:
        return zone_of(self.timeZone)

    @cached_property
    def _origin(self) -> datetime:
        """In the zone, without it."""
        if self.origin is not None:
            return self.origin.astimezone(self._zone).replace(tzinfo=None)
        return datetime(1970, 1, 5) if self.period == "P1W" else datetime(1970, 1, 1)


AnyGranularity = Granularity | PeriodGranularity | DurationGranularity
_OBJECTS: dict[Any, type[PeriodGranularity] | type[DurationGranularity]] = {
    "period": PeriodGranularity,
    "duration": DurationGranularity,
}


def granularity_of(value: Any) -> AnyGranularity:
    """A granularity's JSON: a name in any case, or an object with a type. Raises ``ValueError``."""
    if isinstance(value, Granularity | _Buckets):
        return value  # type: ignore[return-value]
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        kind = value["type"].lower()
        if kind in _OBJECTS:
            return _parse_granularity(_OBJECTS[kind], {**value, "type": kind})
        value = kind if set(value) == {"type"} else value
    if not isinstance(value, str) or value.upper() not in Granularity.__members__:
        names = ", ".join(Granularity)
        raise ValueError(f"must be one of {names}, or an object of type period or duration")
    return Granularity(value.upper())


def _parse_granularity(
    model: type[PeriodGranularity] | type[DurationGranularity], value: dict[str, Any]
) -> AnyGranularity:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        faults = (".".join(map(str, e["loc"])) + ": " * bool(e["loc"]) + error_text(e) for e in error.errors())
        raise ValueError("; ".join(faults)) from None


def zone_of(name: str | None) -> tzinfo:
    """A time zone by its name or offset; UTC without one. Raises ``ValueError``, ``OSError``, ``LookupError``."""
    offset = _OFFSET.fullmatch(name or "")
    if offset:
        shift = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-shift if offset[1] == "-" else shift)
    return UTC if name in (None, "UTC", "Etc/UTC", "Z", "GMT") else ZoneInfo(str(name))


def _moved_by_parts(zone: tzinfo) -> bool:
    moments = (datetime(year, month, 1, tzinfo=UTC) for year in range(1900, 2038) for month in (1, 7))
    first = _EPOCH.astimezone(zone).utcoffset() or timedelta(0)
    return any(((m.astimezone(zone).utcoffset() or timedelta(0)) - first) % timedelta(hours=1) for m in moments)


def _is_utc(zone: tzinfo) -> bool:
    return zone is UTC


def _utc(local: datetime, zone: tzinfo) -> datetime:
    return local.replace(tzinfo=zone, fold=0).astimezone(UTC)


def _milliseconds(time: datetime) -> int:
    return (time - _EPOCH) // _MILLISECOND


def _fixed_bucket(time: datetime, origin_ms: int, width_ms: int) -> tuple[datetime, datetime]:
    start = origin_ms + (_milliseconds(time) - origin_ms) // width_ms * width_ms
    first, last = _milliseconds(MIN_TIME), _milliseconds(MAX_TIME)
    return tuple(_EPOCH + min(max(ms, first), last) * _MILLISECOND for ms in (start, start + width_ms))  # type: ignore[return-value]
