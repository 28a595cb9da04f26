"""Why a request failed, split by what its caller can do. No message holds a token.

ClientError
├── Unreachable         nobody answers: check the address, try again
├── TryLater            429, 503: try again after ``retry_after_s``
├── NotLoggedIn         401: log in, or use another token
├── NotAllowed          403: ask for a greater role
├── NotFound            404: check the name
├── InvalidRequest      400, 405, 413, 415: correct the request; ``faults`` says where
├── Conflict            409: the current state does not allow it
├── ChangedMeanwhile    412: read it again, then decide again
└── ServerFailed        anything else: see the site's log
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headgate.errors import HeadgateError


class ClientError(HeadgateError):
    """The site's answer in its own words. ``status``: of HTTP; 0 without an answer."""

    def __init__(self, message: str, status: int = 0, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.problem = dict(problem or {})  # RFC 9457

    @property
    def faults(self) -> list[str]:
        """Each fault of the request with its place."""
        errors = [e for e in self.problem.get("errors") or () if isinstance(e, dict)]
        return [f"{e.get('path') or e.get('pointer') or 'request'}: {e.get('detail', '')}" for e in errors]


class Unreachable(ClientError):
    """There was no answer. The site may have done what the request asked for."""


class TryLater(ClientError):
    """The site can't answer now."""

    retry_after_s: float | None = None


class NotLoggedIn(ClientError):
    """There is no token, or it is not valid."""


class NotAllowed(ClientError):
    """The role does not allow it."""


class NotFound(ClientError):
    """It does not exist, or it is another team's."""


class InvalidRequest(ClientError):
    """The request is wrong."""


class Conflict(ClientError):
    """The current state does not allow it."""


class ChangedMeanwhile(ClientError):
    """It is no longer the version that the request names."""


class ServerFailed(ClientError):
    """The site failed, or what answers is not Headgate."""


_BY_STATUS: dict[int, type[ClientError]] = {
    400: InvalidRequest,
    401: NotLoggedIn,
    403: NotAllowed,
    404: NotFound,
    405: InvalidRequest,
    409: Conflict,
    412: ChangedMeanwhile,
    413: InvalidRequest,
    415: InvalidRequest,
    429: TryLater,
    503: TryLater,
}


def error_of(status: int, content: bytes, headers: Mapping[str, str]) -> ClientError:
    """The error for an answer that is not a success."""
    problem = _problem_in(content)
    message = str(problem.get("detail") or f"The site answered {status}.")
    error = _BY_STATUS.get(status, ServerFailed)(message, status, problem)
    if isinstance(error, TryLater):
        error.retry_after_s = seconds_in(headers.get("Retry-After", ""))
    return error


def seconds_in(header: str) -> float | None:
    """``Retry-After`` in seconds; None for a date or anything else."""
    return float(header) if header.isdecimal() else None


def _problem_in(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
