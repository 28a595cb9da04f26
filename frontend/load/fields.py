"""Fields of the wizard's forms: texts of lines that stand for parts of a spec."""

from __future__ import annotations

import json
import re
from typing import Any

from django import forms

from controlplane.common.strict_json import strict_json

_TRANSFORM = re.compile(r"\s*([^=\s][^=]*?)\s*=\s*(\S.*?)\s*")
_METRIC = re.compile(r"\s*(\S+)\s+(\S+)(?:\s+(\S+))?\s*")
Lines = dict[str, Any]


def text(placeholder: str = "", **attributes: str) -> forms.TextInput:
    return forms.TextInput(attrs={"class": "form-control", "placeholder": placeholder, **attributes})


def area(rows: int, placeholder: str = "", **attributes: str) -> forms.Textarea:
    style = {"class": "form-control font-monospace", "spellcheck": "false"}
    return forms.Textarea(attrs={**style, "rows": rows, "placeholder": placeholder, **attributes})


def select() -> forms.Select:
    return forms.Select(attrs={"class": "form-select"})


def check() -> forms.CheckboxInput:
    return forms.CheckboxInput(attrs={"class": "form-check-input"})


def number() -> forms.NumberInput:
    return forms.NumberInput(attrs={"class": "form-control"})


def json_object(written: str) -> dict[str, Any]:
    """The object in a text, empty for none. Raises Django's ``ValidationError``."""
    if not written.strip():
        return {}
    try:
        value = strict_json(written)
    except ValueError as error:
        raise forms.ValidationError(f"Not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise forms.ValidationError('Must be a JSON object, such as {"security.protocol": "SASL_SSL"}.')
    return value


def json_text(value: dict[str, Any]) -> str:
    """What ``json_object`` reads."""
    return json.dumps(value, indent=2, ensure_ascii=False) if value else ""


def transforms_of(written: str, language: str) -> list[Lines]:
    """A transform of each line ``name = expression``. Raises ``ValidationError``."""
    transforms = []
    for number_, line in enumerate(written.splitlines(), 1):
        if not line.strip():
            continue
        parts = _TRANSFORM.fullmatch(line)
        if parts is None:
            raise forms.ValidationError(f"Line {number_} must be name = expression, such as total = price * amount.")
        transforms.append({"type": "expression", "name": parts[1], "expression": parts[2], "language": language})
    return transforms


def metrics_of(written: str) -> list[Lines]:
    """A metric of each line ``type name field``; ``count`` has no field. Raises ``ValidationError``."""
    metrics = []
    for number_, line in enumerate(written.splitlines(), 1):
        if not line.strip():
            continue
        parts = _METRIC.fullmatch(line)
        if parts is None or (parts[3] is None) != (parts[1] == "count"):
            raise forms.ValidationError(
                f"Line {number_} must be type, name and field, such as longSum bytes size or count rows."
            )
        metric = {"type": parts[1], "name": parts[2]}
        metrics.append(metric if parts[3] is None else {**metric, "fieldName": parts[3]})
    return metrics


def metric_lines(metrics: list[Any]) -> str | None:
    """What ``metrics_of`` reads; None where a metric has more than that."""
    lines = []
    for metric in metrics:
        if not isinstance(metric, dict) or set(metric) - {"type", "name", "fieldName"}:
            return None
        lines.append(" ".join(str(metric[k]) for k in ("type", "name", "fieldName") if k in metric))
    return "\n".join(lines)
