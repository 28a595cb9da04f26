"""The health of a supervisor: a pure function of what was observed. Lists, pages, REST and home all ask it.

Druid's own states stay what they are: ``Supervisor.state`` has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from controlplane.lag.quarantined_since import BadSince
from controlplane.lag.trend import LagTrend
from controlplane.quotas.services import OverQuota
from controlplane.supervisors.health import Code, Health, Kind
from controlplane.supervisors.health_messages import (
    FIRST_TASK_TEXT,
    Idleness,
    attempts_text,
    count,
    duration_text,
    indexer_count,
    no_runs_text,
    shortened,
    spec_change_note,
    too_few_slots_text,
    utc,
)
from controlplane.supervisors.lag_state import Trend, is_behind, time_left, trend_of
from controlplane.supervisors.quarantine_health import health_of_quarantining, is_quarantining
from controlplane.tasks.diagnosis import Reason, strangers_text
from controlplane.tasks.slot_waits import SlotWait

PATIENCE = timedelta(minutes=5)  # being behind for longer than this is somebody's business
STALE = timedelta(seconds=60)
SOON_S, LITTLE = 60, 100  # what comes in within so many seconds, and so few offsets, may be held until it is stored


@dataclass(frozen=True)
class PastAction:
    """Who did something, and when: as far as the audit trail knows."""

    username: str = ""
    at: datetime | None = None

    @property
    def text(self) -> str:
        by = f" by {self.username}" if self.username else ""
        return f"{by} since {utc(self.at)}" if self.at else by


@dataclass(frozen=True)
class ErrorStreak:
    """Errors in a row."""

    times: int
    message: str
    since: datetime | None = None
    kind: str = ""  # an error's class
    is_of_source: bool = False


@dataclass(frozen=True)
class HealthFacts:
    """What is known of a supervisor; ``health_of`` looks at nothing else."""

    now: datetime
    topic: str
    detailed_state: str = "RUNNING"
    unhealthy: bool = False  # by Druid's state
    terminated: PastAction | None = None
    suspended: PastAction | None = None
    idleness: Idleness | None = None  # it is idle, by Druid's state
    tasks: int = 1  # that have not ended
    ran_at: datetime | None = None  # its last round; None: none since it began
    iterations: ErrorStreak | None = None  # its own, which ask Kafka
    contacted_at: datetime | None = None  # when Kafka last answered one
    failures: ErrorStreak | None = None  # of its tasks
    next_start_at: datetime | None = None
    # Of its newest task, or the replica that does best.
    indexer_states: tuple[str, ...] = ()
    indexer_message: str = ""  # of one that is paused or fails
    refusal: str = ""  # why Kafka does not let an indexer read
    kafka_error: str = ""
    kafka_refuses: bool = False  # that is why
    foreign_members: tuple[str, ...] = ()  # others' members of its consumer group
    topic_exists: bool | None = None  # None: not looked at yet
    reason: Reason | None = None  # why it has published nothing
    slot_wait: SlotWait | None = None  # that it waits for
    quota: OverQuota | None = None  # of its team, that is used up
    versions: tuple[int, int] | None = None  # the one that is still read by, and the one that is to follow
    # Of the topic that it reads.
    topics: Health | None = None  # how those of its pattern stand, if it has one
    topic_seen_at: datetime | None = None
    complete_until: datetime | None = None  # said of it elsewhere, and no part of its health
    stored: int = 0  # rows, before the topic was gone
    lag: LagTrend | None = None
    behind_since: datetime | None = None  # None: for longer than there are samples
    quarantining_since: BadSince | None = None  # of one of whose records a large part comes into quarantine
    indexers: int = 1
    scales_itself: bool = False


def health_of(facts: HealthFacts) -> Health:
    """The first that applies."""
    health = next(filter(None, (rule(facts) for rule in _RULES)))
    return health if health.behind is not None or facts.lag is None else replace(health, behind=facts.lag.lag)


def _terminated(facts: HealthFacts) -> Health | None:
    if facts.terminated is None:
        return None
    text = f"Terminated{facts.terminated.text}. Its segments stay. Submit its spec again to start it again."
    return Health(Kind.WAITING, Code.TERMINATED, "terminated", text, facts.terminated.at)


def _suspended(facts: HealthFacts) -> Health | None:
    if facts.suspended is None:
        return None
    if facts.tasks:
        text = f"Suspended{facts.suspended.text}. Its task publishes what it holds, and ends."
        return Health(Kind.WORKING, Code.STOPPING, "stopping", text, facts.suspended.at)
    lag_text = f" The lag is {count(facts.lag.lag, 'offset')}." if facts.lag and facts.lag.lag else ""
    text = f"Suspended{facts.suspended.text}.{lag_text} Resume it to continue."
    return Health(Kind.WAITING, Code.SUSPENDED, "suspended", text, facts.suspended.at)


def _quota(facts: HealthFacts) -> Health | None:
    if facts.quota is None:
        return None
    finishing = " Its task publishes what it holds, and ends." if facts.tasks else ""
    text = f"{facts.quota.text}{finishing}"
    return Health(Kind.NEEDS_ATTENTION, Code.QUOTA_USED_UP, "quota used up", text, facts.quota.since)


def _topic(facts: HealthFacts) -> Health | None:
    missing = facts.iterations is not None and facts.iterations.kind == "TopicMissing" and not _topic_is_back(facts)
    if not missing and facts.topic_exists is not False:
        return None
    change_note = spec_change_note(facts.versions)
    if facts.topic_seen_at is not None:
        stored = f" {count(facts.stored, 'row')} of it were stored before." if facts.stored else ""
        text = (
            f"Topic {facts.topic!r} has been missing since {utc(facts.topic_seen_at)}. It was deleted, or this login "
            f"no longer has permission to see it.{stored} Create it again, or change the spec.{change_note}"
        )
        return Health(Kind.FAILED, Code.TOPIC_MISSING, "topic missing", text, facts.topic_seen_at)
    since = facts.iterations.since if facts.iterations else None
    text = f"There is no topic {facts.topic!r}, or this login has no permission to see it."
    if facts.unhealthy:
        text += f" Check its name in the spec, or create it. Headgate checks again every ioConfig.period.{change_note}"
        return Health(Kind.FAILED, Code.TOPIC_MISSING, "topic missing", text, since)
    text += f" Reading starts when it exists.{change_note}"
    return Health(Kind.WAITING, Code.WAITING_FOR_TOPIC, "waiting for topic", text, since)


def _topic_is_back(facts: HealthFacts) -> bool:
    """Whether the topic has been looked at since an iteration missed it: its next one will find it."""
    asked_at, seen_at = facts.contacted_at, facts.topic_seen_at
    return facts.topic_exists is not False and asked_at is not None and seen_at is not None and seen_at > asked_at


def _failing_runs(facts: HealthFacts) -> Health | None:
    errors = facts.iterations
    if errors is None:
        if facts.unhealthy and facts.detailed_state in _STATES_OF_RUNS:
            text = "It has recovered. Its state turns healthy after some more successful runs."
            return Health(Kind.WORKING, Code.RECOVERING, "recovering", text)
        return None
    if errors.kind == "TopicMissing":
        return Health(Kind.WORKING, Code.RECOVERING, "recovering", "Its topic exists again, and its task reads it.")
    if not errors.is_of_source:
        text = f"Its run failed {attempts_text(errors.times)}: {shortened(errors.message)}"
        return Health(Kind.FAILED, Code.UNHEALTHY, "runs failing", text, errors.since)
    kind = Kind.FAILED if facts.unhealthy else Kind.WAITING
    if errors.kind == "KafkaRefuses":
        text = f"{shortened(errors.message)}. Headgate retries every ioConfig.period.{spec_change_note(facts.versions)}"
        return Health(kind, Code.KAFKA_REFUSES, "Kafka refuses", text, errors.since)
    since = f" It last answered at {utc(facts.contacted_at)}." if facts.contacted_at else " It has not answered yet."
    next_step = "Check bootstrap.servers, the login and the network."
    if facts.versions is not None:
        next_step += spec_change_note(facts.versions)
    elif facts.tasks:
        next_step = "Running tasks continue when Kafka answers again."
    text = f"Kafka does not answer: {shortened(errors.message)}.{since} {next_step}"
    return Health(kind, Code.KAFKA_UNREACHABLE, "Kafka unreachable", text, errors.since)


def _kafka_refuses(facts: HealthFacts) -> Health | None:
    """Before all that supposes that it reads."""
    if not facts.refusal:
        return None
    refused = sum(state == "refused" for state in facts.indexer_states)
    part = "" if refused == len(facts.indexer_states) else f"{refused} of {len(facts.indexer_states)} indexers: "
    text = f"{part}{shortened(facts.refusal)}. It retries every few seconds.{spec_change_note(facts.versions)}"
    return Health(Kind.FAILED, Code.KAFKA_REFUSES, "Kafka refuses", text)


def _strangers(facts: HealthFacts) -> Health | None:
    """Before all that supposes that every partition is read here."""
    if not facts.foreign_members:
        return None
    text = strangers_text(facts.foreign_members)
    return Health(Kind.NEEDS_ATTENTION, Code.STRANGERS_IN_GROUP, "shares its group", text)


def _no_runs(facts: HealthFacts) -> Health | None:
    """Before all that promises that something happens by itself: it is rounds that do it."""
    if facts.ran_at is None or facts.now - facts.ran_at <= STALE:
        return None
    return Health(Kind.WAITING, Code.NOT_OBSERVED, "no runs", no_runs_text(facts.ran_at, facts.tasks), facts.ran_at)


def _no_room(facts: HealthFacts) -> Health | None:
    room = facts.slot_wait
    if room is None:
        return None
    text = too_few_slots_text(room) if room.team is None else room.team.wait_reason(room.needed)
    if room.team is None and not room.never:
        size = f" of {room.size:,}" if room.size is not None else ""
        free = f"{room.free or 0:,}{size} {'is' if room.free == 1 else 'are'} free{room.text}"
        text = f"It needs {count(room.needed, 'slot')}; {free}. It starts when enough slots are free."
    kind = Kind.NEEDS_ATTENTION if room.never else Kind.WAITING
    label = "never enough slots" if room.never else "waiting for a slot"
    return Health(kind, Code.WAITING_FOR_SLOT, label, text, room.since)


def _failing(facts: HealthFacts) -> Health | None:
    errors = facts.failures
    if errors is None or not errors.times:
        if facts.unhealthy and facts.detailed_state == "UNHEALTHY_TASKS":
            text = "Its task reads again. Its state turns healthy after a minute of reading."
            return Health(Kind.WORKING, Code.RECOVERING, "recovering", text)
        return None
    if facts.tasks and not facts.unhealthy:
        return None  # one failure, and another task is at work
    times = "Its last task failed" if errors.times == 1 else f"Its last {errors.times:,} tasks have all failed"
    later = facts.next_start_at is not None and facts.next_start_at > facts.now
    then = f"the next starts at {utc(facts.next_start_at)}" if later else "another is running"
    error = f" {shortened(errors.message)}" if errors.message else ""
    since = f" {'at' if errors.times == 1 else 'since'} {utc(errors.since)}" if errors.since else ""
    text = f"{times}{since}; {then}. The last error: {error.strip() or 'see its log.'}"
    if facts.unhealthy:
        return Health(Kind.FAILED, Code.FAILING, "failing", text + spec_change_note(facts.versions), errors.since)
    return Health(Kind.WORKING, Code.FAILING, "restarting", text, errors.since)


def _idle(facts: HealthFacts) -> Health | None:
    if facts.idleness is None:
        return None
    finishing = " Its task publishes what it holds, and ends." if facts.tasks else ""
    return Health(Kind.WAITING, Code.IDLE, "idle", f"{facts.idleness.text}{finishing}", facts.idleness.since)


def _starting(facts: HealthFacts) -> Health | None:
    if facts.tasks:
        return None
    if facts.detailed_state == "CONNECTING_TO_STREAM":
        text = "Headgate asks Kafka for the topic. The task starts when Kafka has answered."
    elif facts.next_start_at is not None and facts.next_start_at > facts.now:
        text = f"Its first task starts at {utc(facts.next_start_at)}."
    else:
        text = FIRST_TASK_TEXT
    return Health(Kind.WORKING, Code.STARTING, "starting", text)


def _indexers(facts: HealthFacts) -> Health | None:
    states = set(facts.indexer_states)
    if facts.kafka_error and facts.kafka_refuses:
        text = f"{shortened(facts.kafka_error)}. Its lag is unknown."
        return Health(Kind.FAILED, Code.KAFKA_REFUSES, "Kafka refuses", text)
    if facts.kafka_error:
        text = f"Kafka does not answer: {shortened(facts.kafka_error)}. Its task continues when Kafka answers again."
        return Health(Kind.WAITING, Code.KAFKA_UNREACHABLE, "Kafka unreachable", text)
    if states == {"paused"}:
        text = f"Reading is paused: {shortened(facts.indexer_message) or 'a store refuses'}. It resumes automatically."
        return Health(Kind.FAILED, Code.STORAGE_REFUSES, "paused", text)
    if states == {"restarting"}:
        text = f"All its indexers fail and restart: {shortened(facts.indexer_message)}"
        return Health(Kind.FAILED, Code.FAILING, "failing", text)
    return None


def _changing(facts: HealthFacts) -> Health | None:
    if facts.versions is None:
        return None
    before, after = facts.versions
    text = f"Its task still uses version {before} of the spec. A task with version {after} takes over once it runs."
    return Health(Kind.WORKING, Code.CHANGING_SPEC, "changing spec", text)


def _nothing_stored(facts: HealthFacts) -> Health | None:
    """What its task says of itself, as long as it has published nothing."""
    reason = facts.reason
    if reason is None:
        return None
    if reason.code in _NEED_ATTENTION:
        return Health(Kind.NEEDS_ATTENTION, Code.NOTHING_STORED, "nothing stored", reason.text)
    if reason.code in ("topic_empty", "topic_expired", "starts_at_latest"):
        return Health(Kind.WAITING, Code.IDLE, "idle", reason.text)
    if reason.code in ("starting", "not_observed", "predecessor"):
        return Health(Kind.WORKING, Code.STARTING, "starting", reason.text)
    return None


def _behind(facts: HealthFacts) -> Health | None:
    lag = facts.lag
    if lag is None:
        text = "Its task runs. Headgate checks the topic within a few seconds."
        return Health(Kind.WORKING, Code.STARTING, "starting", text)
    if facts.now - lag.at > STALE:
        text = f"Its lag has been unknown since {utc(lag.at)}. Are the processes `worker` and `beat` running?"
        return Health(Kind.WAITING, Code.NOT_OBSERVED, "lag unknown", text, lag.at)
    if not is_behind(lag):
        return None
    trend = trend_of(lag)
    lasts_text = "" if facts.behind_since is None else f" for {duration_text(facts.now - facts.behind_since)}"
    is_long = lag.has_full_window if facts.behind_since is None else facts.now - facts.behind_since >= PATIENCE
    kind = Kind.NEEDS_ATTENTION if is_long and (trend == Trend.GROWING or not lag.records_per_s) else Kind.WORKING
    text = f"{count(lag.lag, 'offset')} behind{lasts_text}, {_pace_text(facts, lag, trend)}"
    return Health(kind, Code.BEHIND, _LABELS[trend], text, facts.behind_since, lag.lag, trend)


def _quarantining(facts: HealthFacts) -> Health | None:
    """Before all that is said of one that keeps up: what is not stored is no row."""
    lag = facts.lag
    is_recent = lag is not None and facts.now - lag.at <= STALE and is_quarantining(lag)
    return health_of_quarantining(lag, facts.quarantining_since, facts.now) if lag is not None and is_recent else None


def _pace_text(facts: HealthFacts, lag: LagTrend, trend: Trend) -> str:
    rows = f"{lag.records_per_s or 0:,.0f} records per second"
    if trend == Trend.SHRINKING:
        left = time_left(lag)
        return f"and catching up{'' if lag.is_too_new else f' at {rows}'}: done in about {duration_text(left)}."
    if lag.is_too_new and facts.tasks:
        return "and its indexers have just started to read."
    advice = "Its autoscaler may add indexers" if facts.scales_itself else "Scale it up, or check its tasks"
    if not lag.records_per_s:
        return f"and nothing is stored: {'check its tasks and their logs' if facts.tasks else 'no task runs'}."
    direction = "and growing" if trend == Trend.GROWING else "and not changing"
    return f"{direction}: its {indexer_count(facts.indexers)} store {rows}. {advice}."


def _holding(facts: HealthFacts) -> Health | None:
    """All is read, and much of it is no row yet."""
    lag = facts.lag
    if lag is None or min(lag.lag, lag.before or 0) <= max(LITTLE, SOON_S * (lag.records_per_s or 0)):
        return None  # or it has come within the last minutes
    text = (
        f"{count(lag.lag, 'offset')} are not stored yet. Its indexers hold nearly all of them, and store them when "
        "they hand off."
    )
    return Health(Kind.WORKING, Code.HOLDING, "read, not stored", text, None, lag.lag, trend_of(lag))


def _up_to_date(facts: HealthFacts) -> Health:
    lag = facts.lag
    if lag is not None and not lag.lag and not lag.records_per_s and lag.before is not None:
        # It is looked at over some minutes: nothing may have come in for days.
        period = "" if lag.is_too_new else f" in the last {max(1, round(lag.elapsed.total_seconds() / 60))} min"
        text = f"All of topic {facts.topic!r} is settled. No records arrived{period}."
        return Health(Kind.WAITING, Code.IDLE, "idle", text)
    return Health(Kind.OK, Code.UP_TO_DATE, "up to date", f"It keeps up with its topic{_last_minute_text(lag)}.")


def _last_minute_text(lag: LagTrend | None) -> str:
    now = None if lag is None else lag.records_per_s_now
    if now == 0 and lag is not None and not lag.is_too_new:
        return "; no records arrived for a minute"
    return f" and stores {now:,.0f} records per second" if now is not None and now >= 2 else " and stores what comes in"


_STATES_OF_RUNS = {"UNABLE_TO_CONNECT_TO_STREAM", "LOST_CONTACT_WITH_STREAM", "UNHEALTHY_SUPERVISOR"}
_NEED_ATTENTION = {"share_groups_off", "all_unparseable", "all_filter_drops", "all_outside_window", "all_tombstones"}
_LABELS = {Trend.GROWING: "falling behind", Trend.STEADY: "behind", Trend.SHRINKING: "catching up"}
_RULES: tuple[Callable[[HealthFacts], Health | None], ...] = (
    _terminated,
    _suspended,
    _quota,
    _topic,
    _failing_runs,
    lambda facts: facts.topics,
    _kafka_refuses,
    _strangers,
    _no_runs,
    _no_room,
    _failing,
    _idle,
    _starting,
    _indexers,
    _changing,
    _nothing_stored,
    _quarantining,
    _behind,
    _holding,
    _up_to_date,
)
