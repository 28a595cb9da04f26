"""The JSON Schema of a spec, with what the reference says of its fields: for the editor's completion."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.http import etag

from frontend.views.common import PageRequest, page
from ingestion.specs.tasks.ingestion_spec import SupervisorSpec


@cache
def _schema_json() -> bytes:
    return json.dumps({"schema": SupervisorSpec.model_json_schema(), "described": _field_texts()}).encode()


def _field_texts() -> dict[str, Any]:
    path = finders.find("headgate/spec-fields.json")
    return json.loads(Path(path).read_text()) if isinstance(path, str) else {}


@page
def schema(request: PageRequest) -> HttpResponseBase:
    """``{"schema": …, "described": {path: text}}``. A browser that has it already is told so."""
    return _answer(request)


@etag(lambda request: f'"{hashlib.sha256(_schema_json()).hexdigest()}"')
def _answer(request: HttpRequest) -> HttpResponse:
    return HttpResponse(_schema_json(), content_type="application/json")
