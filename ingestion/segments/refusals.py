"""What the errors of remote storage mean: whether to try again, and what a person can do. Secrets never show."""

from __future__ import annotations

import errno
import os
import re

import pyarrow as pa

from ingestion.segments.errors import DeepStorageError, storage_error

_AWS = re.compile(r"AWS Error (?P<code>\w+)(?: \(HTTP status (?P<status>\d+)\))? during (?P<operation>\w+)")
_DETAIL_LENGTH = 500
# Of the location, or of what reaches it.
_FAULTS = (pa.ArrowException, ImportError, NotImplementedError, TypeError, ValueError)
_NUMBERS: dict[type[OSError], int] = {FileNotFoundError: errno.ENOENT, FileExistsError: errno.EEXIST}  # fsspec has none
NO_BUCKET = "there is no such bucket; make it, or correct HEADGATE_DEEP_STORAGE"
_KEYS = "the credentials are wrong or have ended; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN"
_RIGHTS = "access is denied; the credentials must allow to list the bucket, and to read, write and delete objects in it"
_PLACE = "the bucket is elsewhere; correct the region or the endpoint"
# By the names that the AWS SDK gives them.
_AWS_REFUSALS = {
    "ACCESS_DENIED": _RIGHTS,
    "NO_SUCH_BUCKET": NO_BUCKET,
    "EXPIRED_TOKEN": _KEYS,
    "INCOMPLETE_SIGNATURE": _KEYS,
    "INVALID_ACCESS_KEY_ID": _KEYS,
    "INVALID_CLIENT_TOKEN_ID": _KEYS,
    "INVALID_SIGNATURE": _KEYS,
    "MISSING_AUTHENTICATION_TOKEN": _KEYS,
    "SIGNATURE_DOES_NOT_MATCH": _KEYS,
    "UNRECOGNIZED_CLIENT": _KEYS,
}
_STATUS_REFUSALS = {301: _PLACE, 307: _PLACE, 400: _PLACE, 401: _KEYS, 403: _RIGHTS, 404: NO_BUCKET}
# Google's and Azure's libraries say it in their texts.
_TEXT_REFUSALS = (
    (re.compile(r"Status\(PERMISSION_DENIED|AuthorizationFailure|AuthorizationPermissionMismatch"), _RIGHTS),
    (
        re.compile(r"Status\(UNAUTHENTICATED|AuthenticationFailed|InvalidAuthenticationInfo"),
        "the credentials are wrong",
    ),
    (re.compile(r"Status\(NOT_FOUND|ContainerNotFound|ResourceNotFound"), NO_BUCKET),
    (re.compile(r"Unable to load lib"), "its library is not installed"),
)
_SECRETS = re.compile(
    r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN)|(AZURE|FSSPEC)_.*(SECRET|PASSWORD|KEY|TOKEN)"
)


def refusal(what: str, error: Exception) -> DeepStorageError:
    """The error of something that can't be done, as ``DeepStorageError``."""
    if isinstance(error, OSError) and (number := error.errno or _NUMBERS.get(type(error))) is not None:
        return storage_error(what, OSError(number, os.strerror(number)))
    detail = _without_secrets(" ".join(str(error).split()))[:_DETAIL_LENGTH]
    hint = _hint(detail)
    permanent = bool(hint) or (isinstance(error, _FAULTS) and not isinstance(error, OSError))
    return DeepStorageError(f"can't {what}: {hint} ({detail})" if hint else f"can't {what}: {detail}", permanent)


def _hint(detail: str) -> str:
    """What to do about it; nothing where it may pass by itself."""
    match = _AWS.search(detail)
    if match is not None:
        return _AWS_REFUSALS.get(match["code"]) or _STATUS_REFUSALS.get(int(match["status"] or 0), "")
    return next((hint for pattern, hint in _TEXT_REFUSALS if pattern.search(detail)), "")


def _without_secrets(text: str) -> str:
    """Without the values of the credentials in the environment, should a server repeat them."""
    for name, value in os.environ.items():
        if len(value) >= 8 and _SECRETS.fullmatch(name):
            text = text.replace(value, f"<{name}>")
    return text
