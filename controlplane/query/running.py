"""A user's statement, run by a process of its own: checked there, planned here, and read a chunk at a time."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from django.conf import settings

from controlplane.common.database import release_connections
from controlplane.common.errors import Conflict, FieldError, HeadgateError, InvalidInput, Unavailable
from controlplane.common.fair_queue import FairPlaces, NoPlace, Place
from controlplane.common.processes import passed_environment
from controlplane.common.ready_process import ProcessDied, ReadyProcess
from controlplane.datasources.masking import hidden_records
from controlplane.query import cancelling, history
from controlplane.query.conversation import Cancelled, Conversation
from controlplane.query.limits import Limit, QueryLimits, limits_of, site_limits, too_many_queries
from controlplane.query.planning import TableFiles, plan_files
from controlplane.query.shared_places import SharedPlace
from controlplane.query.sys_rows import write_csv
from controlplane.query.sys_tables import SysTable
from controlplane.query.tables import UserTable, find_tables, sys_table
from controlplane.query.times import time_of
from controlplane.teams import audit
from controlplane.teams.models import User
from ingestion.specs.messages.sql import (
    DruidStatement,
    Format,
    SqlHead,
    SqlLimits,
    SqlOrder,
    SqlStatement,
    SqlTable,
    SqlTables,
    SqlTableUse,
    SqlTail,
)

MODULE = "ingestion.query.fork_server"
MAX_CONCURRENT = 4  # of one web process
MAX_CONCURRENT_PER_USER = 2  # in all web processes together
MAX_WAITING_PER_USER = 4
WAIT_S = 10.0
PAUSE_S = 0.1  # between two looks whether another web process has left a place
SHOWN_STATEMENT = 2_000  # characters in the audit trail

log = logging.getLogger(__name__)
_slots = FairPlaces(places=MAX_CONCURRENT, per_user=MAX_CONCURRENT_PER_USER, waiting=MAX_WAITING_PER_USER)
# No memory set aside beyond what is used, and no threads before a fork.
_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
ready_process = ReadyProcess(MODULE, {**passed_environment(), **_ENVIRONMENT})


class BrokenOff(Exception):
    """An answer that has begun ends before its last row: the connection is closed without its end."""


@dataclass(frozen=True)
class PlannedTable:
    """A table of the statement, and what is read for it."""

    table: UserTable
    use: SqlTableUse
    files: TableFiles
    start: datetime | None  # of the times that it is read for; None: no bound
    end: datetime | None  # exclusive


class RunningQuery:
    """The answer of a query: what is known at once, and its ``chunks``. Closing it ends the process."""

    def __init__(
        self,
        query_id: str,
        form: Format,
        tables: list[PlannedTable],
        head: SqlHead,
        process: Conversation,
        limits: QueryLimits,
    ) -> None:
        self.query_id = query_id
        self.form = form
        self.tables = tables
        self.head = head
        self.tail = SqlTail()  # known after the last chunk
        self._process = process
        self._limits = limits
        self._resources = ExitStack()
        self._entry: history.Entry | None = None

    @property
    def masked(self) -> dict[str, str]:
        """The masked columns as ``datasource.column``, each with the least role that sees it."""
        return {f"{t.table.shown_name}.{c}": role for t in self.tables for c, role in t.table.masked.items()}

    def chunks(self) -> Iterator[bytes]:
        """The result in its format. Raises ``BrokenOff``."""
        try:
            while chunk := self._process.read_chunk():
                yield chunk
            self.tail = SqlTail.model_validate_json(self._process.read_line())
            self._note(self.tail.error)
        except ProcessDied as death:
            self._note(error := _death(death, self._limits).detail)
            raise BrokenOff(error) from None
        except Cancelled:
            self._note(cancelled=True)
            raise BrokenOff("The query was cancelled.") from None
        finally:
            self.close()
        if self.tail.error:
            raise BrokenOff(self.tail.error)
        if self.tail.truncated and self.form != "json":
            rows = self._limits.rows
            raise BrokenOff(f"The result has more than {int(rows.amount):,} rows. {rows.whose}")

    def _note(self, error: str = "", *, cancelled: bool = False) -> None:
        if self._entry is not None:
            self._entry.ends(error, cancelled=cancelled, rows=self.tail.rows)

    def hold(self, resources: ExitStack, entry: history.Entry) -> None:
        """Free these when it is closed, and say in the entry of the history how it has ended."""
        self._resources = resources
        self._entry = entry
        if self.head.plan is not None:
            entry.ends(rows=None)

    def close(self) -> None:
        self._resources.close()


@dataclass(frozen=True)
class Dialect:
    """Druid's SQL: how it is meant and answered, and its tables that are no datasources, None of others."""

    druid: DruidStatement
    system_table: Callable[[SqlTableUse], SysTable | None]
    time_s: float | None = None  # the client's own limit


def run_query(
    *,
    user: User,
    sql: str,
    form: Format = "json",
    query_id: str = "",
    is_gone: Callable[[], bool] = lambda: False,
    dialect: Dialect | None = None,
    in_history: bool = True,
) -> RunningQuery:
    """Run it until its first rows are there. The caller closes it. If whoever asked is gone, it ends within a second.

    ``in_history``: a person has written it, and finds it there again.

    Raises ``InvalidInput``, ``NotFound``, ``NotAllowed``, ``Conflict`` and ``Unavailable``.
    """
    query_id = query_id or str(uuid4())
    with ExitStack() as resources:
        entry = resources.enter_context(history.Entry(user, sql, query_id, is_kept=in_history))
        release_connections()
        try:
            place = resources.enter_context(_slots.place(user.pk, WAIT_S))
            shared = resources.enter_context(SharedPlace(site_limits().seconds.amount + WAIT_S))
            _share(place, shared, {f"user:{user.pk}": MAX_CONCURRENT_PER_USER})
            query = _started(resources, place, shared, user, sql, form, query_id, is_gone, dialect)
        except NoPlace:
            raise Unavailable("Other queries are running. Try again in a few seconds.") from None
        except Cancelled:
            entry.ends(cancelled=True)
            raise Conflict("The query was cancelled.") from None
        except OSError as error:
            raise Unavailable(f"The process of the query does not start: {error.strerror}.") from error
        query.hold(resources.pop_all(), entry)
    return query


def _started(
    resources: ExitStack,
    place: Place,
    shared: SharedPlace,
    user: User,
    sql: str,
    form: Format,
    query_id: str,
    is_gone: Callable[[], bool],
    dialect: Dialect | None,
) -> RunningQuery:
    limits = _as_asked(site_limits(), dialect)
    cancelling.register(user, query_id, limits.seconds.amount + WAIT_S)
    resources.callback(cancelling.forget, user, query_id)
    scratch = resources.enter_context(TemporaryDirectory(prefix="headgate-sql-", ignore_cleanup_errors=True))
    process = Conversation(ready_process.connect(), lambda: is_gone() or cancelling.is_cancelled(user, query_id))
    resources.callback(process.close)
    process.send(
        SqlStatement(
            sql=sql,
            druid=dialect.druid if dialect else None,
            time_s=limits.seconds.amount + WAIT_S,
            memory_bytes=int(limits.memory_bytes.amount),
            temporary_bytes=limits.temporary_bytes,
        )
    )
    try:
        asked = SqlTables.model_validate_json(process.read_line())
        if asked.refusal:
            raise _refusal(asked.refusal)
        found = find_tables(user, asked.tables, dialect.system_table if dialect else sys_table)
        limits = _as_asked(limits_of({t.datasource.team for t in found if t.datasource is not None}), dialect)
        _join(place, shared, limits)
        tables = _plan(found, asked.tables)
        _write_sys_tables(user, tables, scratch, limits, process.check)
        _record(user, tables, sql, query_id)
        process.send(_order(tables, scratch, form, limits))
        release_connections()
        head = SqlHead.model_validate_json(process.read_line())
    except ProcessDied as death:
        raise _death(death, limits) from None
    if head.refusal:
        raise Unavailable(head.refusal) if head.unavailable else _refusal(head.refusal)
    return RunningQuery(query_id, form, tables, head, process, limits)


def _as_asked(limits: QueryLimits, dialect: Dialect | None) -> QueryLimits:
    """A client may ask for less time."""
    seconds = dialect.time_s if dialect else None
    if seconds is None or seconds >= limits.seconds.amount:
        return limits
    return replace(limits, seconds=Limit(seconds, "The query itself has set this limit."))


def _join(place: Place, shared: SharedPlace, limits: QueryLimits) -> None:
    """Wait until the teams have room for one more query. Raises ``Unavailable``."""
    release_connections()
    try:
        place.join({team: most for team, (_, most) in limits.queries.items()}, WAIT_S)
        _share(place, shared, {f"team:{team}": most for team, (_, most) in limits.queries.items()})
    except NoPlace:
        raise too_many_queries(limits) from None


def _share(place: Place, shared: SharedPlace, most: dict[str, int]) -> None:
    """Wait until all web processes together have room for one more query. Raises ``NoPlace``."""
    deadline = time.monotonic() + WAIT_S
    while not shared.take(most):
        place.stand_back(PAUSE_S, deadline - time.monotonic())


def _plan(tables: Sequence[UserTable], uses: Sequence[SqlTableUse]) -> list[PlannedTable]:
    files = plan_files(tables, uses)
    return [
        PlannedTable(table, use, planned, time_of(use.start_us), time_of(use.end_us))
        for table, planned, use in zip(tables, files, uses, strict=True)
    ]


def _write_sys_tables(
    user: User, tables: Sequence[PlannedTable], scratch: str, limits: QueryLimits, check: Callable[[], None]
) -> None:
    """A file for each table of ``sys``, in the query's own folder."""
    hidden = hidden_records(user) if any(t.table.system for t in tables) else {}
    for number, planned in enumerate(tables):
        table, place = planned.table.system, Path(scratch) / f"sys{number}.csv"
        if table is None:
            continue
        planned.files.csv = str(place)
        planned.files.rows, planned.files.csv_bytes = write_csv(
            place,
            table.read(user, planned.use, hidden),
            seconds=limits.seconds.amount,
            most_bytes=limits.temporary_bytes,
            check=check,
            too_many=f"{planned.table.shown_name} is too large. {table.fewer}",
        )


def _order(tables: Sequence[PlannedTable], scratch: str, form: Format, limits: QueryLimits) -> SqlOrder:
    return SqlOrder(
        deep_storage=settings.DEEP_STORAGE,
        tables=[SqlTable(columns=t.table.columns, files=t.files.files, csv=t.files.csv) for t in tables],
        scratch=scratch,
        format=form,
        max_rows=int(limits.rows.amount),
        limits=SqlLimits(
            time_s=limits.seconds.amount,
            memory_bytes=int(limits.memory_bytes.amount),
            temporary_bytes=limits.temporary_bytes,
            more_memory=limits.memory_bytes.whose,
        ),
    )


def _record(user: User, tables: Sequence[PlannedTable], sql: str, query_id: str) -> None:
    """An entry for each datasource that the statement reads, in its team's audit trail."""
    for datasource in {t.table.datasource for t in tables if t.table.datasource is not None}:
        audit.record_read(
            user=user,
            datasource=datasource.name,
            team=datasource.team,
            query_id=query_id,
            statement=sql[:SHOWN_STATEMENT],
        )


def _refusal(text: str) -> InvalidInput:
    return InvalidInput(text, [FieldError("/query", text, "query")])


def _death(death: ProcessDied, limits: QueryLimits) -> HeadgateError:
    if death.code == -signal.SIGALRM:
        return _refusal(
            f"The query did not finish within {limits.seconds.amount:g} s, sending its rows included. Compare __time "
            f"with a shorter time range, or read fewer columns. {limits.seconds.whose}"
        )
    log.warning("the process of a query ended with %s", death.code)
    return _refusal(
        "The process of the query died: the query may need too much memory. Nothing else is affected. "
        f"{limits.memory_bytes.whose}"
    )
