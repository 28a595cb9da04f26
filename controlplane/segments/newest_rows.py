"""A datasource's newest rows, as they are stored: read by a process of the data plane, which is killed if it is slow.

Which files may hold them is known here, by their intervals and the times of their rows; a million segments cost no more
than a hundred. Who may not take samples of a topic sees no texts of what came from it.
"""

from __future__ import annotations

import logging
import subprocess
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from pydantic import ValidationError

from controlplane.common.errors import InvalidInput, Unavailable
from controlplane.common.fair_queue import FairPlaces, NoPlace
from controlplane.common.processes import passed_environment, start_module
from controlplane.datasources.masking import hidden_columns
from controlplane.datasources.models import Datasource
from controlplane.segments.models import Interval, Segment
from controlplane.segments.selectors.columns import widest_type
from controlplane.segments.selectors.planning import latest_intervals
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, may
from ingestion.specs.messages.deep_storage import RegisteredFile
from ingestion.specs.messages.newest_rows import MAX_FILES, MAX_ROWS, FileProblem, Footer, RowsAnswer, RowsOrder

MODULE = "ingestion.segments.newest_rows"
DEFAULT_ROWS = 100
MAX_CONCURRENT = 2  # of one web process; each takes a core for a second or two
MAX_CONCURRENT_PER_USER = 1
WAIT_S = 10.0
READING_S = 8.0
ANSWER_S = 30.0  # start, reading, answer

log = logging.getLogger(__name__)
_slots = FairPlaces(places=MAX_CONCURRENT, per_user=MAX_CONCURRENT_PER_USER, waiting=4)


@dataclass(frozen=True)
class ShownColumn:
    """A column of the rows."""

    name: str
    type: str  # holds the values of all files that were read
    types: list[str]  # what they have


@dataclass(frozen=True)
class NewestRows:
    """The latest rows by their time, the latest first; cells as ``RowsAnswer`` says."""

    columns: list[ShownColumn]
    rows: list[list[Any]]
    masked: bool  # whether texts, lists and JSON are hidden from this user
    masked_columns: dict[str, str]  # whose values are, with the least role that sees them
    problems: list[FileProblem]
    files_read: int
    # Up to this time rows may be missing, as more files may hold some than are read for this; None: none is missing.
    certain_after: datetime | None


class TooManyRows(Unavailable):
    """Those of a shorter time can be read."""


def newest_rows(
    *,
    user: User,
    datasource: Datasource,
    start: datetime | None = None,
    end: datetime | None = None,
    limit: int = DEFAULT_ROWS,
) -> NewestRows:
    """The ``limit`` latest rows with times in ``[start, end)``. The caller has made sure that the user may see it.

    Who has not the role operator sees texts, lists and JSON masked: they never leave the process that reads the files.
    Raises ``InvalidInput``, ``Unavailable``.
    """
    if not 1 <= limit <= MAX_ROWS:
        raise InvalidInput(f"limit must be 1 to {MAX_ROWS}.")
    if start is not None and end is not None and start >= end:
        raise InvalidInput("The window is empty: 'from' must be before 'to'.")
    files = _latest_files(datasource, start, end)
    window = {"start_ms": None if start is None else _ms(start), "end_ms": None if end is None else _ms(end)}
    order = _rows_order(user, datasource, files.files, limit).model_copy(update=window)
    return _read_rows(user, order, files.others_since)


def rows_like(
    *, user: User, datasource: Datasource, segments: list[UUID], at_ms: int, like: dict[str, Any]
) -> NewestRows:
    """Rows of these segments with this time and these values, by column; ``MAX_ROWS`` at most.

    Columns that are hidden from the user are not compared. The caller has made sure that the user may see it. Raises
    ``Unavailable``.
    """
    latest = Segment.objects.filter(pk__in=segments, datasource=datasource).order_by("-max_time")[:MAX_FILES]
    files = [
        _LatestFile(RegisteredFile(path=s.path, size_bytes=s.size_bytes, sha256=s.sha256), s.max_time) for s in latest
    ]
    order = _rows_order(user, datasource, files, MAX_ROWS)
    visible = {} if order.masked else {name: value for name, value in like.items() if not order.role_that_sees(name)}
    return _read_rows(user, order.model_copy(update={"start_ms": at_ms, "end_ms": at_ms + 1, "like": visible}), None)


@dataclass(frozen=True)
class SegmentFile:
    """What one segment's file holds, as the user may see it."""

    rows: NewestRows
    footer: Footer | None  # None: the file is not what was registered; ``rows.problems`` say why


def segment_file(*, user: User, segment: Segment, limit: int = DEFAULT_ROWS) -> SegmentFile:
    """The footer of its file, and the ``limit`` latest of its rows; in use or not, as long as the file is there.

    The caller has made sure that the user may see the datasource. Raises ``Unavailable``.
    """
    file = _LatestFile(
        RegisteredFile(path=segment.path, size_bytes=segment.size_bytes, sha256=segment.sha256), segment.max_time
    )
    order = _rows_order(user, segment.datasource, [file], limit).model_copy(update={"footer": True})
    answer = _checked_answer(user, order)
    # Rows of one file are all there are, whatever others hold.
    return SegmentFile(replace(_to_newest_rows(order, answer, None), certain_after=None), answer.footer)


def _rows_order(user: User, datasource: Datasource, files: list[_LatestFile], limit: int) -> RowsOrder:
    return RowsOrder(
        deep_storage=settings.DEEP_STORAGE,
        files=[f.registered for f in files],
        last_ms=[_ms(f.last) for f in files],
        limit=limit,
        masked_columns=hidden_columns(user, datasource),
        masked=not may(user, Action.OPERATE, datasource.team),
        reading_s=READING_S,
    )


def _read_rows(user: User, order: RowsOrder, others_since: datetime | None) -> NewestRows:
    answer = _checked_answer(user, order) if order.files else RowsAnswer()
    return _to_newest_rows(order, answer, others_since)


def _checked_answer(user: User, order: RowsOrder) -> RowsAnswer:
    answer = _queued_answer(user, order)
    if answer.refusal:
        raise Unavailable(f"Deep storage can't be read: {answer.refusal}.")
    return answer


@dataclass(frozen=True)
class _LatestFile:
    registered: RegisteredFile
    last: datetime


@dataclass(frozen=True)
class _LatestFiles:
    files: list[_LatestFile]  # the latest first
    others_since: datetime | None  # the last row of the latest that is not among them


def _latest_files(datasource: Datasource, start: datetime | None, end: datetime | None) -> _LatestFiles:
    nearest, beyond = _enough_intervals(latest_intervals(datasource, start, end, MAX_FILES + 1))
    with connection.cursor() as cursor:
        values = [datasource.pk, start, start, end, end, MAX_FILES + 1]
        cursor.execute(_LATEST, [[i.start for i in nearest], [i.end for i in nearest], *values])
        rows = cursor.fetchall()
    files = [_LatestFile(RegisteredFile(path=p, size_bytes=size, sha256=sha), last) for p, size, sha, last in rows]
    left_out = [f.last for f in files[MAX_FILES:]] + ([beyond] if beyond is not None else [])
    return _LatestFiles(files[:MAX_FILES], max(left_out, default=None))


def _enough_intervals(intervals: list[Interval]) -> tuple[list[Interval], datetime | None]:
    """So many of them that they hold as many files as are read, and the last row's time of the next one."""
    sums = accumulate(i.segments for i in intervals)
    count = next((n for n, files in enumerate(sums, 1) if files >= MAX_FILES), len(intervals))
    return intervals[:count], intervals[count].max_time if count < len(intervals) else None


_LATEST = """
    SELECT s.path, s.size_bytes, s.sha256, s.max_time
    FROM unnest(%s::timestamptz[], %s::timestamptz[]) AS i(start, stop), segments_segment s
    WHERE s.datasource_id = %s AND s.interval_start = i.start AND s.interval_end = i.stop AND s.used
      AND (%s::timestamptz IS NULL OR s.max_time >= %s) AND (%s::timestamptz IS NULL OR s.min_time < %s)
    ORDER BY s.max_time DESC, s.created_at DESC LIMIT %s
"""


def _queued_answer(user: User, order: RowsOrder) -> RowsAnswer:
    try:
        with _slots.place(user.pk, WAIT_S):
            return _run_reader(order)
    except NoPlace:
        raise Unavailable("Other users are reading rows now. Try again in a few seconds.") from None


def _run_reader(order: RowsOrder) -> RowsAnswer:
    """What the process says. Raises ``Unavailable`` when it dies, or says nothing in time."""
    with start_module(MODULE, passed_environment()) as process:
        try:
            answer_json, _ = process.communicate(order.model_dump_json(), timeout=ANSWER_S)
        except subprocess.TimeoutExpired:
            raise TooManyRows(f"The rows could not be read within {ANSWER_S:.0f} s; ask for a shorter time.") from None
        finally:
            process.kill()
    try:
        return RowsAnswer.model_validate_json(answer_json)
    except ValidationError:
        log.warning("the process that reads rows ended with %s", process.returncode)
        raise TooManyRows(
            "The process that reads rows died: they may take too much memory. Ask for fewer rows or a shorter time."
        ) from None


def _to_newest_rows(order: RowsOrder, answer: RowsAnswer, others_since: datetime | None) -> NewestRows:
    return NewestRows(
        columns=[ShownColumn(c.name, widest_type(set(c.types)), c.types) for c in answer.columns],
        rows=answer.rows,
        masked=order.masked,
        masked_columns=order.masked_columns,
        problems=[_without_path(p) for p in answer.problems] if order.masked_columns else answer.problems,
        files_read=answer.files_read,
        certain_after=_certain_after(order, answer, others_since),
    )


def _without_path(problem: FileProblem) -> FileProblem:
    """In the file all columns are plain: where it lies is not shown."""
    return FileProblem(path="", problem=problem.problem.replace(problem.path, "the file"))


def _certain_after(order: RowsOrder, answer: RowsAnswer, others_since: datetime | None) -> datetime | None:
    unread = None if answer.unread_ms is None else datetime.fromtimestamp(answer.unread_ms / 1000, UTC)
    latest = max((t for t in (unread, others_since) if t is not None), default=None)
    if latest is None or len(answer.rows) < order.limit:
        return latest
    time = [c.name for c in answer.columns].index("__time")
    return None if datetime.fromisoformat(answer.rows[-1][time]) >= latest else latest


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)
