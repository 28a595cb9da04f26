"""Sketches as people read them: what they estimate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def sketch_text(told: Mapping[str, Any]) -> str:
    """Of what rows tell of a sketch; quantiles that are beyond a double are left out."""
    if "estimate" in told:
        return f"≈ {_number(told['estimate'])} distinct"
    values = [f"{name} {_number(told[name])}" for name in ("n", "min", "median", "max") if told.get(name) is not None]
    return ", ".join(values)


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:,.10g}"
