"""The OpenAPI document and Swagger UI, both served by this site."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularJSONAPIView

# Swagger UI sets styles from its script and draws icons from data: addresses; nothing inline runs.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@cache
def openapi() -> dict[str, Any]:
    """The OpenAPI document, made once per process: it does not change, and takes half a second."""
    document: dict[str, Any] = SchemaGenerator().get_schema(public=True)
    return document


class _OneDocument(SchemaGenerator):
    """Returns this process's document for every request."""

    def get_schema(self, request: Any = None, public: bool = False) -> dict[str, Any]:
        return openapi()


class SchemaView(SpectacularJSONAPIView):
    """OpenAPI 3.1 as JSON. It contains no data, so everybody may read it."""

    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []
    throttle_classes: list[Any] = []
    generator_class = _OneDocument


@require_safe
def swagger(request: HttpRequest) -> HttpResponse:
    """Swagger UI over ``SchemaView``."""
    page = render(request, "api/docs.html")
    page["Content-Security-Policy"] = POLICY
    return page
