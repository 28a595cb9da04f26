"""What is new in the end of a log that grows."""

from __future__ import annotations

_PROBE = 256


def new_text(shown: str, tail: str) -> str:
    """``tail`` without what was ``shown`` before. Both are the end of one log: their beginnings may be cut off."""
    for start in _starts(shown, tail):
        if tail.startswith(shown[start:]):
            return tail[len(shown) - start :]
    return f"\n[lines are missing here]\n{tail}" if shown else tail


def _starts(shown: str, tail: str) -> list[int]:
    """Where in ``shown`` the tail may begin, the earliest first: a short overlap is only looked for at the end."""
    head, starts = tail[:_PROBE], []
    at = shown.find(head) if head else -1
    while at >= 0:
        starts.append(at)
        at = shown.find(head, at + 1)
    return [0, *starts, *range(max(0, len(shown) - _PROBE), len(shown))]
