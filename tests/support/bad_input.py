"""REST endpoints refuse bad input in the right form, and change nothing: how a test finds that out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.models import Model
from django.utils import timezone

from controlplane.teams.models import ApiToken, AuditEntry


def rows_before() -> dict[str, list[str]]:
    """``everything`` before a test, which from here on no use of a token changes."""
    # When a token was last used is written at times, whatever it was used for.
    ApiToken.objects.update(last_used_at=timezone.now() + timedelta(days=1))
    return everything()


def everything() -> dict[str, list[str]]:
    """All rows of all our tables, but for entries of the audit trail that say that something was refused.

    By model, as text. One statement asks for all: there are a hundred tables, and each of as many tests asks twice.
    """
    models = [model for model in apps.get_models() if model.__module__.startswith("controlplane.")]
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(map(_rows_of, models)))
        found: tuple[list[str], ...] = cursor.fetchone()
    return {model._meta.label: rows for model, rows in zip(models, found, strict=True)}


def _rows_of(model: type[Model]) -> str:
    but = "WHERE t.action <> 'refuse'" if model is AuditEntry else ""
    return f'ARRAY(SELECT t::text FROM "{model._meta.db_table}" t {but} ORDER BY 1)'


def check_problem(answer: Any, path: str, statuses: tuple[int, ...] = (400, 404), what: str = "") -> None:
    assert answer.status_code in statuses, f"{what} {path}: {answer.status_code} {answer.content[:300]!r}"
    body = answer.json()
    if path.startswith("/druid/"):
        assert answer.headers["Content-Type"] == "application/json"
        assert body["error"] == "druidException"
        assert body["errorMessage"]
    else:
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert body["status"] == answer.status_code
        assert {"type", "title", "detail", "instance", "errors"} <= set(body)
        assert body["detail"]
