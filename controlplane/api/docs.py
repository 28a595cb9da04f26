"""The OpenAPI document and Swagger UI, both served by this site."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiJsonRenderer2
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


@cache
def openapi_text(indent: int) -> bytes:
    """The document as JSON, also made once: that takes longer than all else of an answer, and everybody may ask."""
    text: bytes = OpenApiJsonRenderer().render(openapi(), None, {"indent": indent})
    return text


class _OneText(OpenApiJsonRenderer):
    """Renders this process's document once. A refusal is rendered each time."""

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        if data is openapi():
            return openapi_text(self.get_indent(accepted_media_type, renderer_context or {}))
        text: bytes = super().render(data, accepted_media_type, renderer_context)
        return text


class _OnePlainText(_OneText):
    media_type = OpenApiJsonRenderer2.media_type


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
    renderer_classes = [_OneText, _OnePlainText]


@require_safe
def swagger(request: HttpRequest) -> HttpResponse:
    """Swagger UI over ``SchemaView``."""
    page = render(request, "api/docs.html")
    page["Content-Security-Policy"] = POLICY
    return page
