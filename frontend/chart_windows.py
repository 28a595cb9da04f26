"""How far back charts over time go."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Window:
    """From ``length`` ago until now."""

    name: str
    label: str
    length: timedelta


WINDOWS = (
    Window("1h", "The last hour", timedelta(hours=1)),
    Window("6h", "The last 6 hours", timedelta(hours=6)),
    Window("1d", "The last day", timedelta(days=1)),
    Window("7d", "The last 7 days", timedelta(days=7)),
    Window("30d", "The last 30 days", timedelta(days=30)),
)


def window_named(name: str | None) -> Window:
    """The first for a name that is none."""
    return next((w for w in WINDOWS if w.name == name), WINDOWS[0])
