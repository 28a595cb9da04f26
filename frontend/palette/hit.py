"""One line of the palette."""

from __future__ import annotations

from dataclasses import dataclass

OF_A_KIND = 8  # things of one kind that are offered for a text


@dataclass(frozen=True)
class Hit:
    """A name, what it is, and where it leads."""

    name: str
    hint: str
    url: str
    icon: str
