"""Versions as ETags: an answer says which one it holds, and a change names the one that its caller has read."""

from __future__ import annotations

import re

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from controlplane.common.errors import InvalidInput

IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The `ETag` of the version that is meant; 412 when it is not the present one.",
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="`*`: create it; 412 when it exists."
)
_ETAG = re.compile(r'(?:W/)?"(\d{1,9})"')


def etag(version: int) -> dict[str, str]:
    """The header of an answer that holds this version."""
    return {"ETag": f'"{version}"'}


def version_of(request: Request) -> int | None:
    """The version that ``If-Match`` names; None for any. Raises ``InvalidInput``."""
    header = request.headers.get("If-Match", "").strip()
    if header in ("", "*"):
        return None
    match = _ETAG.fullmatch(header)
    if match is None:
        raise InvalidInput('If-Match must be one ETag, such as "3".')
    return int(match[1])


def version_or_none_yet(request: Request) -> int | None:
    """The version that ``If-Match`` names; 0 for ``If-None-Match: *``; None for any. Raises ``InvalidInput``."""
    header = request.headers.get("If-None-Match", "").strip()
    if not header:
        return version_of(request)
    if header != "*" or "If-Match" in request.headers:
        raise InvalidInput("If-None-Match must be *, without If-Match.")
    return 0
