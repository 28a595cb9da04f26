"""``Idempotency-Key``: a request that is sent again, because its answer was lost, is carried out only once."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import transaction
from django.utils.crypto import salted_hmac
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import TEAM_HEADER
from controlplane.common.errors import InvalidInput
from controlplane.common.text import storable
from controlplane.teams.answered_requests import keep_answer, take_key

HEADER, REPLAYED = "Idempotency-Key", "Idempotency-Replayed"
LONGEST_KEY = 200
IDEMPOTENCY_KEY = OpenApiParameter(
    HEADER,
    str,
    OpenApiParameter.HEADER,
    description="Any text of yours. The same request with the same key is carried out once, and gets the same answer "
    "for 24 hours.",
)


def once_per_key(handler: Callable[..., Response]) -> Callable[..., Response]:
    """For handlers whose effects are all in the metadata store, or begin after the commit. Only successes are kept."""

    @wraps(handler)
    def handle(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        key = request.headers.get(HEADER, "")
        if not key:
            return handler(view, request, *args, **kwargs)
        if len(key) > LONGEST_KEY or not storable(key):
            raise InvalidInput(f"{HEADER} must be text of at most {LONGEST_KEY} characters.")
        with transaction.atomic():
            row, is_new = take_key(view.actor, key, _digest(request))
            if not is_new:
                return Response(row.body, row.status, headers={**row.headers, REPLAYED: "true"})
            response = handler(view, request, *args, **kwargs)
            body = json.loads(_rendered(view, response))
            keep_answer(row, response.status_code, body, {name: response[name] for name in response.headers})
        return response

    return handle


def _rendered(view: Any, response: Response) -> bytes:
    """The JSON that is sent is the JSON that is kept."""
    rendered: bytes = view.renderer_classes[0]().render(response.data)
    return rendered


def _digest(request: Request) -> str:
    """Of what the request asks for; its conditions are no part of it."""
    parts = [request.method, request.get_full_path(), request.headers.get(TEAM_HEADER, ""), request.data]
    text = json.dumps(parts, sort_keys=True)  # it may hold a password: the digest needs the site's key
    return salted_hmac("controlplane.api.idempotency", text, algorithm="sha256").hexdigest()
