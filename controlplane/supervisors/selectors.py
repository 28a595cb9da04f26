"""Reads of supervisors and their spec versions."""

from __future__ import annotations

from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from controlplane.common.errors import NotFound
from controlplane.common.health import Code, Health, codes_of
from controlplane.common.text import storable
from controlplane.datasources.selectors import prefix_matches_first
from controlplane.publishing.models import IndexerFence
from controlplane.publishing.selectors.totals import Totals, totals_of
from controlplane.supervisors.health_rules import STALE
from controlplane.supervisors.models import SpecVersion, Supervisor, Switch
from controlplane.supervisors.states import STATE, Detail
from controlplane.tasks import selectors as tasks
from controlplane.tasks.models import Goal, Status, Task
from controlplane.teams.models import User


def list_supervisors(
    user: User, search: str = "", state: str = "", *, team: str = "", terminated: bool = False
) -> QuerySet[Supervisor]:
    """The user's supervisors that are not terminated, or those that are, by id; ``search`` in ids and topics.

    Adds team_name, current_task_id (None when no task runs) and spec (the current version's JSON). ``druid_state``
    can be sorted by.
    """
    if not storable(search) or not storable(state):
        return Supervisor.objects.none()
    supervisors = _with_details(
        Supervisor.objects.visible_to(user).shown_to(user).filter(terminated_at__isnull=not terminated)
    ).alias(druid_state=STATE)
    if search:
        reads = Q(spec__spec__ioConfig__topic__icontains=search) | Q(
            spec__spec__ioConfig__topicPattern__icontains=search
        )
        supervisors = supervisors.filter(Q(id__icontains=search) | reads)
    if team:
        supervisors = supervisors.filter(datasource__team__name=team)
    return supervisors.filter(druid_state=state) if state else supervisors


def get_supervisor(user: User, supervisor_id: str) -> Supervisor:
    """One of the user's supervisors, a terminated one too, with what ``list_supervisors`` adds. Raises ``NotFound``."""
    visible = _with_details(Supervisor.objects.visible_to(user).shown_to(user))
    supervisor = visible.filter(pk=supervisor_id).first() if storable(supervisor_id) else None
    if supervisor is None:
        raise NotFound(f"There is no supervisor {supervisor_id!r}.")
    return supervisor


def supervisors_named(user: User, text: str, *, team: str = "", most: int = 20) -> list[Supervisor]:
    """Those that are not terminated and have the text in their ids, those that begin with it first."""
    if not storable(text):
        return []
    supervisors = Supervisor.objects.visible_to(user).filter(terminated_at__isnull=True, id__icontains=text)
    if team:
        supervisors = supervisors.filter(datasource__team__name=team)
    return list(prefix_matches_first(supervisors.select_related("datasource__team"), "id", text)[:most])


def is_healthy(supervisor: Supervisor) -> bool:
    """Druid's ``healthy``: false while it or its tasks fail, and while nobody runs it."""
    rests = supervisor.suspended or supervisor.detailed_state == Detail.COMPLETED
    ran_at = None if rests else supervisor.last_run_at
    return supervisor.state.is_healthy and (ran_at is None or timezone.now() - ran_at <= STALE)


def current_tasks(supervisor: Supervisor) -> list[Task]:
    """Its tasks that have not ended, repairs aside, newest first: replicas, and those that hand over to the next.

    Of one with a pattern, those of its topics.
    """
    running = Task.objects.active().ingesting().filter(_task_filter(supervisor))
    current = list(running.select_related("datasource__team"))
    for task in current if supervisor.concealed_for else ():
        task.conceal(supervisor.concealed_for)
    return current


def _task_filter(supervisor: Supervisor) -> Q:
    """What its tasks, or those that read its topics for it, have in common."""
    if supervisor.io_config.topicPattern is None:
        return Q(supervisor_id=supervisor.pk)
    return Q(supervisor_id__in=[supervisor.pk, *supervisor.children.values_list("pk", flat=True)])


def visible_children(user: User, supervisor: Supervisor) -> list[Supervisor]:
    """The supervisors that read topics of its pattern for it and are not terminated, by topic; as lists have them."""
    if supervisor.io_config.topicPattern is None:
        return []
    return list(list_supervisors(user).filter(parent=supervisor))


def versions(supervisor: Supervisor) -> QuerySet[SpecVersion]:
    """Its spec versions, newest first, with who made them."""
    return supervisor.versions.select_related("created_by").order_by("-version")


def switches(supervisor: Supervisor) -> QuerySet[Switch]:
    """When it was suspended and resumed, newest first."""
    return supervisor.switches.order_by("-id")


def supervisor_totals(supervisor: Supervisor) -> Totals:
    """What became of all records of all its tasks, repairs and replays included."""
    task_ids = Task.objects.filter(_task_filter(supervisor)).values("pk")
    return totals_of(IndexerFence.objects.filter(task_id__in=task_ids)).once


# What its tasks, if it has any, explain better.
_OF_TASKS = {Code.STARTING, Code.IDLE, Code.WAITING_FOR_SLOT, Code.NOT_OBSERVED}


def why_nothing(supervisor: Supervisor, health: Health) -> list[Health]:
    """Why nothing new arrives: a spec that does not start; and its health, or what its current task says instead."""
    if supervisor.suspended or supervisor.terminated_at is not None:
        return [health]
    current = [] if supervisor.io_config.topicPattern is not None else current_tasks(supervisor)
    tasks_say = health.code not in codes_of("task") or (current and health.code in _OF_TASKS)
    return [*_not_started(supervisor, current), *(_task_reasons(current) if tasks_say else [health])]


def _task_reasons(current: list[Task]) -> list[Health]:
    """One replica that publishes is enough; one that has no room says more than another that only starts."""
    replicas = [t for t in current if t == current[0] or t.replica_group == current[0].replica_group != ""]
    reasons = [tasks.why_nothing(t) for t in replicas]
    if not all(reasons):
        return []
    return next((r for r in reasons if r[0].code == Code.WAITING_FOR_SLOT), reasons[0] if reasons else [])


def _not_started(supervisor: Supervisor, current: list[Task]) -> list[Health]:
    """A new version of its spec that has published nothing, and fails: which one is in force, then."""
    own_tasks = Task.objects.ingesting().filter(supervisor_id=supervisor.pk)
    failed = own_tasks.filter(spec_version=supervisor.version, status=Status.FAILED).count()
    published = own_tasks.filter(pk__in=IndexerFence.objects.filter(publishes__gt=0).values("task_id"))
    run_error = supervisor.current_error if supervisor.in_force not in (None, supervisor.version) else {}
    if not (failed or run_error) or published.filter(spec_version=supervisor.version).exists():
        return []
    why = f"{failed} of its tasks failed, and none published." if failed else run_error["message"]
    cause = f"Version {supervisor.version} of the spec does not start: {why}"
    older = [t for t in current if t.goal == Goal.RUN and (t.spec_version or 0) < supervisor.version]
    if older:
        reads = any(i.state == "reading" for t in older for i in t.indexers.all())
        effect = "continues to read" if reads else "restarts and continues to read"
        cause += f" The task of version {older[0].spec_version} {effect}."
        return [Health.of(Code.VERSION_NOT_STARTED, cause, "Correct the spec, or submit the earlier version again.")]
    last = published.filter(spec_version__lt=supervisor.version).order_by("-created_at").first()
    if last is None or not failed:
        return []
    cause += f" Version {last.spec_version} was the last that published."
    return [Health.of(Code.VERSION_NOT_STARTED, cause, "To go back to it, submit it again.")]


def _with_details(supervisors: QuerySet[Supervisor]) -> QuerySet[Supervisor]:
    running = Task.objects.active().ingesting().filter(supervisor_id=OuterRef("pk"))
    current = SpecVersion.objects.filter(supervisor_id=OuterRef("pk"), version=OuterRef("version"))
    return (
        supervisors.select_related("datasource__team")
        .annotate(
            team_name=F("datasource__team__name"),
            current_task_id=Subquery(running.order_by("-created_at", "-id").values("pk")[:1]),
            spec=Subquery(current.values("spec")[:1]),
        )
        .order_by("id")
    )
