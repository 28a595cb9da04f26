"""Load and drop rules in Druid's form: which segments stay in use, by their interval and the time. Pure.

The first rule that speaks of an interval decides. Where none does, the segment stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator

from controlplane.common.errors import FieldError, InvalidInput
from ingestion.specs.schema.intervals import interval_ms

MAX_RULES = 100
_MAX_FAULTS = 20
_EMPTY_FAULT = "is empty, so the rule matches nothing"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS = (
    "loadForever",
    "loadByPeriod",
    "loadByInterval",
    "dropForever",
    "dropByPeriod",
    "dropBeforeByPeriod",
    "dropByInterval",
)


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _ignore_value(cls, value: Any) -> Any:
        """Null is the default where a field has one, which is how Druid reads it."""
        if not isinstance(value, dict):
            return value
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {name: v for name, v in value.items() if v is not None or name not in optional}

    @property
    def loads(self) -> bool:
        """Whether what it speaks of stays in use."""
        kind: str = getattr(self, "type")  # noqa: B009  # each kind declares its own
        return kind.startswith("load")

    def applies(self, start: datetime, end: datetime, now: datetime) -> bool:
        """Whether it speaks of the interval ``[start, end)``."""
        raise NotImplementedError


class _Load(_Rule):
    # Kept and shown, as Druid's clients send them; there is one place where segments are.
    tieredReplicants: dict[str, int] = Field(default_factory=lambda: {"_default_tier": 2}, max_length=100)
    useDefaultTierForNull: bool = True

    @model_validator(mode="after")
    def _check_tier(self) -> Self:
        if not self.useDefaultTierForNull and "tieredReplicants" not in self.model_fields_set:
            object.__setattr__(self, "tieredReplicants", {})  # nobody has it yet: it is frozen for them
        return self


class _ByPeriod(_Rule):
    period: str = Field(max_length=60)

    @field_validator("period")
    @classmethod
    def _check_period(cls, value: str) -> str:
        try:
            interval_ms(f"{value}/2025-06-01")
        except ValueError:
            raise ValueError("must be an ISO 8601 period such as P1M or P1DT12H") from None
        return value

    def since(self, now: datetime) -> datetime:
        """The time that long ago."""
        return _EPOCH + timedelta(milliseconds=interval_ms(f"{self.period}/{now.isoformat()}")[0])


class _ByInterval(_Rule):
    interval: str = Field(max_length=100)

    @field_validator("interval")
    @classmethod
    def _check_interval(cls, value: str) -> str:
        try:
            start, end = (_EPOCH + timedelta(milliseconds=ms) for ms in interval_ms(value))
        except (ValueError, OverflowError):
            raise ValueError("must be like 2025-06-01/2025-07-01 or 2025-06-01/P1M") from None
        return f"{_iso(start)}/{_iso(end)}"

    @property
    def is_empty(self) -> bool:
        """It is empty, so the rule matches nothing."""
        start, end = self.bounds()
        return start == end

    def bounds(self) -> tuple[datetime, datetime]:
        """Its start and end."""
        start, end = (_EPOCH + timedelta(milliseconds=ms) for ms in interval_ms(self.interval))
        return start, end


class LoadForever(_Load):
    """Everything stays."""

    type: Literal["loadForever"]

    def applies(self, start: datetime, end: datetime, now: datetime) -> bool:
        return True


class LoadByPeriod(_Load, _ByPeriod):
    """What reaches into the last period stays, and without more said the future too."""

    type: Literal["loadByPeriod"]
    includeFuture: bool = True

    def applies(self, start: datetime, end: datetime, now: datetime) -> bool:
        return end > self.since(now) and (self.includeFuture or start < now)


class LoadByInterval(_Load, _ByInterval):
    """What touches an interval stays."""

    type: Literal["loadByInterval"]

    def applies(self, start: datetime, end: datetime, now: datetime) -> bool:
        low, high = self.bounds()
        return start < high and end > low


class DropForever(_Rule):
    """Everything goes."""

    type: Literal["dropForever"]

    def applies(self, start: datetime, end: datetime, now: datetime) -> bool:
        return True


class DropByPeriod(_ByPeriod):
    """What lies wholly within the last period goes, and without more said the future too."""

    type: Literal["dropByPeriod"]
    includeFuture: bool = True

    def applies(self, start: datetime, end: datetime, now: datetime) -> bool:
        return start >= self.since(now) and (self.includeFuture or end <= now)


class DropBeforeByPeriod(_ByPeriod):
    """What had ended that long ago goes."""

    type: Literal["dropBeforeByPeriod"]

    def applies(self, start: datetime, end: datetime, now: datetime) -> bool:
        return end <= self.since(now)


class DropByInterval(_ByInterval):
    """What lies wholly within an interval goes."""

    type: Literal["dropByInterval"]

    def applies(self, start: datetime, end: datetime, now: datetime) -> bool:
        low, high = self.bounds()
        return start >= low and end <= high


Rule = Annotated[
    LoadForever | LoadByPeriod | LoadByInterval | DropForever | DropByPeriod | DropBeforeByPeriod | DropByInterval,
    Field(discriminator="type"),
]
_RULES: TypeAdapter[list[Rule]] = TypeAdapter(list[Rule])


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_rules(document: Any, under: str = "") -> list[Rule]:
    """Raises ``InvalidInput`` that names each field at fault. ``under``: the field that they stand in, if any."""
    if not isinstance(document, list) or len(document) > MAX_RULES:
        raise InvalidInput(f"Rules must be a list of at most {MAX_RULES}. The first one that matches applies.")
    try:
        rules = _RULES.validate_python(document)
    except ValidationError as error:
        raise InvalidInput("The rules have faults.", [_fault(e, under) for e in error.errors()[:_MAX_FAULTS]]) from None
    faults = [
        _field(under, (n, *names), message)
        for n, rule in enumerate(rules)
        for *names, message in _semantic_faults(rule)
    ]
    if faults:
        raise InvalidInput("The rules have faults.", faults[:_MAX_FAULTS])
    return rules


def _semantic_faults(rule: Rule) -> list[tuple[str, ...]]:
    """What earlier versions took: the field, from outside in, and what is wrong with it."""
    if isinstance(rule, _ByInterval) and rule.is_empty:
        return [("interval", _EMPTY_FAULT)]
    tiers = rule.tieredReplicants if isinstance(rule, _Load) else {}
    return [("tieredReplicants", tier, "must not be negative") for tier, number in tiers.items() if number < 0]


def stored_rules(document: Any) -> list[Rule]:
    """What ``read_rules`` has taken before, today's version or an older one."""
    return _RULES.validate_python(document)


def _fault(error: Any, under: str) -> FieldError:
    names = [str(part) for part in error["loc"] if part not in _KINDS]
    kind = str(error["type"])
    message = {
        "union_tag_invalid": f"type must be one of {', '.join(_KINDS)}",
        "union_tag_not_found": f"type must be one of {', '.join(_KINDS)}",
        "extra_forbidden": "is not a field of this rule",
        "missing": "is missing",
        "value_error": str(error["msg"]).removeprefix("Value error, "),
    }.get(kind, "has the wrong type")
    return _field(under, names, message)


def _field(under: str, names: Sequence[Any], message: str) -> FieldError:
    pointer = "".join(f"/{name}" for name in (under, *names) if name != "")
    path = f"[{names[0]}]" + "".join(f".{name}" for name in names[1:]) if names else ""
    return FieldError(pointer, message, under + path)


def rules_json(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Druid's form, defaults included."""
    return [rule.model_dump(mode="json") for rule in rules]


def dropping_rule(rules: Sequence[Rule], start: datetime, end: datetime, now: datetime) -> Rule | None:
    """The rule by which segments of that interval go; None when they stay."""
    first = next((rule for rule in rules if rule.applies(start, end, now)), None)
    return None if first is None or first.loads else first


def describe_rule(rule: Rule) -> str:
    """Short, for people and for whoever looks for a removed row."""
    scope = getattr(rule, "period", "") or getattr(rule, "interval", "")
    return f"{rule.type} {scope}".strip()
