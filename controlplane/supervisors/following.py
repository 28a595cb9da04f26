"""The supervisors that read topics for one whose spec has a ``topicPattern``: made, kept to its spec, ended.

They are to it what tasks are to any supervisor: a round observes, decides (``topics``) and applies. Each has the spec
with its one topic, writes into the datasource, and is otherwise as one that somebody submitted. What is done to the
pattern's supervisor is seen by its next round, had at once, and by theirs two seconds later.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.conf import settings
from django.utils import timezone

from controlplane.common.changes import Change, tell
from controlplane.common.errors import Conflict
from controlplane.datasources.groups import claim_group
from controlplane.sources.lookup import OF_TOPIC
from controlplane.supervisors import streams
from controlplane.supervisors.decide import Thresholds
from controlplane.supervisors.models import SpecVersion, Supervisor, Switch
from controlplane.supervisors.topics import SeenChild, SeenTopics, TopicsDecision, decide_topics, matching, may_begin
from controlplane.tasks.lifecycle import set_goal
from controlplane.tasks.models import Goal, Task
from ingestion.specs.tasks.stored import but_for_scaling, of_topic

LONGEST_ID = 200
LONGEST_PARENT = 160  # so that the name of a topic, or what stands for it, fits behind it


def child_id(parent_id: str, topic: str) -> str:
    """Of the supervisor that reads a topic for another. Nobody can submit it: an id that is given has no ``:``."""
    plain = f"{parent_id}{OF_TOPIC}{topic}"
    if len(plain) <= LONGEST_ID:
        return plain
    return f"{plain[: LONGEST_ID - 17]}~{hashlib.sha256(topic.encode()).hexdigest()[:16]}"


def run_topics(supervisor: Supervisor, answer: streams.TopicAnswer | None, thresholds: Thresholds) -> None:
    """One round of a supervisor with a pattern, whose row is locked and saved by the caller."""
    now = timezone.now()
    matched = None
    if answer is not None and answer.topics is not None and answer.version == supervisor.version:
        matched = answer.topics
        supervisor.topics_matched = len(matched)
    children = {c.io_config.topic: c for c in supervisor.children.order_by("pk").with_current()}
    own = Task.objects.active().reading().filter(supervisor_id=supervisor.pk)
    for task in own.filter(goal=Goal.RUN):
        set_goal(task, Goal.FINISH)
    seen = _seen(supervisor, children, matched, own.count(), thresholds)
    decision = decide_topics(seen)
    late = supervisor.pattern_asked == supervisor.io_config.topicPattern
    _apply(supervisor, decision, children, late)
    if matched is not None and may_begin(seen):
        supervisor.pattern_asked = supervisor.io_config.topicPattern or ""
    if (supervisor.state, supervisor.detailed_state) != (decision.state, decision.detailed_state):
        whose = supervisor.datasource
        tell(Change(team=whose.team_id, datasource=whose.name, supervisor=supervisor.pk, urgent=True))
    supervisor.state, supervisor.detailed_state = decision.state, decision.detailed_state
    supervisor.steady |= decision.detailed_state == "RUNNING"
    supervisor.recent_errors = supervisor.run_errors
    supervisor.next_start_at, supervisor.failures = None, 0
    supervisor.ran_at = now


def let_go(supervisor: Supervisor) -> bool:
    """End what read topics for one whose spec had a pattern and names a topic now; whether all of it has ended.

    The supervisor's row is locked and saved by the caller.
    """
    children = list(supervisor.children.exclude(detailed_state="TERMINATED"))
    for child in children:
        if child.terminated_at is None:
            _end(_locked(child), supervisor)
    if not children:
        supervisor.pattern_asked, supervisor.topics_matched = "", None
    return not children


def _seen(
    supervisor: Supervisor,
    children: dict[str, Supervisor],
    matched: list[str] | None,
    own_tasks: int,
    thresholds: Thresholds,
) -> SeenTopics:
    matches = set(matching(supervisor.io_config.topicPattern or "", children))
    return SeenTopics(
        version=supervisor.version,
        suspended=supervisor.suspended,
        terminated=supervisor.terminated_at is not None,
        children=[
            SeenChild(
                topic=topic,
                state=child.state,
                detailed_state=child.detailed_state,
                follows=child.follows or 0,
                suspended=child.suspended,
                terminated=child.terminated_at is not None,
                matches=topic in matches,
            )
            for topic, child in children.items()
        ],
        matched=matched,
        own_tasks=own_tasks,
        most=settings.TOPICS_PER_SUPERVISOR,
        known_to_match=supervisor.topics_matched,
        runs=streams.runs_of(supervisor),
        thresholds=thresholds,
        before=(supervisor.state, supervisor.detailed_state),
    )


def _apply(supervisor: Supervisor, decision: TopicsDecision, children: dict[str, Supervisor], late: bool) -> None:
    """Rounds over all take up what is changed here, within two seconds."""
    for topic in decision.end:
        _end(_locked(children[topic]), supervisor)
    for topic in decision.follow:
        _follow(_locked(children[topic]), supervisor)
    for topic in decision.begin:
        known = children.get(topic)
        try:
            _begin(supervisor, topic, None if known is None else _locked(known), late)
        except Conflict as problem:  # its group is another team's; the other topics are read
            streams.count_failure(supervisor, problem)


def _locked(child: Supervisor) -> Supervisor:
    """Whoever else has it, has it for a moment: rounds, and what people may do to it alone."""
    return Supervisor.objects.select_for_update().get(pk=child.pk)


def _begin(parent: Supervisor, topic: str, known: Supervisor | None, late: bool) -> None:
    """``late``: the topic was not there, or did not match, when Kafka was asked before: all of it is to be read."""
    identifier = child_id(parent.pk, topic)
    claim_group(parent.datasource.team, parent.io_config.group, identifier)
    missed = topic if late else ""
    if known is not None:
        known.begin()
        known.terminated_at = None
        known.suspended = parent.suspended
        known.topic_missed = missed
        _take_up(known, parent)
        known.save()
        return
    child = Supervisor.objects.create(
        id=identifier,
        datasource=parent.datasource,
        parent=parent,
        follows=parent.version,
        suspended=parent.suspended,
        topic_missed=missed,
    )
    _write(child, parent, of_topic(parent.current.spec, topic))


def _follow(child: Supervisor, parent: Supervisor) -> None:
    """Take up the spec, and whether it is suspended."""
    _take_up(child, parent)
    if child.suspended != parent.suspended:
        if child.suspended:
            child.begin()
            child.scaling_since = timezone.now()
        child.suspended = parent.suspended
        Switch.objects.create(supervisor=child, suspended=child.suspended, version=child.version)
    child.calm_until = None
    child.save()


def _take_up(child: Supervisor, parent: Supervisor) -> None:
    if child.follows == parent.version:
        return
    child.follows = parent.version
    before, wanted = child.current, of_topic(parent.current.spec, child.io_config.topic)
    if (before.spec, before.secrets) == (wanted, parent.current.secrets):
        return
    scaled = (but_for_scaling(before.spec), before.secrets) == (but_for_scaling(wanted), parent.current.secrets)
    child.version += 1
    _write(child, parent, wanted)
    if scaled:  # its task goes on, with more or fewer indexers
        return
    if child.io_config.auto_scaler is None:
        child.decided_task_count = None
    child.scaling_since = timezone.now()
    child.begin()


def _write(child: Supervisor, parent: Supervisor, spec: dict[str, Any]) -> None:
    SpecVersion.objects.create(
        supervisor=child,
        version=child.version,
        spec=spec,
        secrets=parent.current.secrets,
        created_by=parent.current.created_by,
    )


def _end(child: Supervisor, parent: Supervisor) -> None:
    now = child.terminated_at = timezone.now()
    by = parent.terminations[-1]["by"] if parent.terminated_at is not None and parent.terminations else parent.pk
    child.terminations = [*child.terminations, {"at": now.isoformat(), "by": by}]
    child.save(update_fields=["terminated_at", "terminations"])
