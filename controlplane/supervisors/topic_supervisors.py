"""The supervisors that read topics for one whose spec has a ``topicPattern``: made, kept to its spec, ended.

They are to it what tasks are to any supervisor: a round observes, decides (``decide_topics``) and applies. Each has the
spec with its one topic, writes into the datasource, and is otherwise as one that somebody submitted. What is done to
the pattern's supervisor is seen by its next round, had at once, and by theirs two seconds later.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.conf import settings
from django.utils import timezone

from controlplane.common.changes import Change, notify_pages
from controlplane.common.errors import Conflict
from controlplane.datasources.groups import claim_group
from controlplane.sources.spec_sources import TOPIC_SEPARATOR
from controlplane.supervisors import topic_checks
from controlplane.supervisors.decide import Thresholds
from controlplane.supervisors.decide_topics import (
    ChildSnapshot,
    TopicsDecision,
    TopicsObservation,
    decide_topics,
    matching,
    may_begin,
)
from controlplane.supervisors.models import SpecVersion, Supervisor, Switch
from controlplane.supervisors.states import Detail
from controlplane.tasks.lifecycle import set_goal
from controlplane.tasks.models import Goal, Task
from ingestion.specs.tasks.stored_specs import for_topic, without_scaling

LONGEST_ID = 200
LONGEST_PARENT_ID = 160  # so that the name of a topic, or what stands for it, fits behind it


def child_id(parent_id: str, topic: str) -> str:
    """Of the supervisor that reads a topic for another. Nobody can submit it: an id that is given has no ``:``."""
    full_id = f"{parent_id}{TOPIC_SEPARATOR}{topic}"
    if len(full_id) <= LONGEST_ID:
        return full_id
    return f"{full_id[: LONGEST_ID - 17]}~{hashlib.sha256(topic.encode()).hexdigest()[:16]}"


def run_topics(supervisor: Supervisor, answer: topic_checks.TopicAnswer | None, thresholds: Thresholds) -> None:
    """One round of a supervisor with a pattern, whose row is locked and saved by the caller."""
    now = timezone.now()
    matched = None
    if answer is not None and answer.topics is not None and answer.version == supervisor.version:
        matched = answer.topics
        supervisor.topics_matched = len(matched)
    children = {c.io_config.topic: c for c in supervisor.children.order_by("pk").with_current()}
    own_tasks = Task.objects.active().reading().filter(supervisor_id=supervisor.pk)
    for task in own_tasks.filter(goal=Goal.RUN):
        set_goal(task, Goal.FINISH)
    observed = _observe(supervisor, children, matched, own_tasks.count(), thresholds)
    decision = decide_topics(observed)
    topic_is_new = supervisor.pattern_asked == supervisor.io_config.topicPattern
    _apply(supervisor, decision, children, topic_is_new)
    if matched is not None and may_begin(observed):
        supervisor.pattern_asked = supervisor.io_config.topicPattern or ""
    if supervisor.detailed_state != decision.detailed_state:
        datasource = supervisor.datasource
        notify_pages(Change(team=datasource.team_id, datasource=datasource.name, supervisor=supervisor.pk, urgent=True))
    supervisor.detailed_state = decision.detailed_state
    supervisor.steady |= decision.detailed_state == Detail.RUNNING
    supervisor.recent_errors = supervisor.run_errors
    supervisor.next_start_at, supervisor.failures = None, 0
    supervisor.ran_at = now


def end_children(supervisor: Supervisor) -> bool:
    """End what read topics for one whose spec had a pattern and names a topic now; whether all of it has ended.

    The supervisor's row is locked and saved by the caller.
    """
    children = list(supervisor.children.exclude(detailed_state=Detail.TERMINATED))
    for child in children:
        if child.terminated_at is None:
            _terminate_child(_lock(child), supervisor)
    if not children:
        supervisor.pattern_asked, supervisor.topics_matched = "", None
    return not children


def _observe(
    supervisor: Supervisor,
    children: dict[str, Supervisor],
    matched: list[str] | None,
    own_tasks: int,
    thresholds: Thresholds,
) -> TopicsObservation:
    matches = set(matching(supervisor.io_config.topicPattern or "", children))
    return TopicsObservation(
        version=supervisor.version,
        suspended=supervisor.suspended,
        terminated=supervisor.terminated_at is not None,
        children=[
            ChildSnapshot(
                topic=topic,
                detailed_state=child.detail,
                pattern_version=child.follows or 0,
                suspended=child.suspended,
                terminated=child.terminated_at is not None,
                matches=topic in matches,
            )
            for topic, child in children.items()
        ],
        matched=matched,
        own_tasks=own_tasks,
        max_topics=settings.TOPICS_PER_SUPERVISOR,
        last_match_count=supervisor.topics_matched,
        runs=topic_checks.runs_of(supervisor),
        thresholds=thresholds,
        previous=supervisor.detail,
    )


def _apply(
    supervisor: Supervisor, decision: TopicsDecision, children: dict[str, Supervisor], topic_is_new: bool
) -> None:
    """Rounds over all take up what is changed here, within two seconds."""
    for topic in decision.end:
        _terminate_child(_lock(children[topic]), supervisor)
    for topic in decision.to_update:
        _update_child(_lock(children[topic]), supervisor)
    for topic in decision.begin:
        existing = children.get(topic)
        try:
            _start_child(supervisor, topic, None if existing is None else _lock(existing), topic_is_new)
        except Conflict as problem:  # its group is another team's; the other topics are read
            topic_checks.count_failure(supervisor, problem)


def _lock(child: Supervisor) -> Supervisor:
    """Whoever else has it, has it for a moment: rounds, and what people may do to it alone."""
    return Supervisor.objects.select_for_update().get(pk=child.pk)


def _start_child(parent: Supervisor, topic: str, existing: Supervisor | None, topic_is_new: bool) -> None:
    """``topic_is_new``: the topic was not there, or did not match, when Kafka was asked before: read all of it."""
    identifier = child_id(parent.pk, topic)
    claim_group(parent.datasource.team, parent.io_config.group, identifier)
    missed = topic if topic_is_new else ""
    if existing is not None:
        existing.begin()
        existing.terminated_at = None
        existing.suspended = parent.suspended
        existing.topic_missed = missed
        _adopt_spec(existing, parent)
        existing.save()
        return
    child = Supervisor.objects.create(
        id=identifier,
        datasource=parent.datasource,
        parent=parent,
        follows=parent.version,
        suspended=parent.suspended,
        topic_missed=missed,
    )
    _add_version(child, parent, for_topic(parent.current.spec, topic))


def _update_child(child: Supervisor, parent: Supervisor) -> None:
    """Take up the spec, and whether it is suspended."""
    _adopt_spec(child, parent)
    if child.suspended != parent.suspended:
        if child.suspended:
            child.begin()
            child.scaling_since = timezone.now()
        child.suspended = parent.suspended
        Switch.objects.create(supervisor=child, suspended=child.suspended, version=child.version)
    child.calm_until = None
    child.save()


def _adopt_spec(child: Supervisor, parent: Supervisor) -> None:
    if child.follows == parent.version:
        return
    child.follows = parent.version
    previous, spec = child.current, for_topic(parent.current.spec, child.io_config.topic)
    if (previous.spec, previous.secrets) == (spec, parent.current.secrets):
        return
    only_scaled = (without_scaling(previous.spec), previous.secrets) == (without_scaling(spec), parent.current.secrets)
    child.version += 1
    _add_version(child, parent, spec)
    if only_scaled:  # its task goes on, with more or fewer indexers
        return
    if child.io_config.auto_scaler is None:
        child.decided_task_count = None
    child.scaling_since = timezone.now()
    child.begin()


def _add_version(child: Supervisor, parent: Supervisor, spec: dict[str, Any]) -> None:
    SpecVersion.objects.create(
        supervisor=child,
        version=child.version,
        spec=spec,
        secrets=parent.current.secrets,
        created_by=parent.current.created_by,
    )


def _terminate_child(child: Supervisor, parent: Supervisor) -> None:
    now = child.terminated_at = timezone.now()
    actor = parent.terminations[-1]["by"] if parent.terminated_at is not None and parent.terminations else parent.pk
    child.terminations = [*child.terminations, {"at": now.isoformat(), "by": actor}]
    child.save(update_fields=["terminated_at", "terminations"])
    end_backfills(child)


def end_backfills(supervisor: Supervisor) -> None:
    """Those of a supervisor that was terminated, whose row is locked: what they leave can be filled later."""
    for backfill in supervisor.backfills.select_for_update().filter(terminated_at=None).order_by("pk"):
        _terminate_child(backfill, supervisor)
