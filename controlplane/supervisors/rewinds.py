"""Rewinds: stored records are read again with a spec, and what they give now replaces the segments that they were in.

A rewind is planned while its supervisor is locked, one at a time of a source. ``rewind_rounds`` has its parts read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from controlplane.common.errors import Conflict, InvalidInput, NotFound, Unavailable
from controlplane.connections import kafka
from controlplane.datasources.models import Datasource
from controlplane.publishing import rewinds
from controlplane.publishing.models import Publish, Rewind, RewindPart
from controlplane.publishing.rewind_plan import (
    Group,
    Log,
    Loose,
    PartPlan,
    RangesOf,
    Readers,
    Span,
    parts_of,
    with_versions,
    within_log,
)
from controlplane.publishing.rewind_selection import Choice, chosen_records, ended_before, select
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import source_key, sources_of
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.offset_reset import topic_question
from controlplane.supervisors.rewind_rounds import by_partition, part_fields, quarantined, task_spec_of, versions_of
from controlplane.supervisors.services import record_action
from controlplane.tasks.lifecycle import set_goal
from controlplane.tasks.models import Goal, Task
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs import offsets
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec

State = RewindPart.State
LISTED = 100
READ_WITH, OWN = "read_with", "own"


@dataclass(frozen=True)
class Asked:
    """Which records, and how: of what is given in the first four all must hold. ``times`` stands alone."""

    spec_version: int | None = None  # which read them
    of_rewind: int | None = None  # which read them again
    published: Span | None = None
    offsets: Mapping[int, list[offsets.Range]] | None = None
    times: Span | None = None  # of rows
    read_with: int | None = None  # a spec version; None: the present one
    # With what the other records of the same segments are read: "read_with", or "own", what had stored them.
    others: str = READ_WITH
    only_possible: bool = False  # leave out what can't be recomputed
    dry_run: bool = False  # read all, and replace nothing

    def described(self) -> dict[str, Any]:
        """What is kept of it."""

        def shown(span: Span | None) -> list[str] | None:
            return None if span is None else [time.isoformat() for time in span]

        ranges = {str(p): [list(r) for r in some] for p, some in (self.offsets or {}).items()}
        values = {
            "spec_version": self.spec_version,
            "of_rewind": self.of_rewind,
            "published": shown(self.published),
            "offsets": ranges or None,
            "times": shown(self.times),
            "only_possible": self.only_possible or None,
            "others": None if self.others == READ_WITH else self.others,
        }
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class RewindPlan:
    """What a rewind would do: its parts, and what can't be recomputed."""

    supervisor: Supervisor
    source: Source
    version: SpecVersion
    parts: list[PartPlan]
    refused: list[Group] = field(default_factory=list)
    rewind_id: int | None = None  # None in a preview

    @property
    def records(self) -> int:
        return sum(part.records for part in self.parts)


def start_rewind(*, user: User, supervisor: Supervisor, asked: Asked) -> RewindPlan:
    """Begin a rewind. Asks Kafka.

    Raises ``NotAllowed``, ``InvalidInput``, ``Unavailable``, and ``Conflict`` where something can't be recomputed,
    unless only what is possible was asked for; where nothing is left to do; while another one is at work; and of a
    deleted datasource.
    """
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    _version(supervisor, _source(supervisor), asked.read_with)
    log = _log(supervisor)
    with transaction.atomic():
        # Locked: who deletes the datasource sees this rewind, or is seen here.
        _check_exists(Datasource.objects.select_for_update(of=("self",), no_key=True).get(pk=supervisor.datasource_id))
        _lock(supervisor)
        plan = _plan(supervisor, asked, log)
        _check_none_waits(plan.source, supervisor.pk)
        if plan.refused and not asked.only_possible:
            reasons = dict.fromkeys(group.refusal for group in plan.refused)
            raise Conflict(
                f"{sum(len(g.used) for g in plan.refused)} segments can't be recomputed: {' '.join([*reasons][:5])} "
                "Choose only what is possible to leave them as they are."
            )
        if not plan.parts:
            raise Conflict("No segment in use has rows of these records, so there is nothing to read again.")
        return replace(plan, rewind_id=_create(user, plan, asked).pk)


def preview_rewind(*, user: User, supervisor: Supervisor, asked: Asked) -> RewindPlan:
    """What ``start_rewind`` would do, and what it would refuse. Changes nothing; raises likewise."""
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    _check_exists(supervisor.datasource)
    _version(supervisor, _source(supervisor), asked.read_with)
    return _plan(supervisor, asked, _log(supervisor))


def undo_rewind(*, user: User, rewind: Rewind) -> int:
    """Swap back all parts that are done, the newest first; how many those were.

    Raises ``Conflict`` with the reason for the first that can't be: those before it are undone.
    """
    require(user, Action.ADMINISTER, rewind.datasource.team)
    done = list(rewind.parts.filter(state=State.DONE).order_by("-ended_at", "-number"))
    if not done:
        raise Conflict("No part of this rewind is done, so there is nothing to undo.")
    supervisor = Supervisor.objects.get(pk=rewind.supervisor_id)
    undone = 0
    try:
        for part in done:
            with transaction.atomic():
                _lock(supervisor)
                _check_none_waits(rewind.source, supervisor.pk)
                rewinds.undo_part(part.pk, str(user))
            undone += 1
    finally:
        if undone:
            record_action(user, supervisor, "undo_rewind", rewind=rewind.pk, parts=undone)
    return undone


def cancel_rewind(*, user: User, rewind: Rewind) -> int:
    """Leave the parts that wait as they are; how many those were. What is done stays."""
    require(user, Action.ADMINISTER, rewind.datasource.team)
    waiting = rewind.parts.filter(state=State.WAITING)
    tasks = list(waiting.exclude(task_id="").values_list("task_id", flat=True))
    cancelled = waiting.update(state=State.CANCELLED, ended_at=timezone.now())
    if not cancelled:
        raise Conflict("No part of this rewind waits, so there is nothing to cancel.")
    for task in Task.objects.active().filter(pk__in=tasks):
        set_goal(task, Goal.STOP)
    supervisor = Supervisor.objects.get(pk=rewind.supervisor_id)
    record_action(user, supervisor, "cancel_rewind", rewind=rewind.pk, parts=cancelled)
    return cancelled


def get_rewind(user: User, supervisor: Supervisor, number: int) -> Rewind:
    """One of the supervisor's, to be changed. Raises ``NotAllowed``, ``NotFound``."""
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    rewind = Rewind.objects.filter(supervisor_id=supervisor.pk, pk=number).select_related("datasource__team").first()
    if rewind is None:
        raise NotFound(f"Supervisor {supervisor.pk} has no rewind {number}.")
    return rewind


def version_before(rewind: Rewind) -> int | None:
    """The spec version that had stored the first record of a rewind, of the parts that are done."""
    part = rewind.parts.filter(state=State.DONE).first()
    if part is None or not part.ranges or part.ended_at is None:
        return None
    partition, start, _ = part.ranges[0]
    task = ended_before(rewind.source, partition, start, part.ended_at)
    versions = Task.objects.filter(pk=task, supervisor_id=rewind.supervisor_id).values_list("spec_version", flat=True)
    return versions.first()


def rewinds_of(supervisor: Supervisor) -> QuerySet[Rewind]:
    """The newest first."""
    return Rewind.objects.filter(supervisor_id=supervisor.pk).order_by("-pk").prefetch_related("parts")


def _lock(supervisor: Supervisor) -> None:
    """Who plans or undoes a rewind of it waits: records without a row must not be read by two."""
    Supervisor.objects.select_for_update(of=("self",), no_key=True).get(pk=supervisor.pk)


def _log(supervisor: Supervisor) -> kafka.TopicOffsets:
    try:
        log = topic_question(supervisor).log()
    except kafka.KafkaProblem as problem:
        raise Unavailable(f"Kafka did not answer, so nothing was planned: {problem}") from None
    if log is None:
        raise Conflict(f"There is no topic {supervisor.io_config.topic!r}, so its records can't be read again.")
    return log


def _source(supervisor: Supervisor) -> Source:
    if supervisor.io_config.topicPattern is not None:
        raise InvalidInput(f"Supervisor {supervisor.pk} reads several topics. Rewind the supervisor of one topic.")
    source = sources_of(supervisor.datasource_id, supervisor.io_config, supervisor.owner).filter(current=True).first()
    if source is None:
        raise Conflict("This supervisor has stored nothing of its topic yet.")
    return source


def _plan(supervisor: Supervisor, asked: Asked, log: kafka.TopicOffsets) -> RewindPlan:
    source = _source(supervisor)
    if source.topic_id != log.topic_id:
        raise Conflict(f"Topic {source.topic!r} was deleted and created again: its old records are gone.")
    version = _version(supervisor, source, asked.read_with)
    choice = _choice(supervisor, asked)
    groups, loose = select(source, choice)
    readers = Readers(source.pk)
    if asked.others == OWN:
        versions = versions_of(task for group in groups for _, task in group.readers)
        groups = [with_versions(group, versions) for group in groups]
        chosen = chosen_records(source, choice)
        own = (supervisor.pk, version.version)
        readers = Readers(source.pk, own, versions, lambda r: chosen.get(r[1], {}) if r[0] == source.pk else {})
    others = {pk for group in groups if not group.refusal for pk, _ in group.readers} - {source.pk}
    logs = {source.pk: Log(log.start_offsets, log.log_ends), **_other_logs(supervisor, others)}
    judged = [within_log(group, logs) for group in groups]
    parts = parts_of(judged, _readable(source, version, loose, log), readers)
    return RewindPlan(supervisor, source, version, parts, [g for g in judged if g.refusal])


def _other_logs(supervisor: Supervisor, sources: set[int]) -> dict[int, Log]:
    """Of other topics whose records lie in the same segments. Asks Kafka once for each."""
    logs: dict[int, Log] = {}
    for source in Source.objects.filter(pk__in=sources):
        try:
            found = replace(topic_question(supervisor), topic=source.topic).log()
        except kafka.KafkaProblem as problem:
            raise Unavailable(f"Kafka did not answer, so nothing was planned: {problem}") from None
        if found is None or found.topic_id != source.topic_id:
            logs[source.pk] = Log({}, {}, f"Its records are of topic {source.topic!r}, which was deleted.")
        else:
            logs[source.pk] = Log(found.start_offsets, found.log_ends)
    return logs


def _choice(supervisor: Supervisor, asked: Asked) -> Choice:
    others = [asked.published, asked.offsets, asked.spec_version, asked.of_rewind]
    if asked.times is not None and any(others):
        raise InvalidInput("Times of rows can't be combined with another choice.")
    if asked.times is not None and asked.others == OWN:
        raise InvalidInput("Times of rows choose all records of segments, so there are no other records to read.")
    if asked.times is None and not any(others):
        raise InvalidInput("Choose records: by spec version, by publish time, by offsets, or by times of rows.")
    return Choice(tasks=_tasks(supervisor, asked), published=asked.published, offsets=asked.offsets, times=asked.times)


def _tasks(supervisor: Supervisor, asked: Asked) -> frozenset[str] | None:
    """Those that have published what was chosen; None where it was not chosen by them."""
    found: list[frozenset[str]] = []
    if asked.spec_version is not None:
        by_version = Task.objects.filter(supervisor_id=supervisor.pk, spec_version=asked.spec_version)
        found.append(frozenset(by_version.values_list("pk", flat=True)))
    if asked.of_rewind is not None:
        parts = RewindPart.objects.filter(rewind=asked.of_rewind, rewind__supervisor_id=supervisor.pk, state=State.DONE)
        publishes = [one for some in parts.values_list("publish_ids", flat=True) for one in some]
        by_publish = Publish.objects.filter(pk__in=publishes)
        found.append(frozenset(by_publish.values_list("fence__task_id", flat=True)))
    return frozenset.intersection(*found) if found else None


def _version(supervisor: Supervisor, source: Source, number: int | None) -> SpecVersion:
    if number is None:
        return supervisor.current
    version = SpecVersion.objects.filter(supervisor=supervisor, version=number).first()
    if version is None:
        raise InvalidInput(f"Supervisor {supervisor.pk} has no spec version {number}.")
    key = source_key(version.io_config, supervisor.owner)
    same = version.io_config.topic == source.topic and key == {"kind": source.kind, "group": source.group}
    if not same or parse_supervisor_spec(version.spec).datasource != supervisor.datasource.name:
        raise InvalidInput(f"Spec version {number} reads another topic, or stores in another datasource.")
    return version


def _readable(source: Source, version: SpecVersion, loose: Loose, log: kafka.TopicOffsets) -> Loose:
    """Those that Kafka has. Whether a record was too late for a period can't be told again, so then none is read."""
    io_config = version.io_config
    by_period = io_config.lateMessageRejectionPeriod or io_config.earlyMessageRejectionPeriod

    def in_log(ranges: RangesOf) -> RangesOf:
        bounds = {p: (log.start_offsets.get(p, 0), log.log_ends.get(p, 0)) for p in ranges}
        left = {p: offsets.subtracted(some, [(0, bounds[p][0])]) for p, some in ranges.items()}
        return {p: some for p, some in left.items() if some and some[-1][1] <= bounds[p][1]}

    kept = quarantined(source, loose.unparseable).filter(state=QuarantinedRecord.State.KEPT)
    return Loose({} if by_period else in_log(loose.thrown_away), in_log(by_partition(kept)))


def _check_none_waits(source: Source, supervisor_id: str) -> None:
    """Nor one of another topic that the supervisor has read before: parts read records of both."""
    same = Q(rewind__source=source) | Q(rewind__supervisor_id=supervisor_id)
    waiting = RewindPart.objects.filter(same, state=State.WAITING).first()
    if waiting is not None:
        raise Conflict(f"Rewind {waiting.rewind_id} of this supervisor is at work. Wait for it, or cancel it.")


def _check_exists(datasource: Datasource) -> None:
    if datasource.deleted_at is not None:
        raise Conflict(f"The datasource {datasource.name} is deleted, so its records can't be read again.")


def _create(user: User, plan: RewindPlan, asked: Asked) -> Rewind:
    version = plan.version
    rewind = Rewind.objects.create(
        datasource=plan.supervisor.datasource,
        source=plan.source,
        spec=task_spec_of(version),
        secrets=version.secrets,
        supervisor_id=plan.supervisor.pk,
        spec_version=version.version,
        choice=asked.described(),
        dry_run=asked.dry_run,
        by=str(user)[:150],
        created_at=timezone.now(),
    )
    parts = [RewindPart(rewind=rewind, number=n, **part_fields(part)) for n, part in enumerate(plan.parts)]
    RewindPart.objects.bulk_create(parts)
    record_action(
        user,
        plan.supervisor,
        "rewind",
        rewind=rewind.pk,
        parts=len(parts),
        records=plan.records,
        read_with=version.version,
        dry_run=asked.dry_run,
        **rewind.choice,
    )
    return rewind
