"""Rows that lose what their reader may not see on the way out of the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, Self, TypeVar, cast

from django.db import models

from controlplane.datasources.masking import hidden_records
from controlplane.teams.models import User

Row = TypeVar("Row", bound=models.Model)


class Concealable(Protocol):
    """A row that may hold values of a datasource's masked columns."""

    concealed_for: str  # the least role that sees what was taken out; empty where nothing was
    datasource_id: int

    def conceal(self, role: str) -> None:
        """Take it out, and say for whom."""


def hidden_note(role: str) -> str:
    """Instead of a text that may quote a value."""
    return f"Hidden: its datasource has masked columns. You need the role {role}."


def conceal(user: User | None, rows: Iterable[Concealable]) -> None:
    """What ``ConcealingQuerySet.shown_to`` does, to rows that were needed whole before they are shown."""
    hidden = hidden_records(user)
    for row in rows:
        role = hidden.get(row.datasource_id)
        if role is not None:
            row.conceal(role)


class ConcealingQuerySet(models.QuerySet[Row]):
    """Rows of a datasource each; ``shown_to`` says who reads them."""

    _hidden: Mapping[int, str] = {}

    def shown_to(self, user: User | None) -> Self:
        """Without what the user may not see. None: nobody in particular, who may see no masked value."""
        rows = self.all()
        rows._hidden = hidden_records(user)
        return rows

    def iterator(self, *args: Any, **kwargs: Any) -> Iterator[Row]:
        """Not of rows that are to be concealed."""
        if self._hidden:
            raise TypeError("rows that are shown to somebody are not iterated past their concealing")
        return super().iterator(*args, **kwargs)

    def _clone(self) -> Self:
        clone = super()._clone()  # type: ignore[misc]  # the stubs leave it out
        clone._hidden = self._hidden
        return cast(Self, clone)

    def _fetch_all(self) -> None:
        is_first_fetch = self._result_cache is None
        super()._fetch_all()
        if not is_first_fetch or not self._hidden:
            return
        for row in self._result_cache or ():
            if isinstance(row, self.model):
                concealable = cast(Concealable, row)
                role = self._hidden.get(concealable.datasource_id)
                if role is not None:
                    concealable.conceal(role)
