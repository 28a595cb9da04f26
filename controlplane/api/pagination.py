"""Pagination by key: a cursor holds the last row's key, so that late pages cost as much as the first."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet
from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import QuerySerializer
from controlplane.common.errors import FieldError, InvalidInput
from controlplane.common.text import storable

MAX_ROWS = 500
DEFAULT_ROWS = 100
M = TypeVar("M", bound=Model)


class PageQuery(QuerySerializer):
    """The parameters of all lists."""

    limit = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**31 - 1,
        default=DEFAULT_ROWS,
        help_text=f"Rows per page, at most {MAX_ROWS}.",
    )
    cursor = serializers.CharField(
        required=False, max_length=2000, help_text="The cursor from `next` of the previous page."
    )


class SearchQuery(PageQuery):
    search = serializers.CharField(required=False, max_length=200, allow_blank=True, help_text="Part of the name.")
    team = serializers.CharField(required=False, max_length=63, help_text="Only items of this team.")


@dataclass(frozen=True)
class Key:
    """One column of a list's order."""

    field: str
    kind: type  # str, int, datetime or UUID
    descending: bool = False


@dataclass(frozen=True)
class Page:
    rows: list[Any]
    next: str | None


def page_of(
    request: Request,
    queryset: QuerySet[M],
    keys: Sequence[Key],
    query: dict[str, Any],
    extra_params: dict[str, str] | None = None,
    most: int = MAX_ROWS,
) -> Page:
    """The page that ``query`` (a validated ``PageQuery``) asks for. ``keys`` must make every row unique.

    ``extra_params``: further parameters of the next page's address.
    """
    limit = min(query["limit"], most)
    ordered = queryset.order_by(*(f"-{k.field}" if k.descending else k.field for k in keys))
    if "cursor" in query:
        ordered = ordered.filter(_after(keys, _decoded(query["cursor"], keys)))
    rows = list(ordered[: limit + 1])
    more = len(rows) > limit
    rows = rows[:limit]
    return Page(rows, _next_url(request, _encoded(rows[-1], keys), extra_params or {}) if more else None)


def page_response(page: Page, item: type[serializers.BaseSerializer[Any]]) -> Response:
    """``{"results": […], "next": address or null}``."""
    return Response({"results": item(page.rows, many=True).data, "next": page.next})


@cache
def page_schema(item: type[serializers.Serializer[Any]]) -> serializers.Serializer[Any]:
    """The schema of ``page_response``, for OpenAPI."""
    name = item.__name__.removesuffix("Serializer")
    return inline_serializer(
        f"{name}Page",
        {
            "results": item(many=True),
            "next": serializers.URLField(allow_null=True, help_text="Address of the next page. Null on the last page."),
        },
    )


def _after(keys: Sequence[Key], values: Sequence[Any]) -> Q:
    """Rows after the row with these values, in the order of the keys."""
    condition = Q(pk__in=[])
    for index, key in enumerate(keys):
        same = {k.field: v for k, v in zip(keys[:index], values[:index], strict=True)}
        condition |= Q(**same, **{f"{key.field}__{'lt' if key.descending else 'gt'}": values[index]})
    # Says again what follows from the above, in a form that an index on the first key can use.
    return condition & Q(**{f"{keys[0].field}__{'lte' if keys[0].descending else 'gte'}": values[0]})


def _encoded(row: Any, keys: Sequence[Key]) -> str:
    values = [_to_json(getattr(row, k.field)) for k in keys]
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, uuid.UUID) else value


def _decoded(cursor: str, keys: Sequence[Key]) -> list[Any]:
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)))
        if not isinstance(values, list):
            raise TypeError("a cursor holds a list")
        return [_typed(v, k.kind) for v, k in zip(values, keys, strict=True)]
    except (ValueError, TypeError, RecursionError):
        fault = FieldError("", "does not belong to this list: start without a cursor", "cursor")
        raise InvalidInput("The cursor is not valid.", [fault]) from None


def _typed(value: Any, kind: type) -> Any:
    if kind is int:
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
            raise TypeError("not a key")
        return value
    if not isinstance(value, str) or not storable(value):
        raise TypeError("not a key")
    if kind is datetime:
        time = datetime.fromisoformat(value)
        if time.tzinfo is None:
            raise ValueError("no time zone")
        return time
    return uuid.UUID(value) if kind is uuid.UUID else value


def _next_url(request: Request, cursor: str, extra_params: dict[str, str]) -> str:
    query = request.query_params.copy()
    for name, value in extra_params.items():
        query[name] = value
    query["cursor"] = cursor
    return request.build_absolute_uri(f"{request.path}?{query.urlencode()}")
