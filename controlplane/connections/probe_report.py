"""What a test of a connection comes to: its steps, and of the first that fails the cause, in a sentence."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal

Cause = Literal["", "properties", "address", "dns", "tcp", "tls", "protocol", "login", "authorisation", "other"]
CAUSES: dict[Cause, str] = {
    "properties": "Properties",
    "address": "Address refused",
    "dns": "DNS",
    "tcp": "TCP",
    "tls": "TLS",
    "protocol": "Not Kafka",
    "login": "Login",
    "authorisation": "Authorisation",
    "other": "Kafka",
}


class Failed(Exception):
    """A step fails. ``message``: what is wrong; ``advice``: what to do next. Neither holds a secret."""

    def __init__(self, cause: Cause, message: str, advice: str) -> None:
        self.cause: Cause = cause
        self.message = message
        self.advice = advice
        super().__init__(message)


@dataclass(frozen=True)
class Step:
    """One thing that was tried, in the order in which it was."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class ConnectionReport:
    """What came of it. ``cause``, ``message`` and ``advice`` are empty when all is well, but for a remark."""

    ok: bool
    cause: Cause
    message: str
    advice: str
    steps: list[Step] = field(default_factory=list)

    @property
    def label(self) -> str:
        return CAUSES.get(self.cause, "")


class Clock:
    """How long is left of a test."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    @property
    def seconds_left(self) -> float:
        return max(0.05, self._until - time.monotonic())

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._until

    def cap(self, seconds: float) -> float:
        return min(seconds, self.seconds_left)
