"""What there is to know from the metadata store: each metric with its type, labels and meaning.

Labels are names of what people have made, and words from short lists: never ids of tasks, nor topics, nor people.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

TEAM = ("team",)
DATASOURCE = ("team", "datasource")
SUPERVISOR = ("team", "datasource", "supervisor")
Labels = tuple[str, ...]
Sample = tuple[str, Labels, float]  # a metric's name, its labels' values, its own
Samples = Mapping[str, Sequence[tuple[Labels, float]]]


@dataclass(frozen=True)
class Family:
    """A metric; a counter's name ends in ``_total``."""

    name: str
    meaning: str
    labels: Labels = ()

    @property
    def is_counter(self) -> bool:
        return self.name.endswith("_total")

    def metric(self, samples: Iterable[tuple[Labels, float]] = ()) -> Metric:
        """With these values."""
        kind = CounterMetricFamily if self.is_counter else GaugeMetricFamily
        metric = kind(self.name, self.meaning, labels=self.labels)
        for labels, value in samples:
            metric.add_metric(labels, value)
        return metric


@dataclass(frozen=True)
class Reach:
    """What somebody may read of it: the metrics of these teams and datasources."""

    whole: bool = False  # everything, whatever the others say
    teams: frozenset[str] = frozenset()
    datasources: frozenset[str] = field(default_factory=frozenset)

    def covers(self, family: Family, labels: Labels) -> bool:
        if self.whole or family.name.startswith("headgate_store_"):  # these are about the answer itself
            return True
        if "datasource" in family.labels:
            return labels[family.labels.index("datasource")] in self.datasources
        return "team" in family.labels and labels[family.labels.index("team")] in self.teams


_FAMILIES = (
    # Supervisors.
    Family(
        "headgate_supervisor_state",
        "1 for Druid's state that the supervisor is in; its other states are absent.",
        (*SUPERVISOR, "state"),
    ),
    Family(
        "headgate_supervisor_health",
        "1 for the kind and code of the supervisor's health; others are absent.",
        (*SUPERVISOR, "kind", "code"),
    ),
    Family(
        "headgate_supervisor_lag_records",
        "Records in the topic that are not settled. Absent for bounded supervisors, and if Headgate has not checked "
        "the topic within a minute.",
        SUPERVISOR,
    ),
    Family(
        "headgate_supervisor_lag_seconds",
        "The time since which records of the topic may be unsettled. Absent if that is not known.",
        SUPERVISOR,
    ),
    Family(
        "headgate_supervisor_complete_until_timestamp_seconds",
        "All records that Kafka held at this time are settled. Absent for bounded supervisors, and until that is "
        "known.",
        SUPERVISOR,
    ),
    Family(
        "headgate_supervisor_retention_left_seconds",
        "The time until Kafka may delete records that are not settled, at the earliest. Absent while none has waited "
        "for a minute, and if the time is not known or the topic has no limit.",
        SUPERVISOR,
    ),
    Family(
        "headgate_supervisor_drain_seconds",
        "The time until the supervisor has caught up at its present rate: 0 while it keeps up, +Inf if the lag does "
        "not shrink. Absent if that is not known.",
        SUPERVISOR,
    ),
    Family(
        "headgate_supervisor_last_run_timestamp_seconds",
        "When the supervisor last ran. Absent before its first run.",
        SUPERVISOR,
    ),
    Family(
        "headgate_supervisor_autoscaler_decision",
        "1 for the reason of the autoscaler's last decision; others are absent. Absent without an autoscaler, before "
        "its first decision, and while it has no runs.",
        (*SUPERVISOR, "reason"),
    ),
    Family("headgate_supervisor_failed_runs", "How many runs have failed in a row.", SUPERVISOR),
    Family("headgate_supervisor_failed_tasks", "How many tasks have failed in a row.", SUPERVISOR),
    Family(
        "headgate_supervisor_indexers",
        "Indexers of running tasks by their state. `paused`: the circuit breaker is open, because a publish or deep "
        "storage failed. `refused`: Kafka does not let it read.",
        (*SUPERVISOR, "state"),
    ),
    Family(
        "headgate_supervisor_longest_hold_seconds",
        "The longest time between delivery and acknowledgement of a share group's record, of running indexers. Absent "
        "while none has acknowledged any.",
        SUPERVISOR,
    ),
    # Datasources.
    Family(
        "headgate_records_total",
        "Records by outcome; of those that are stored, their rows. A replayed record counts again. Outcomes without a "
        "publish are absent until one occurs.",
        (*DATASOURCE, "outcome"),
    ),
    Family(
        "headgate_record_details_total",
        "What else was counted of these records, by the name of the counter. Absent until it occurs, unless a person "
        "should look at it.",
        (*DATASOURCE, "detail"),
    ),
    Family(
        "headgate_records_polled_total",
        "Records that indexers have received. A record that is delivered again counts again.",
        DATASOURCE,
    ),
    Family("headgate_records_bytes_total", "Size of the records that were read.", DATASOURCE),
    Family("headgate_publishes_total", "Publishes of indexers and batch tasks.", DATASOURCE),
    Family("headgate_segments_published_total", "Segments that were published; merges do not count.", DATASOURCE),
    Family("headgate_segments_published_bytes_total", "Size of these segments.", DATASOURCE),
    Family(
        "headgate_datasource_last_publish_timestamp_seconds",
        "When something was last published. Absent before the first publish.",
        DATASOURCE,
    ),
    Family("headgate_datasource_segments", "Used segments.", DATASOURCE),
    Family("headgate_datasource_segments_bytes", "Size of the used segments.", DATASOURCE),
    Family("headgate_datasource_rows", "Rows in the used segments.", DATASOURCE),
    Family(
        "headgate_datasource_quarantined_records",
        "Records in quarantine: `kept` if they wait for a replay, else `ended`. Absent if there are none.",
        (*DATASOURCE, "state"),
    ),
    Family(
        "headgate_datasource_unacknowledged_alarms",
        "Alarms that nobody has acknowledged, by kind of event. `gap`: Kafka's retention removed unread records.",
        (*DATASOURCE, "kind"),
    ),
    Family("headgate_datasource_merges", "Merge jobs that wait for a slot or run.", (*DATASOURCE, "state")),
    Family(
        "headgate_datasource_oldest_waiting_merge_seconds",
        "How long the oldest waiting merge job has waited. Absent if none waits.",
        DATASOURCE,
    ),
    Family("headgate_tasks", "Tasks that have not ended, by status.", (*DATASOURCE, "status")),
    Family("headgate_alerts_firing", "Firing alerts by the kind of their rule.", (*DATASOURCE, "kind")),
    # The pool, of all teams and of each with a limit of its own.
    Family("headgate_pool_slots", "Slots of the pool. Absent if it has no limit."),
    Family("headgate_pool_used_slots", "Slots that tasks and the compaction application use."),
    Family("headgate_pool_waiting_tasks", "Tasks that wait for slots of the pool."),
    Family("headgate_pool_waiting_slots", "Slots that these tasks need."),
    Family("headgate_team_slots", "The team's quota of slots. Absent without a quota.", TEAM),
    Family("headgate_team_used_slots", "Slots that the tasks of a team with a quota use.", TEAM),
    Family("headgate_team_waiting_tasks", "The team's tasks that wait for slots.", TEAM),
    Family(
        "headgate_team_core_seconds_total",
        "Seconds for which the team's tasks held a slot, summed over slots. Absent until a task has held one.",
        TEAM,
    ),
    Family("headgate_team_read_bytes_total", "Size of the records that the team's tasks have read.", TEAM),
    Family("headgate_team_stored_bytes_total", "Size of the segments that they have published.", TEAM),
    # This answer.
    Family("headgate_store_read_timestamp_seconds", "When Headgate read these values; it keeps them for 10 seconds."),
    Family("headgate_store_read_duration_seconds", "How long it took to read them."),
)
FAMILIES = {family.name: family for family in _FAMILIES}
