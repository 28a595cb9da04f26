"""The OpenAPI document and Swagger's page, all of it from this site."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.views import SpectacularJSONAPIView

# Swagger UI sets styles from its script and draws icons from data: addresses; nothing inline runs.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class SchemaView(SpectacularJSONAPIView):
    """OpenAPI 3.1 as JSON. It describes the interface and no data, so anybody may read it."""

    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []
    throttle_classes: list[Any] = []


@require_safe
def swagger(request: HttpRequest) -> HttpResponse:
    """Swagger UI over ``SchemaView``."""
    page = render(request, "api/docs.html")
    page["Content-Security-Policy"] = POLICY
    return page
