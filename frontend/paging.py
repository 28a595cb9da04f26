"""Pages of lists: short ones by number, long ones by key.

By key there is no count of a million rows, and no row is shown twice when new ones come in between.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.core.paginator import Page, Paginator
from django.db.models import Model, Q, QuerySet

from controlplane.common.errors import InvalidInput

Row = TypeVar("Row", bound=Model)
PAGE_SIZE = 50


def numbered_page(items: QuerySet[Any] | Sequence[Any], number: str | None, page_size: int = PAGE_SIZE) -> Page[Any]:
    """The page of that number; the first or last for one that does not exist."""
    return Paginator(items, page_size).get_page(number)


@dataclass(frozen=True)
class KeysetPage(Generic[Row]):
    """Some rows in order."""

    rows: list[Row]
    # previous and next: cursors, None at the ends.
    previous: str | None
    next: str | None


def keyset_page(
    queryset: QuerySet[Row], order: Sequence[str], cursor: str | None, page_size: int = PAGE_SIZE
) -> KeysetPage[Row]:
    """The page that ``cursor`` names, the first for none. Raises ``InvalidInput`` for a cursor that names no page.

    ``order``: fields or annotations without nulls, ``-`` for descending, the last one unique within the rest.
    """
    decoded = _decode_cursor(queryset, order, cursor)
    back = decoded is not None and decoded.back
    direction = [_reversed(f) for f in order] if back else list(order)
    ordered = queryset.order_by(*direction)
    if decoded is not None:
        ordered = ordered.filter(_after(direction, decoded.values))
    rows = list(ordered[: page_size + 1])
    more = len(rows) > page_size
    rows = rows[:page_size]
    if back:
        rows.reverse()
    has_next, has_previous = (True, more) if back else (more, decoded is not None)
    return KeysetPage(
        rows,
        _encode_cursor(order, rows[0], back=True) if rows and has_previous else None,
        _encode_cursor(order, rows[-1], back=False) if rows and has_next else None,
    )


@dataclass(frozen=True)
class _Cursor:
    back: bool
    values: list[Any]


def _after(order: Sequence[str], values: Sequence[Any]) -> Q:
    """Rows behind ``values``: equal in the first n fields and beyond in the next."""
    beyond, equal = Q(), Q()
    for field, value in zip(order, values, strict=True):
        name = field.lstrip("-")
        beyond |= equal & Q(**{f"{name}__{'lt' if field.startswith('-') else 'gt'}": value})
        equal &= Q(**{name: value})
    return beyond


def _reversed(field: str) -> str:
    return field[1:] if field.startswith("-") else f"-{field}"


def _encode_cursor(order: Sequence[str], row: Model, *, back: bool) -> str:
    values = [_json_value(getattr(row, f.lstrip("-"))) for f in order]
    return base64.urlsafe_b64encode(json.dumps([back, *values]).encode()).decode().rstrip("=")


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return value if isinstance(value, int | str) else str(value)


def _field(queryset: QuerySet[Row], name: str) -> Any:
    annotation = queryset.query.annotations.get(name)
    return queryset.model._meta.get_field(name) if annotation is None else annotation.output_field


def _decode_cursor(queryset: QuerySet[Row], order: Sequence[str], cursor: str | None) -> _Cursor | None:
    if not cursor:
        return None
    try:
        back, *values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        fields = [_field(queryset, f.lstrip("-")) for f in order]
        return _Cursor(bool(back), [f.to_python(v) for f, v in zip(fields, values, strict=True)])
    except (ValueError, TypeError, binascii.Error, ValidationError):
        raise InvalidInput(
            "This address does not fit the list's sort order. Open the first page of the list."
        ) from None
