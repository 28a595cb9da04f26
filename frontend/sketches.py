"""Sketches as people read them: what they estimate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def sketch_text(sketch: Mapping[str, Any]) -> str:
    """Of what rows tell of a sketch; quantiles that are beyond a double are left out."""
    if "estimate" in sketch:
        return f"≈ {_number(sketch['estimate'])} distinct"
    values = [
        f"{name} {_number(sketch[name])}" for name in ("n", "min", "median", "max") if sketch.get(name) is not None
    ]
    return ", ".join(values)


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:,.10g}"
