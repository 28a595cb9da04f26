"""Reads of tasks: lists, one task, its report, its log, and why it shows nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from controlplane.common.errors import NotFound
from controlplane.common.health import Health
from controlplane.common.text import storable
from controlplane.datasources.masked_querysets import hidden_note
from controlplane.datasources.masking import hidden_records
from controlplane.datasources.models import Datasource
from controlplane.publishing.models import IndexerFence
from controlplane.publishing.selectors.totals import Totals, fence_totals, totals_of
from controlplane.quarantine.models import FaultyRecord, QuarantinedRecord
from controlplane.quarantine.selectors.lists import list_faulty, list_quarantined_by
from controlplane.sources.models import SourceEvent
from controlplane.sources.spec_sources import TOPIC_SEPARATOR
from controlplane.tasks import capacity, diagnosis, host_logs, shared_applications
from controlplane.tasks.diagnosis import Facts
from controlplane.tasks.models import Indexer, Task
from controlplane.tasks.segment_specs import segment_spec
from controlplane.teams.models import User
from ingestion.specs.kafka.secrets import mask_secrets
from ingestion.specs.tasks import batch

DEFAULT_SAVED_EXCEPTIONS = 100
_OTHERS_LOG = "Hidden: its application also serves a datasource whose logs you may not see."
NAMES_SEARCHED = 20_000  # a search of names costs as much however many tasks there are


@dataclass(frozen=True)
class IndexerRow:
    """An indexer: what its heartbeat said (``indexers``, None before the first) and what it published (``fence``)."""

    number: int
    seen: Indexer | None
    fence: IndexerFence | None
    totals: Totals


@dataclass(frozen=True)
class Report:
    """What a task did."""

    task: Task
    totals: Totals
    indexers: list[IndexerRow]
    # The last first: as many as ``maxSavedParseExceptions`` of those that could not be read, and of those with a faulty
    # field.
    parse_exceptions: list[QuarantinedRecord | FaultyRecord]
    without_effect: list[str]  # options of the spec
    events: list[SourceEvent]
    reasons: list[Health]
    duration: timedelta | None


def first_created_at(task: Task) -> datetime:
    """When the task was created, or the first of its replicas: what they take must not differ."""
    replicas = Task.objects.filter(replica_group=task.replica_group) if task.replica_group else Task.objects.none()
    first: datetime | None = replicas.aggregate(first=Min("created_at"))["first"]
    return task.created_at if first is None else first


def list_tasks(
    user: User,
    *,
    status: str = "",
    datasource: str = "",
    supervisor: str = "",
    kind: str = "",
    search: str = "",
    team: str = "",
) -> QuerySet[Task]:
    """The user's tasks, newest first; ``search`` in ids. Adds team_name, published, unparseable, segment_count."""
    if not all(storable(text) for text in (status, datasource, supervisor, kind, search, team)):
        return Task.objects.none()
    filters = {
        "status": status,
        "datasource__name": datasource,
        "supervisor_id": supervisor,
        "kind": kind,
        "id__icontains": search,
        "datasource__team__name": team,
    }
    tasks = (
        Task.objects.visible_to(user).shown_to(user).filter(**{name: value for name, value in filters.items() if value})
    )
    return (
        tasks.select_related("datasource__team", "submitted_by")
        .annotate(
            team_name=F("datasource__team__name"),
            published=_fence_sum("published"),
            unparseable=_fence_sum("unparseable"),
            segment_count=_fence_sum("segments"),
        )
        .order_by("-created_at", "-id")
    )


def tasks_named(user: User, text: str, *, team: str = "", most: int = 20) -> list[Task]:
    """The newest with the text in their ids, of the last ``NAMES_SEARCHED``; older ones by their whole id."""
    if not storable(text):
        return []
    newest = Task.objects.order_by("-created_at", "-id").values("pk")[:NAMES_SEARCHED]
    matches = Q(pk__in=newest, id__icontains=text) | Q(pk=text)
    tasks = Task.objects.visible_to(user)
    if team:
        tasks = tasks.filter(datasource__team__name=team)
    return list(tasks.filter(matches).select_related("datasource__team").order_by("-created_at", "-id")[:most])


def get_task(user: User, task_id: str) -> Task:
    """One of ``list_tasks``. Raises ``NotFound``."""
    task = list_tasks(user).filter(pk=task_id).first() if storable(task_id) else None
    if task is None:
        raise NotFound(f"There is no task {task_id!r}.")
    task.log_note = _note_of_shared_log(user, task)
    return task


def _note_of_shared_log(user: User, task: Task) -> str:
    """In a shared application's log are lines of all its tasks: they may be of a datasource with masked columns, of one
    that a token does not name, or of the team that had the task's datasource before."""
    if not task.shared_application:
        return ""
    teams = {task.datasource.team_id, shared_applications.team_of(task.shared_application)}
    invisible = Datasource.objects.filter(team_id__in=teams).exclude(pk__in=Datasource.objects.visible_to(user))
    unseen = {*hidden_records(user), *invisible.values_list("pk", flat=True)}
    beside = Task.objects.filter(shared_application=task.shared_application, datasource_id__in=unseen)
    return _OTHERS_LOG if unseen and beside.order_by().exists() else ""


def task_totals(task: Task) -> Totals:
    """What became of the task's records."""
    return totals_of(IndexerFence.objects.filter(task_id=task.pk))


def task_report(user: User, task: Task) -> Report:
    """Everything at once, in a handful of queries."""
    totals = task_totals(task)
    rows = _indexer_rows(task)
    return Report(
        task=task,
        totals=totals,
        indexers=rows,
        parse_exceptions=parse_exceptions(user, task),
        without_effect=_without_effect(task),
        events=list(SourceEvent.objects.filter(datasource=task.datasource_id, task_id=task.pk).shown_to(user)),
        reasons=_reasons(task, totals, [row.seen for row in rows if row.seen]),
        duration=task_duration(task),
    )


def _without_effect(task: Task) -> list[str]:
    if task.is_of_segments or task.batch_spec:
        return segment_spec(task).options_without_effect()
    if task.is_batch or task.replays_files:
        return batch.options_without_effect(task.spec)
    supervisor = task.supervisor_id or ""
    return diagnosis.options_without_effect(
        task.spec, supervised=bool(supervisor), of_pattern=TOPIC_SEPARATOR in supervisor
    )


def why_nothing(task: Task) -> list[Health]:
    """Why the task has published nothing; empty once it has. See ``tasks.diagnosis``."""
    return _reasons(task, task_totals(task), list(task.indexers.all()))


def task_duration(task: Task) -> timedelta | None:
    """From the start to the end, or to now; None before the start."""
    if task.started_at is None:
        return None
    return (task.ended_at or timezone.now()) - task.started_at


def task_log_tail(task: Task, max_bytes: int = 65536) -> str:
    """The last bytes of the application's log, from the first whole line on; empty when there is none.

    Of a task that is shown to somebody who may not see what it may quote, a line that says so. Raises ``Unavailable``
    when it is on a host that does not answer.
    """
    if note := _note_for_log(task):
        return f"{note}\n"
    size, tail = host_logs.read(task.host, task.pk, -max_bytes, max_bytes)
    if size > max_bytes and b"\n" in tail:
        tail = tail[tail.index(b"\n") + 1 :]
    return tail.decode("utf-8", "replace").replace("\x00", "\N{REPLACEMENT CHARACTER}")


def task_log_from(task: Task, offset: int, max_bytes: int = 1 << 20) -> bytes:
    """The log's bytes from this one on, or of the last ``-offset``, as they are; empty when there is none.

    Of a task that is shown to somebody who may not see what it may quote, a line that says so.
    """
    if note := _note_for_log(task):
        return f"{note}\n".encode()
    return host_logs.read(task.host, task.pk, offset, max_bytes)[1]


def _note_for_log(task: Task) -> str:
    return hidden_note(task.concealed_for) if task.concealed_for else task.log_note


def shown_spec(spec: dict[str, Any]) -> dict[str, Any]:
    """A stored or canonical spec fit for an answer or a page: secrets masked."""
    return mask_secrets(spec)


def _fence_sum(column: str) -> Coalesce:
    fences = IndexerFence.objects.filter(task_id=OuterRef("pk")).order_by().values("task_id")
    return Coalesce(Subquery(fences.annotate(total=Sum(column)).values("total")), 0)


def _indexer_rows(task: Task) -> list[IndexerRow]:
    indexers = {i.number: i for i in task.indexers.all()}
    for indexer in indexers.values() if task.concealed_for else ():
        indexer.message = indexer.message and hidden_note(task.concealed_for)
    fences = {f.number: f for f in IndexerFence.objects.filter(task_id=task.pk, merges=False)}
    return [
        IndexerRow(number, indexers.get(number), fences.get(number), fence_totals(fences.get(number)))
        for number in sorted({*indexers, *fences})
    ]


def parse_exceptions(user: User, task: Task) -> list[QuarantinedRecord | FaultyRecord]:
    """Records that it could not read, or not well, the newest first: as many as its report shows, as the user may."""
    if task.is_batch:
        return []  # its row keeps those that are shown, with their faulty fields: see ``Task.unread``
    most = _saved_exceptions(task)
    records: list[QuarantinedRecord | FaultyRecord] = [
        *list_quarantined_by(user, task.pk)[:most],
        *list_faulty(user, task.pk)[:most],
    ]
    return sorted(records, key=lambda record: record.created_at, reverse=True)[:most]


def _saved_exceptions(task: Task) -> int:
    tuning = task.as_batch.get("spec", {}).get("tuningConfig", {})
    most = int(tuning.get("maxSavedParseExceptions", DEFAULT_SAVED_EXCEPTIONS))
    return min(most, 1) if tuning.get("reportParseExceptions") else most


def _reasons(task: Task, totals: Totals, indexers: list[Indexer]) -> list[Health]:
    if not (task.reads or task.is_bounded):
        return []  # nothing stored can be a good end
    refusal, pause = (_indexer_message(task, indexers, state) for state in ("refused", "paused"))
    facts = Facts(
        status=task.status,
        spec=task.spec,
        totals=totals,
        observation=task.observation,
        indexer_states=[i.state for i in indexers],
        held=sum(i.in_flight for i in indexers),
        refusal=refusal,
        pause=pause,
        slots=task.slots,
        error=task.error,
        slot_wait=capacity.wait_health(task),
    )
    return diagnosis.why_waiting(facts) if task.is_bounded else diagnosis.why_nothing(facts)


def _indexer_message(task: Task, indexers: list[Indexer], state: str) -> str:
    """By the first indexer in this state; it may quote a value."""
    message = next((i.message for i in indexers if i.state == state), "")
    return hidden_note(task.concealed_for) if message and task.concealed_for else message
