"""What happened to a supervisor in a stretch of time: changes of its spec, starts and ends of tasks, scale actions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.db.models import Q

from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Status, Task

MAX_PER_KIND = 60
MAX_RUNS = 40
Kind = Literal["spec", "restart", "failure", "scale"]


@dataclass(frozen=True)
class Annotation:
    """One thing that happened."""

    at: datetime
    kind: Kind
    text: str
    target: str = ""  # the version of a spec, or a task's id; empty for a scale action


def list_annotations(supervisor: Supervisor, start: datetime, end: datetime) -> list[Annotation]:
    """In the order of time; of each kind the newest."""
    annotations = [*_specs(supervisor, start, end), *_tasks(supervisor, start, end), *_actions(supervisor, start, end)]
    return sorted(annotations, key=lambda annotation: annotation.at)


def runs(supervisor: Supervisor, start: datetime, end: datetime) -> list[Task]:
    """Its tasks that ran, or waited to, between the two; the newest first."""
    tasks = Task.objects.ingesting().filter(supervisor_id=supervisor.pk, created_at__lt=end)
    within = tasks.filter(Q(ended_at__isnull=True) | Q(ended_at__gte=start))
    return list(within.order_by("-created_at", "-id").defer("spec")[:MAX_RUNS])


def _specs(supervisor: Supervisor, start: datetime, end: datetime) -> list[Annotation]:
    versions = supervisor.versions.filter(created_at__gte=start, created_at__lt=end).select_related("created_by")
    newest = versions.defer("spec", "secrets").order_by("-version")[:MAX_PER_KIND]
    return [Annotation(v.created_at, "spec", _version_text(v.version, v.created_by), str(v.version)) for v in newest]


def _version_text(version: int, by: object) -> str:
    return f"Spec version {version}" + (f" by {by}" if by else "")


def _tasks(supervisor: Supervisor, start: datetime, end: datetime) -> list[Annotation]:
    tasks = Task.objects.ingesting().filter(supervisor_id=supervisor.pk).only("id", "started_at", "ended_at", "status")
    started = tasks.filter(started_at__gte=start, started_at__lt=end).order_by("-started_at")[:MAX_PER_KIND]
    failed = tasks.filter(status=Status.FAILED, ended_at__gte=start, ended_at__lt=end).order_by("-ended_at")
    return [
        *(Annotation(t.started_at, "restart", "A task started", t.pk) for t in started if t.started_at),
        *(Annotation(t.ended_at, "failure", "A task failed", t.pk) for t in failed[:MAX_PER_KIND] if t.ended_at),
    ]


def _actions(supervisor: Supervisor, start: datetime, end: datetime) -> list[Annotation]:
    actions = supervisor.scale_actions.filter(at__gte=start, at__lt=end)[:MAX_PER_KIND]
    return [Annotation(a.at, "scale", f"The autoscaler went from {a.before} to {a.after} indexers") for a in actions]
