"""How the wizard's pages write shares, spans of time, and what a guess's button sends."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Protocol

from django import template
from pydantic import BaseModel

from controlplane.loading.field_profiles import FieldProfile
from frontend.templatetags.headgate import duration, from_ms, iso
from ingestion.specs.messages.sampling import Arrived

register = template.Library()
MAX_SHOWN = 200  # fields that a table of them shows
_TYPES = {"long": "long", "double": "double", "boolean": "auto", "json": "json"}


@register.filter
def guess(value: BaseModel) -> str:
    """What its button sends."""
    return value.model_dump_json(include={"input_format", "column", "format", "nodes"})


@register.filter
def topic_guess(name: str) -> str:
    """What the button of a topic sends."""
    return json_module.dumps({"topic": name})


class WizardStep(Protocol):
    """A step of the wizard."""

    @property
    def label(self) -> str: ...

    @property
    def places(self) -> tuple[str, ...]: ...


@register.filter
def step_label(steps: Iterable[WizardStep], pointer: str) -> str:
    """The step that has what a fault points to, by its narrowest place; empty where the JSON alone has it."""
    matches = [(len(p), s.label) for s in steps for p in s.places if f"{pointer}/".startswith(f"{p}/")]
    return max(matches)[1] if matches else ""


@register.filter
def json(value: Any) -> str:
    """A value on one line."""
    return json_module.dumps(value, ensure_ascii=False)


@register.filter
def field_names(profiles: list[FieldProfile] | None) -> list[str]:
    """What an expression may name."""
    return [profile.name for profile in profiles or ()]


@register.filter
def most_shown(profiles: list[FieldProfile] | None) -> list[FieldProfile]:
    """The fields that a table of them has room for."""
    return (profiles or [])[:MAX_SHOWN]


@register.filter
def not_among(
    named: dict[str, dict[str, Any]], profiles: list[FieldProfile] | None
) -> list[tuple[str, dict[str, Any]]]:
    """Columns that are named and that no field which is shown stands for: they stay unless they are unticked."""
    shown = {profile.name for profile in most_shown(profiles)}
    return [(name, column) for name, column in named.items() if name not in shown]


@register.filter
def percent(share: float) -> str:
    """Never 100 % where one is missing, never 0 % where there is one."""
    shown = round(share * 100)
    if 0 < share < 1:
        shown = min(99, max(1, shown))
    return f"{shown} %"


@register.filter
def span(milliseconds: int) -> str:
    """A length of time."""
    return "less than a second" if milliseconds < 1000 else duration(timedelta(seconds=milliseconds // 1000))


@register.filter
def window(arrived: Arrived) -> str:
    """Of which records were counted."""
    return {60: "minute", 3600: "hour", 86_400: "day"}[arrived.window_s]


@register.filter
def rounded(rate: float) -> str:
    """Two digits that count: more would promise too much."""
    return f"{float(f'{rate:.2g}'):,.10g}"


@register.filter
def of_change(kind: str, count: int) -> str:
    """What a change of a spec does to a number of records."""
    verbs = {"gained": "gained", "dropped": "dropped", "fails": "fails" if count == 1 else "fail"}
    return verbs.get(kind, "changes" if count == 1 else "change")


@register.filter
def cell_value(value: Any, column: str) -> str:
    """A value of a row; its time, which is a number of milliseconds, as a time."""
    if column == "__time" and isinstance(value, int):
        return iso(from_ms(value))
    return json(value)


@register.filter
def chosen_type(profile: FieldProfile, named: dict[str, dict[str, Any]]) -> str:
    """The type of a column of its own: the one that it has, else the one that its values suggest."""
    if profile.name in named:
        return str(named[profile.name].get("type", "string"))
    return _TYPES.get(profile.type, "string")
