"""The control plane's errors, split by what a caller can do. The API maps each to a problem+json status.

HeadgateError
├── InvalidInput   the request is wrong: mend it                       400
├── NotAllowed     known, but this role may not                        403
├── NotFound       does not exist, or is another team's                404
├── Conflict       the state does not allow it now                     409
├── ChangedMeanwhile  somebody has changed it: read it again           412
└── Unavailable    something outside is down: try again                503
"""

from __future__ import annotations

from dataclasses import dataclass

from ingestion.specs.errors import SpecError


@dataclass(frozen=True)
class FieldError:
    """One fault of the input."""

    pointer: str  # an RFC 6901 JSON pointer into the request's body
    message: str
    path: str = ""


class HeadgateError(Exception):
    """Base of the control plane's errors; its text is for the user."""

    status = 500
    title = "Something went wrong"

    def __init__(self, detail: str, errors: list[FieldError] | None = None) -> None:
        self.detail = detail
        self.errors = errors or []
        super().__init__(detail)


class InvalidInput(HeadgateError):
    """The request is wrong; ``errors`` says where."""

    status = 400
    title = "The request is not valid"


class NotAllowed(HeadgateError):
    """The caller may see it but not do this."""

    status = 403
    title = "Not allowed"


class NotFound(HeadgateError):
    """It does not exist for this caller."""

    status = 404
    title = "Not found"


class Conflict(HeadgateError):
    """The present state does not allow it."""

    status = 409
    title = "Conflict"


class ChangedMeanwhile(HeadgateError):
    """Somebody else has changed it since the caller read it."""

    status = 412
    title = "Changed in the meantime"


class Unavailable(HeadgateError):
    """Something this depends on does not answer; trying again later may work."""

    status = 503
    title = "Unavailable"


def invalid_spec(error: SpecError) -> InvalidInput:
    """Every fault of the spec, in one answer."""
    faults = [FieldError(i.pointer, i.message, i.path) for i in error.issues]
    many = "1 error" if len(faults) == 1 else f"{len(faults)} errors"
    return InvalidInput(f"The spec has {many}.", faults)
