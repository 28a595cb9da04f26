"""The last queries of each user, written when they end."""

from __future__ import annotations

import logging
import time
from types import TracebackType
from typing import Self

from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.common.database import release_connections
from controlplane.common.errors import HeadgateError
from controlplane.query.models import PastQuery
from controlplane.teams.models import User

KEPT = 200  # of one user
log = logging.getLogger(__name__)
State = PastQuery.State


class Entry:
    """A query that runs. Leaving it writes the entry; an exception that leaves it is the query's error."""

    def __init__(self, user: User, statement: str, query_id: str, *, is_kept: bool = True) -> None:
        self._began, self._is_kept = time.monotonic(), is_kept
        self._row = PastQuery(user=user, statement=statement, query_id=query_id, started_at=timezone.now())
        self._row.state = State.CLOSED

    def ends(self, error: str = "", *, cancelled: bool = False, rows: int | None = None) -> None:
        """``rows``: of the whole result; None for EXPLAIN."""
        self._row.state = State.CANCELLED if cancelled else State.FAILED if error else State.SUCCEEDED
        self._row.error, self._row.rows = error, rows if self._row.state == State.SUCCEEDED else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None and self._row.state == State.CLOSED:
            self.ends(error.detail if isinstance(error, HeadgateError) else "The query failed inside Headgate.")
        self._row.duration_ms = round(1000 * (time.monotonic() - self._began))
        if not self._is_kept:
            return
        try:
            _write(self._row)
        except DatabaseError as fault:  # the answer is there already
            log.warning("a query is missing in its user's history: %s", fault)
        finally:
            release_connections()


@transaction.atomic
def _write(row: PastQuery) -> None:
    row.save()
    oldest = PastQuery.objects.filter(user=row.user).order_by("-id").values_list("id", flat=True)[KEPT - 1 : KEPT]
    PastQuery.objects.filter(user=row.user, id__lt=oldest).delete()


def past_queries(user: User) -> QuerySet[PastQuery]:
    """The user's own. A token for named datasources sees none: a statement may name others."""
    limited = user.limits is not None and user.limits.datasources
    return PastQuery.objects.none() if limited else PastQuery.objects.filter(user=user)
