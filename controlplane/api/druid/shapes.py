"""Tasks, supervisors and records in Druid's formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.http.request import split_domain_port
from django.utils import timezone

from controlplane.common.errors import FieldError, InvalidInput
from controlplane.publishing.selectors.totals import Totals
from controlplane.supervisors.models import SpecVersion, Supervisor, Switch
from controlplane.supervisors.selectors import is_healthy
from controlplane.supervisors.status import StatusReport, TaskProgress, TaskStats
from controlplane.tasks.bounded_reads import BoundedProgress, progress_of
from controlplane.tasks.capacity import Pool
from controlplane.tasks.models import Status, Task
from controlplane.tasks.selectors import Report, shown_spec
from ingestion.specs.counters import COUNTERS, IN_DRUID, Size
from ingestion.specs.tasks.segment_tasks import DEFAULT_BATCH

N = TypeVar("N", int, float)
_COUNTER_NAMES = (
    "polled",
    *(c.name for c in COUNTERS if not isinstance(c, Size)),
    "segments",
    "size_bytes",
    "publishes",
)


def instant(time: datetime | None) -> str | None:
    """ISO 8601 in UTC with milliseconds, as Druid writes it."""
    return None if time is None else time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def task_status(task: Task) -> dict[str, Any]:
    """An element of ``/tasks`` and the ``status`` of a task. A waiting task is RUNNING and has a runner status."""
    code = task.status if task.ended else "RUNNING"
    return {
        "id": task.pk,
        "groupId": task.supervisor_id or task.pk,
        "type": _type(task),
        "createdTime": instant(task.created_at),
        "queueInsertionTime": instant(task.created_at),
        "statusCode": code,
        "status": code,
        "runnerStatusCode": _runner_status(task),
        "duration": _duration_ms(task),
        "location": {"host": None, "port": -1, "tlsPort": -1},
        "dataSource": task.datasource.name,
        "errorMsg": task.error or None,
    }


def short_status(task: Task) -> dict[str, Any]:
    """A value of ``/taskStatus``."""
    full = task_status(task)
    return {name: full[name] for name in ("id", "status", "duration", "errorMsg", "location")}


def task_payload(task: Task) -> dict[str, Any]:
    """The task's spec, as ``/task/{id}`` shows it."""
    return {
        **shown_spec(task.spec),
        "id": task.pk,
        "groupId": task.supervisor_id or task.pk,
        "dataSource": task.datasource.name,
    }


def task_reports(report: Report, averages: Mapping[str, Mapping[str, float]] | None = None) -> dict[str, Any]:
    """Druid's ingestionStatsAndErrors, and Headgate's own counters, which add up.

    ``averages``: a running task's rates by window.
    """
    task, totals = report.task, report.totals
    payload = {
        "ingestionState": _ingestion_state(task),
        "unparseableEvents": {
            "buildSegments": [
                *(unparseable_event(r) for r in report.parse_exceptions),
                *(_unread_event(task, record) for record in task.unread),
            ]
        },
        "rowStats": _report_stats(row_stats(_read_counts(task, totals)), averages),
        "errorMsg": task.error or None,
        "segmentsPublished": totals.segments,
    }
    counters = {name: getattr(totals, name) for name in _COUNTER_NAMES}
    ours = {
        **counters,
        "adds_up": totals.adds_up,
        "rows_per_s": totals.rows_per_s,
        "optionsWithoutEffect": report.without_effect,
        "whyNothing": [{"code": r.code, "text": r.text} for r in report.reasons],
    }
    if task.is_bounded:
        ours["progress"] = bounded_progress(progress_of(task))
    first = (
        ("killUnusedSegments", _kill_counts(task))
        if task.kind == Task.Kind.KILL
        else ("ingestionStatsAndErrors", payload)
    )
    kinds = (first, ("headgate", ours))
    return {kind: {"type": kind, "taskId": task.pk, "payload": content} for kind, content in kinds}


def bounded_progress(progress: BoundedProgress) -> dict[str, int | None]:
    """How far a bounded read is, in offsets."""
    return {
        "total": progress.total,
        "done": progress.done,
        "percent": progress.percent,
        "secondsLeft": progress.seconds_left,
    }


def _read_counts(task: Task, totals: Totals) -> dict[str, int]:
    """The counts of published records and of those that a failed task read and did not publish, as Druid counts."""
    return {name: getattr(totals, name) + task.given_up.get(name, 0) for name in IN_DRUID}


def _report_stats(
    counts: dict[str, int], averages: Mapping[str, Mapping[str, float]] | None
) -> dict[str, dict[str, Any]]:
    """The stats of a task: totals by phase, and averages while it runs."""
    totals = {"totals": {"buildSegments": counts}}
    if averages is None:
        return {"buildSegments": counts, **totals}
    return {"movingAverages": {"buildSegments": {window: row_stats(r) for window, r in averages.items()}}, **totals}


def _kill_counts(task: Task) -> dict[str, int]:
    at_once = int(task.spec.get("batchSize", DEFAULT_BATCH))
    return {"numSegmentsKilled": task.parts_done, "numBatchesProcessed": -(-task.parts_done // at_once)}


def row_stats(counts: Mapping[str, N]) -> dict[str, N]:
    """Druid's counters of a phase, or their rates. ``processed`` excludes records processed with an error."""
    stats: dict[str, Any] = dict.fromkeys(IN_DRUID.values(), 0)
    for name, in_druid in IN_DRUID.items():
        stats[in_druid] += counts[name]
    return {**stats, "processed": stats["processed"] - stats["processedWithError"]}


def worker_capacity(pool: Pool) -> dict[str, int]:
    """``/totalWorkerCapacity``. Both capacities are equal, because no workers are added. -1 means no limit."""
    size = -1 if pool.size is None else pool.size
    return {"currentClusterCapacity": size, "maximumCapacityWithAutoScale": size, "usedClusterCapacity": pool.used}


def worker(host: str, scheme: str, pool: Pool, running: Sequence[Task], last: Task | None) -> dict[str, Any]:
    """The element of ``/workers``: all slots. ``running`` and ``last`` have only tasks that the caller may see."""
    by_type: dict[str, int] = {}
    for task in running:
        by_type[_type(task)] = by_type.get(_type(task), 0) + max(1, task.indexers_wanted)
    about = {"scheme": scheme, "host": host, "ip": split_domain_port(host)[0]}
    return {
        "worker": about
        | {"capacity": -1 if pool.size is None else pool.size, "version": "0", "category": "_default_worker_category"},
        "currCapacityUsed": pool.used,
        "currParallelIndexCapacityUsed": 0,
        "currCapacityUsedByTaskType": by_type,
        "availabilityGroups": sorted({task.supervisor_id or task.pk for task in running}),
        "runningTasks": [task.pk for task in running],
        "lastCompletedTaskTime": instant(last.ended_at if last else datetime.fromtimestamp(0, UTC)),
    }


def supervisor_state(supervisor: Supervisor) -> dict[str, Any]:
    """An element of ``/supervisor?state=true``."""
    return {
        "id": supervisor.pk,
        "state": supervisor.state,
        "detailedState": supervisor.detailed_state,
        "healthy": is_healthy(supervisor),
        "suspended": supervisor.suspended,
    }


def supervisor_spec(supervisor: Any) -> dict[str, Any]:
    """The current spec, as ``/supervisor/{id}`` shows it."""
    return {**_with_spec_inlined(supervisor.spec), "id": supervisor.pk, "suspended": supervisor.suspended}


def _with_spec_inlined(spec: dict[str, Any]) -> dict[str, Any]:
    """A stored spec with its three parts under ``spec`` and at the top level, as Druid's Overlord shows them."""
    shown = shown_spec(spec)
    return {**shown, **shown["spec"]}


def supervisor_full(supervisor: Any) -> dict[str, Any]:
    """An element of ``/supervisor?full``."""
    return {**supervisor_state(supervisor), "spec": supervisor_spec(supervisor)}


def supervisor_status(supervisor: Any, report: StatusReport) -> dict[str, Any]:
    """The status report. Fields that a share group does not have are null: its tasks have no end time."""
    io_config, duration = supervisor.io_config, report.task_duration
    reports = [_topic_report(r, f"{r.topic}:") for r in report.topics] or [_topic_report(report)]
    lags, ends = _merged(r["lag"] for r in reports), _merged(r["ends"] for r in reports)
    payload = {
        "dataSource": supervisor.datasource.name,
        "stream": io_config.reads,
        "partitions": report.partitions,
        "replicas": io_config.replicas,
        "durationSeconds": None if duration is None else int(duration.total_seconds()),
        "activeTasks": [line for r in reports for line in r["active"]],
        "publishingTasks": [line for r in reports for line in r["publishing"]],
        "latestOffsets": ends,
        "minimumLag": lags,
        "aggregateLag": report.lag.lag,
        "offsetsLastUpdated": instant(report.lag.observed_at),
        "suspended": supervisor.suspended,
        "healthy": is_healthy(supervisor),
        "state": supervisor.state,
        "detailedState": supervisor.detailed_state,
        "recentErrors": [_exception_event(e) for e in supervisor.recent_errors],
    }
    return {"id": supervisor.pk, "generationTime": instant(timezone.now()), "payload": payload}


def _topic_report(report: StatusReport, key: str = "") -> dict[str, Any]:
    """One topic's data by partition and task. ``key`` precedes the partition's number."""
    partitions = report.lag.partitions
    lags = _by_partition({p.partition: p.lag for p in partitions}, key)
    return {
        "lag": lags,
        "ends": _by_partition({p.partition: p.end_offset for p in partitions}, key),
        "active": [{**_task_line(t, key), "lag": lags} for t in report.tasks if not t.publishing],
        "publishing": [_task_line(t, key) for t in report.tasks if t.publishing],
    }


def _merged(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    return {name: value for part in parts for name, value in part.items()}


def _exception_event(error: Mapping[str, Any]) -> dict[str, Any]:
    """An error in Druid's format, with the id of the failed task if there is one."""
    at = error.get("at")
    event = {
        "timestamp": instant(datetime.fromisoformat(at)) if at else None,
        "exceptionClass": error.get("class", "TaskFailed"),
        "message": error.get("message", ""),
        "streamException": bool(error.get("stream")),
    }
    more = {"task": error.get("task"), "stackTrace": error.get("stack")}
    return event | {name: value for name, value in more.items() if value}


def supervisor_stats(stats: Sequence[TaskStats]) -> dict[str, Any]:
    """Row stats by task group (there is one) and task."""
    tasks = {
        running.task: {
            "movingAverages": {"buildSegments": {window: row_stats(r) for window, r in running.averages.items()}},
            "totals": {"buildSegments": row_stats(running.totals.model_dump())},
        }
        for running in stats
    }
    return {"0": tasks} if tasks else {}


def supervisor_history(
    supervisor: Supervisor, versions: Sequence[SpecVersion], switches: Sequence[Switch]
) -> list[dict[str, Any]]:
    """Spec versions with their times, newest first. A suspension or resumption has an entry with the unchanged spec.

    A termination is Druid's tombstone, a spec that does nothing.
    """
    specs = {v.version: _with_spec_inlined(v.spec) for v in versions}
    tombstone = {
        "type": "NoopSupervisorSpec",
        "id": supervisor.pk,
        "dataSources": [supervisor.datasource.name],
        "suspended": False,
    }
    entries = [
        *((v.created_at, specs[v.version]) for v in versions),
        *((s.at, {**specs[s.version], "suspended": s.suspended}) for s in switches),
        *((datetime.fromisoformat(t["at"]), tombstone) for t in supervisor.terminations),
    ]
    return [{"spec": spec, "version": instant(at)} for at, spec in sorted(entries, key=lambda e: e[0], reverse=True)]


def partition_offsets(body: Any) -> tuple[str, dict[int, int]]:
    """Topic and offsets of Druid's reset request. Raises ``InvalidInput``."""
    partitions = body.get("partitions") if isinstance(body, Mapping) else None
    named = partitions if isinstance(partitions, Mapping) else {}
    topic, offsets = named.get("stream", named.get("topic")), named.get("partitionOffsetMap")
    try:
        if isinstance(topic, str) and isinstance(offsets, Mapping):
            return topic, {int(p): _require_int(o) for p, o in offsets.items()}
    except ValueError:
        pass
    raise InvalidInput(
        "The body is not a reset of offsets.",
        [
            FieldError(
                "/partitions",
                'must be like {"type": "end", "stream": "topic", "partitionOffsetMap": {"0": 100}}',
                "partitions",
            )
        ],
    )


def check_task_groups(body: Any) -> None:
    """Checks that Druid's request for an early handoff names only group 0, the only one. Raises ``InvalidInput``."""
    groups = body.get("taskGroupIds") if isinstance(body, Mapping) else None
    try:
        if isinstance(groups, list) and groups and {_require_int(g) for g in groups} == {0}:
            return
    except ValueError:
        pass
    message = 'must be like {"taskGroupIds": [0]}: a supervisor\'s tasks are one group, 0'
    raise InvalidInput("Unknown task group. The only one is 0.", [FieldError("/taskGroupIds", message, "taskGroupIds")])


def _require_int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(value)
    return value


def _by_partition(values: Mapping[int, int | None], key: str = "") -> dict[str, int]:
    return {f"{key}{partition}": value for partition, value in values.items() if value is not None}


def _task_line(progress: TaskProgress, key: str = "") -> dict[str, Any]:
    return {
        "id": progress.task.pk,
        "startingOffsets": _by_partition(progress.starting, key),
        "startTime": instant(progress.task.started_at),
        "remainingSeconds": progress.remaining_s,
        "type": "PUBLISHING" if progress.publishing else "ACTIVE",
        "currentOffsets": _by_partition(progress.current, key),
    }


def _type(task: Task) -> str:
    """Druid's name of the type. Types that Druid does not have keep their own names."""
    reads_topic = task.reads or task.is_bounded
    return str(task.spec.get("type", task.kind)) if reads_topic else Task.Kind(task.kind).druid_type


def _runner_status(task: Task) -> str:
    if task.ended:
        return "NONE"
    if task.status == Status.RUNNING:
        return "RUNNING" if task.without_slot_since is None else "PENDING"
    return "WAITING" if task.launched_at is None else "PENDING"


def _duration_ms(task: Task) -> int:
    if task.ended_at is None:
        return -1
    return int((task.ended_at - (task.started_at or task.created_at)).total_seconds() * 1000)


def _ingestion_state(task: Task) -> str:
    if task.status == Status.PENDING:
        return "NOT_STARTED"
    return "COMPLETED" if task.ended else "BUILD_SEGMENTS"


def unparseable_event(record: Any) -> dict[str, Any]:
    """Druid's report of a record that could not be read, or only in part."""
    payload = bytes(record.payload_start or b"").decode("utf-8", "replace")
    return {
        "timeOfExceptionMillis": int(record.created_at.timestamp() * 1000),
        "input": payload,
        "errorType": "processedWithError" if record.reason == "processed_with_error" else record.reason,
        "details": [record.error],
        "partition": record.partition,
        "offset": record.offset,
    }


def _unread_event(task: Task, record: dict[str, Any]) -> dict[str, Any]:
    """The report of a record of a file, which has no offset."""
    ended = task.ended_at or task.created_at
    return {
        "timeOfExceptionMillis": int(ended.timestamp() * 1000),
        "input": record["start"],
        "errorType": "processedWithError" if record["stored"] else "unparseable",
        "details": [record["error"]],
        "place": record["place"],
    }
