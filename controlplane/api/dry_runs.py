"""``dryRun=true``: a change is made, answered and taken back, so that a program can say what it would change."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import transaction
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.common.errors import FieldError, InvalidInput

DRY_RUN = OpenApiParameter(
    "dryRun", bool, description="`true`: answers as if it were done, and changes nothing. Fails as the change would."
)


def with_dry_run(handler: Callable[..., Response]) -> Callable[..., Response]:
    """For handlers whose effects are all in the metadata store, or begin after the commit."""

    @wraps(handler)
    def handle(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        asked = request.query_params.get("dryRun", "false").lower()
        if asked not in ("true", "false"):  # one that is misspelled must not make the change
            raise InvalidInput("The query parameters have errors.", [FieldError("", "is true or false", "dryRun")])
        if asked == "false":
            return handler(view, request, *args, **kwargs)
        with transaction.atomic():
            response = handler(view, request, *args, **kwargs)
            transaction.set_rollback(True)
        return response

    return handle
