"""Supervisors and the immutable versions of their specs."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Any

from django.db import models
from django.utils import timezone

from controlplane.datasources.masked_querysets import ConcealingQuerySet, hidden_note
from controlplane.datasources.models import Datasource
from controlplane.sources.spec_sources import offsets_owner
from controlplane.supervisors.states import Detail, State
from controlplane.teams.models import User
from controlplane.teams.permissions import visible
from ingestion.specs.inputs.io_config import IOConfig
from ingestion.specs.tasks.stored_specs import io_config_of


class SupervisorQuerySet(ConcealingQuerySet["Supervisor"]):
    def visible_to(self, user: User) -> SupervisorQuerySet:
        """Those of the user's teams."""
        return self.filter(visible(user, "datasource__team"))

    def with_current(self) -> list[Supervisor]:
        """All of them, each with its ``current`` version: two queries."""
        supervisors: list[Supervisor] = list(self)
        versions = SpecVersion.objects.filter(supervisor__in=supervisors, version=models.F("supervisor__version"))
        current = {version.supervisor_id: version for version in versions}
        for supervisor in supervisors:
            supervisor._current = current.get(supervisor.pk)
        return supervisors


class Supervisor(models.Model):
    """Keeps its tasks alive. The id is the spec's, else the datasource's name, as in Druid."""

    id = models.CharField(primary_key=True, max_length=200)
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="supervisors")
    # For which supervisor, whose spec has a pattern, it reads one topic; and of which version of that one its spec is.
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="children")
    follows = models.IntegerField(null=True)
    # Of a backfill: the supervisor whose source it fills.
    fills = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="backfills")
    # Of one with a pattern: by which Kafka was last asked with success, and how many topics matched.
    pattern_asked = models.CharField(max_length=1_000, default="", db_default="")
    topics_matched = models.IntegerField(null=True)
    version = models.IntegerField(default=1)
    # The version whose tasks were the last to begin to read; None: none has since it was at rest.
    in_force = models.IntegerField(null=True)
    suspended = models.BooleanField(default=False)
    terminated_at = models.DateTimeField(null=True)
    detailed_state = models.CharField(max_length=40, default="PENDING")  # see ``detail``
    created_at = models.DateTimeField(auto_now_add=True)
    # Failures in a row, and when the next task may start: the back-off.
    failures = models.IntegerField(default=0)
    next_start_at = models.DateTimeField(null=True)
    recent_errors = models.JSONField(default=list)  # of its iterations and its tasks, newest first
    # The iterations that ask Kafka, since the supervisor began: when the next is due (None: now), when one last got an
    # answer, how many in a row failed or went well, and why. ``steady``: it has been RUNNING once.
    look_due_at = models.DateTimeField(null=True)
    contacted_at = models.DateTimeField(null=True)
    failed_runs = models.IntegerField(default=0)
    good_runs = models.IntegerField(default=0)
    run_errors = models.JSONField(default=list)
    steady = models.BooleanField(default=False)
    partitions = models.IntegerField(null=True)  # of its topic
    topic_missed = models.CharField(max_length=300, default="", db_default="")  # see Task; which one, if it was
    # When the share group's configuration was last looked at, and in what it differs from the spec: sentences.
    group_looked_at = models.DateTimeField(null=True)
    group_drift = models.JSONField(default=list)
    handoff_asked_at = models.DateTimeField(null=True)  # tasks that were launched before this are to hand off
    # The autoscaler's: what it has decided, when it last looked, since when it may (a spec and a resume begin anew).
    decided_task_count = models.IntegerField(null=True)
    scaling_checked_at = models.DateTimeField(null=True)
    scaling_since = models.DateTimeField(default=timezone.now)
    scaling_reason = models.CharField(max_length=20, default="", db_default="")  # ``autoscale.Reason`` of its last look
    scaling_text = models.TextField(default="", db_default="")
    terminations = models.JSONField(default=list)  # when, ISO 8601, and by whom: the tombstones of its history
    # Where the topic ended at its last iteration: its id, and offsets by partition; of one that may become idle. Since
    # when that has not changed and all of it is settled, and since when it is idle for that.
    ends_seen = models.JSONField(null=True)
    inactive_since = models.DateTimeField(null=True)
    idle_since = models.DateTimeField(null=True)
    ran_at = models.DateTimeField(null=True)  # what its last round saw, it saw then
    calm_until = models.DateTimeField(null=True)  # see ``decide.calm_until``

    objects = SupervisorQuerySet.as_manager()
    concealed_for = ""
    _current: SpecVersion | None = None
    _reads: tuple[int, IOConfig] | None = None

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.id

    @property
    def current(self) -> SpecVersion:
        """The version of its spec that holds. Asked of the store once for each instance, as versions don't change."""
        if self._current is None or self._current.version != self.version:
            self._current = self.versions.get(version=self.version)
        return self._current

    @property
    def io_config(self) -> IOConfig:
        """What it reads by its current spec: of the version, or of the ``spec`` that a selector adds to each row."""
        if self._reads is None or self._reads[0] != self.version:
            annotated_spec = self.__dict__.get("spec") if self._reads is None else None
            self._reads = (
                self.version,
                self.current.io_config if annotated_spec is None else io_config_of(annotated_spec),
            )
        return self._reads[1]

    @property
    def detail(self) -> Detail:
        return Detail[self.detailed_state]

    @property
    def state(self) -> State:
        """Druid's, which follows from the detail."""
        return self.detail.state

    @property
    def last_run_at(self) -> datetime | None:
        """None for one that begins, or begins again: its runs come after the first answer from Kafka."""
        begins = self.contacted_at is None and not self.failed_runs
        return None if begins else self.ran_at

    @property
    def owner(self) -> str:
        """Under whose name its stored offsets are kept."""
        return offsets_owner(self.pk)

    @property
    def is_made_by_another(self) -> bool:
        """Whether Headgate made its spec of another one's: for a topic of a pattern, or as a backfill."""
        return self.parent_id is not None or self.fills_id is not None

    @property
    def current_error(self) -> dict[str, Any]:
        """The last of its iterations, while they fail; empty else."""
        return self.run_errors[0] if self.failed_runs and self.run_errors else {}

    @property
    def lacks_topic(self) -> bool:
        """Whether its last iteration found no topic."""
        return self.current_error.get("class") == "TopicMissing"

    @property
    def last_switched_at(self) -> datetime | None:
        """When it was last suspended, resumed or terminated; None: never."""
        switch_times = self.switches.values_list("at", flat=True)[:1]
        return max([*switch_times, *(datetime.fromisoformat(t["at"]) for t in self.terminations[-1:])], default=None)

    def conceal(self, role: str) -> None:
        """What its tasks said may quote a value; what its own iterations came to does not."""
        self.concealed_for = role
        self.recent_errors = [{**e, "message": hidden_note(role)} if e.get("task") else e for e in self.recent_errors]

    def begin(self) -> None:
        """It starts, with a new spec or after a suspension: what its iterations came to before says nothing now.

        Called before it is no longer at rest: from there it does not go back to what it read by before.
        """
        if self.suspended or self.terminated_at is not None:
            self.in_force = None
        self.detailed_state = Detail.PENDING
        self.look_due_at = self.contacted_at = self.partitions = None
        self.failed_runs = self.good_runs = 0
        self.run_errors = []
        self.group_looked_at, self.group_drift = None, []
        self.steady = False
        self.wake()

    def wake(self) -> None:
        """It is not idle any more, and becomes so only when nothing has come for long enough from now on.

        One that had read its offsets looks whether that is still so.
        """
        if self.detailed_state == Detail.COMPLETED:
            self.detailed_state = Detail.RUNNING
        self.ends_seen = self.inactive_since = self.idle_since = self.calm_until = None


class ScaleAction(models.Model):
    """The autoscaler changed the number of indexers."""

    supervisor = models.ForeignKey(Supervisor, on_delete=models.CASCADE, related_name="scale_actions")
    at = models.DateTimeField()
    before = models.IntegerField()
    after = models.IntegerField()
    reason = models.TextField()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["supervisor", "-id"], name="scale_action_by_supervisor")]


class Switch(models.Model):
    """It was suspended, or resumed."""

    supervisor = models.ForeignKey(Supervisor, on_delete=models.CASCADE, related_name="switches")
    at = models.DateTimeField(default=timezone.now)
    suspended = models.BooleanField()
    version = models.IntegerField()  # of the spec that held then

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["supervisor", "-id"], name="switch_by_supervisor")]


class SpecVersion(models.Model):
    """One version of a supervisor's spec. Written once; a change is a new version."""

    supervisor = models.ForeignKey(Supervisor, on_delete=models.CASCADE, related_name="versions")
    version = models.IntegerField()
    spec = models.JSONField()
    secrets = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ["-version"]
        constraints = [models.UniqueConstraint(fields=["supervisor", "version"], name="one_spec_per_version")]

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert only."""
        if not self._state.adding:
            raise TypeError("a spec version is immutable; make a new one")
        super().save(*args, **kwargs)

    @cached_property
    def io_config(self) -> IOConfig:
        return io_config_of(self.spec)


def start_accepted_at(version: SpecVersion) -> datetime:
    """Since when the spec has said where a topic is begun as this version says it: a duration is counted from then.

    Later versions change something else, such as the number of indexers.
    """
    since, start = version.created_at, version.io_config.startPosition
    if version.io_config.start.ago is None:
        return since
    earlier = SpecVersion.objects.filter(supervisor_id=version.supervisor_id, version__lt=version.version)
    for each in earlier.order_by("-version").iterator(chunk_size=20):
        if each.io_config.startPosition != start:
            break
        since = each.created_at
    return since
