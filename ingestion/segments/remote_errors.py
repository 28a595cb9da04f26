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
_PERMANENT_ERRORS = (pa.ArrowException, ImportError, NotImplementedError, TypeError, ValueError)
_ERRNO_BY_TYPE: dict[type[OSError], int] = {
    FileNotFoundError: errno.ENOENT,
    FileExistsError: errno.EEXIST,
}  # fsspec has none
NO_BUCKET = "there is no such bucket; create it, or correct HEADGATE_DEEP_STORAGE"
_WRONG_CREDENTIALS = (
    "the credentials are wrong or have expired; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN"
)
_ACCESS_DENIED = (
    "access is denied; the credentials must allow to list the bucket, and to read, write and delete objects in it"
)
_WRONG_REGION = "the bucket is in another region; correct the region or the endpoint"
# By the names that the AWS SDK gives them.
_AWS_REFUSALS = {
    "ACCESS_DENIED": _ACCESS_DENIED,
    "NO_SUCH_BUCKET": NO_BUCKET,
    "EXPIRED_TOKEN": _WRONG_CREDENTIALS,
    "INCOMPLETE_SIGNATURE": _WRONG_CREDENTIALS,
    "INVALID_ACCESS_KEY_ID": _WRONG_CREDENTIALS,
    "INVALID_CLIENT_TOKEN_ID": _WRONG_CREDENTIALS,
    "INVALID_SIGNATURE": _WRONG_CREDENTIALS,
    "MISSING_AUTHENTICATION_TOKEN": _WRONG_CREDENTIALS,
    "SIGNATURE_DOES_NOT_MATCH": _WRONG_CREDENTIALS,
    "UNRECOGNIZED_CLIENT": _WRONG_CREDENTIALS,
}
_STATUS_REFUSALS = {
    301: _WRONG_REGION,
    307: _WRONG_REGION,
    400: _WRONG_REGION,
    401: _WRONG_CREDENTIALS,
    403: _ACCESS_DENIED,
    404: NO_BUCKET,
}
# Google's and Azure's libraries say it in their texts.
_TEXT_REFUSALS = (
    (re.compile(r"Status\(PERMISSION_DENIED|AuthorizationFailure|AuthorizationPermissionMismatch"), _ACCESS_DENIED),
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


def to_storage_error(action: str, error: Exception) -> DeepStorageError:
    """The error of something that can't be done, as ``DeepStorageError``."""
    if isinstance(error, OSError) and (number := error.errno or _ERRNO_BY_TYPE.get(type(error))) is not None:
        return storage_error(action, OSError(number, os.strerror(number)))
    detail = _without_secrets(" ".join(str(error).split()))[:_DETAIL_LENGTH]
    hint = _hint(detail)
    permanent = bool(hint) or (isinstance(error, _PERMANENT_ERRORS) and not isinstance(error, OSError))
    return DeepStorageError(f"can't {action}: {hint} ({detail})" if hint else f"can't {action}: {detail}", permanent)


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
