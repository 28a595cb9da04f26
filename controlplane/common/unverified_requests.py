"""Requests that did not show that they come from the user in whose name they were sent."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

_MARK = "headgate_unproven"


def mark_unproven(request: HttpRequest) -> None:
    """Call where a request is refused for a stale form or a wrong password: no role of the user plays a part."""
    marked: Any = request
    setattr(marked, _MARK, True)


def is_unproven(request: HttpRequest) -> bool:
    """Whether it was marked so."""
    return getattr(request, _MARK, False)
