"""The health of a supervisor: a pure function of what was observed. Lists, pages, REST and home all ask it.

Druid's own states stay what they are: ``Supervisor.state`` has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from controlplane.lag.bad_since import BadSince
from controlplane.lag.trend import LagTrend
from controlplane.quotas.services import Stopped
from controlplane.supervisors.behind import Trend, is_behind, time_left, trend_of
from controlplane.supervisors.health import Code, Health, Kind
from controlplane.supervisors.health_messages import (
    FIRST_TASK,
    Rest,
    after_attempts,
    count,
    length,
    meanwhile,
    moment,
    never_enough_slots,
    of_indexers,
    shortened,
    unattended,
)
from controlplane.supervisors.quarantining import health_of_quarantining, is_quarantining
from controlplane.tasks.diagnosis import Reason, strangers_told
from controlplane.tasks.slot_waits import SlotWait

PATIENCE = timedelta(minutes=5)  # being behind for longer than this is somebody's business
STALE = timedelta(seconds=60)
SOON_S, LITTLE = 60, 100  # what comes in within so many seconds, and so few offsets, may be held until it is stored


@dataclass(frozen=True)
class Done:
    """Who did something, and when: as far as the audit trail knows."""

    by: str = ""
    at: datetime | None = None

    @property
    def told(self) -> str:
        by = f" by {self.by}" if self.by else ""
        return f"{by} since {moment(self.at)}" if self.at else by


@dataclass(frozen=True)
class Trouble:
    """Errors in a row."""

    times: int
    message: str
    since: datetime | None = None
    kind: str = ""  # an error's class
    of_stream: bool = False


@dataclass(frozen=True)
class Observed:
    """What is known of a supervisor; ``health_of`` looks at nothing else."""

    now: datetime
    topic: str
    detailed_state: str = "RUNNING"
    unhealthy: bool = False  # by Druid's state
    terminated: Done | None = None
    suspended: Done | None = None
    rests: Rest | None = None  # it is idle, by Druid's state
    tasks: int = 1  # that have not ended
    ran_at: datetime | None = None  # its last round; None: none since it began
    iterations: Trouble | None = None  # its own, which ask Kafka
    contacted_at: datetime | None = None  # when Kafka last answered one
    failures: Trouble | None = None  # of its tasks
    next_start_at: datetime | None = None
    # Of its newest task, or the replica that does best.
    indexer_states: tuple[str, ...] = ()
    indexer_message: str = ""  # of one that is paused or fails
    refusal: str = ""  # why Kafka does not let an indexer read
    kafka_error: str = ""
    kafka_refuses: bool = False  # that is why
    strangers: tuple[str, ...] = ()  # others' members of its consumer group
    topic_exists: bool | None = None  # None: not looked at yet
    reason: Reason | None = None  # why it has published nothing
    room: SlotWait | None = None  # that it waits for
    quota: Stopped | None = None  # of its team, that is used up
    versions: tuple[int, int] | None = None  # the one that is still read by, and the one that is to follow
    # Of the topic that it reads.
    topics: Health | None = None  # how those of its pattern stand, if it has one
    topic_seen_at: datetime | None = None
    stored: int = 0  # rows, before the topic was gone
    lag: LagTrend | None = None
    behind_since: datetime | None = None  # None: for longer than there are samples
    quarantining_since: BadSince | None = None  # of one of whose records a large part comes into quarantine
    indexers: int = 1
    scales_itself: bool = False


def health_of(seen: Observed) -> Health:
    """The first that applies."""
    said = next(filter(None, (rule(seen) for rule in _RULES)))
    return said if said.behind is not None or seen.lag is None else replace(said, behind=seen.lag.lag)


def _terminated(seen: Observed) -> Health | None:
    if seen.terminated is None:
        return None
    text = f"Terminated{seen.terminated.told}. Its segments stay. Submit its spec again to start it again."
    return Health(Kind.WAITING, Code.TERMINATED, "terminated", text, seen.terminated.at)


def _suspended(seen: Observed) -> Health | None:
    if seen.suspended is None:
        return None
    if seen.tasks:
        text = f"Suspended{seen.suspended.told}. Its task publishes what it holds, and ends."
        return Health(Kind.WORKING, Code.STOPPING, "stopping", text, seen.suspended.at)
    waits = f" The lag is {count(seen.lag.lag, 'offset')}." if seen.lag and seen.lag.lag else ""
    text = f"Suspended{seen.suspended.told}.{waits} Resume it to continue."
    return Health(Kind.WAITING, Code.SUSPENDED, "suspended", text, seen.suspended.at)


def _quota(seen: Observed) -> Health | None:
    if seen.quota is None:
        return None
    finishing = " Its task publishes what it holds, and ends." if seen.tasks else ""
    text = f"{seen.quota.text}{finishing}"
    return Health(Kind.NEEDS_ATTENTION, Code.QUOTA_USED_UP, "quota used up", text, seen.quota.since)


def _topic(seen: Observed) -> Health | None:
    missing = seen.iterations is not None and seen.iterations.kind == "TopicMissing" and not _seen_again(seen)
    if not missing and seen.topic_exists is not False:
        return None
    goes_on = meanwhile(seen.versions)
    if seen.topic_seen_at is not None:
        stored = f" {count(seen.stored, 'row')} of it were stored before." if seen.stored else ""
        text = (
            f"Topic {seen.topic!r} has been missing since {moment(seen.topic_seen_at)}. It was deleted, or this login "
            f"no longer has permission to see it.{stored} Create it again, or change the spec.{goes_on}"
        )
        return Health(Kind.FAILED, Code.TOPIC_MISSING, "topic missing", text, seen.topic_seen_at)
    since = seen.iterations.since if seen.iterations else None
    text = f"There is no topic {seen.topic!r}, or this login has no permission to see it."
    if seen.unhealthy:
        text += f" Check its name in the spec, or create it. Headgate checks again every ioConfig.period.{goes_on}"
        return Health(Kind.FAILED, Code.TOPIC_MISSING, "topic missing", text, since)
    text += f" Reading starts when it exists.{goes_on}"
    return Health(Kind.WAITING, Code.WAITING_FOR_TOPIC, "waiting for topic", text, since)


def _seen_again(seen: Observed) -> bool:
    """Whether the topic has been looked at since an iteration missed it: its next one will find it."""
    asked, looked = seen.contacted_at, seen.topic_seen_at
    return seen.topic_exists is not False and asked is not None and looked is not None and looked > asked


def _iterations(seen: Observed) -> Health | None:
    trouble = seen.iterations
    if trouble is None:
        if seen.unhealthy and seen.detailed_state in _OF_ITERATIONS:
            text = "It has recovered. Its state turns healthy after some more successful runs."
            return Health(Kind.WORKING, Code.RECOVERING, "recovering", text)
        return None
    if trouble.kind == "TopicMissing":
        return Health(Kind.WORKING, Code.RECOVERING, "recovering", "Its topic exists again, and its task reads it.")
    if not trouble.of_stream:
        text = f"Its run failed {after_attempts(trouble.times)}: {shortened(trouble.message)}"
        return Health(Kind.FAILED, Code.UNHEALTHY, "runs failing", text, trouble.since)
    kind = Kind.FAILED if seen.unhealthy else Kind.WAITING
    if trouble.kind == "KafkaRefuses":
        text = f"{shortened(trouble.message)}. Headgate retries every ioConfig.period.{meanwhile(seen.versions)}"
        return Health(kind, Code.KAFKA_REFUSES, "Kafka refuses", text, trouble.since)
    since = f" It last answered at {moment(seen.contacted_at)}." if seen.contacted_at else " It has not answered yet."
    next_step = "Check bootstrap.servers, the login and the network."
    if seen.versions is not None:
        next_step += meanwhile(seen.versions)
    elif seen.tasks:
        next_step = "Running tasks continue when Kafka answers again."
    text = f"Kafka does not answer: {shortened(trouble.message)}.{since} {next_step}"
    return Health(kind, Code.KAFKA_UNREACHABLE, "Kafka unreachable", text, trouble.since)


def _refused(seen: Observed) -> Health | None:
    """Before all that supposes that it reads."""
    if not seen.refusal:
        return None
    refused = sum(state == "refused" for state in seen.indexer_states)
    part = "" if refused == len(seen.indexer_states) else f"{refused} of {len(seen.indexer_states)} indexers: "
    text = f"{part}{shortened(seen.refusal)}. It retries every few seconds.{meanwhile(seen.versions)}"
    return Health(Kind.FAILED, Code.KAFKA_REFUSES, "Kafka refuses", text)


def _strangers(seen: Observed) -> Health | None:
    """Before all that supposes that every partition is read here."""
    if not seen.strangers:
        return None
    text = strangers_told(seen.strangers)
    return Health(Kind.NEEDS_ATTENTION, Code.STRANGERS_IN_GROUP, "shares its group", text)


def _unattended(seen: Observed) -> Health | None:
    """Before all that promises that something happens by itself: it is rounds that do it."""
    if seen.ran_at is None or seen.now - seen.ran_at <= STALE:
        return None
    return Health(Kind.WAITING, Code.NOT_OBSERVED, "no runs", unattended(seen.ran_at, seen.tasks), seen.ran_at)


def _room(seen: Observed) -> Health | None:
    room = seen.room
    if room is None:
        return None
    text = never_enough_slots(room) if room.team is None else room.team.told(room.asked)
    if room.team is None and not room.never:
        size = f" of {room.size:,}" if room.size is not None else ""
        free = f"{room.free or 0:,}{size} {'is' if room.free == 1 else 'are'} free{room.told}"
        text = f"It needs {count(room.asked, 'slot')}; {free}. It starts when enough slots are free."
    kind = Kind.NEEDS_ATTENTION if room.never else Kind.WAITING
    label = "never enough slots" if room.never else "waiting for a slot"
    return Health(kind, Code.WAITING_FOR_SLOT, label, text, room.since)


def _failing(seen: Observed) -> Health | None:
    trouble = seen.failures
    if trouble is None or not trouble.times:
        if seen.unhealthy and seen.detailed_state == "UNHEALTHY_TASKS":
            text = "Its task reads again. Its state turns healthy after a minute of reading."
            return Health(Kind.WORKING, Code.RECOVERING, "recovering", text)
        return None
    if seen.tasks and not seen.unhealthy:
        return None  # one failure, and another task is at work
    times = "Its last task failed" if trouble.times == 1 else f"Its last {trouble.times:,} tasks have all failed"
    later = seen.next_start_at is not None and seen.next_start_at > seen.now
    then = f"the next starts at {moment(seen.next_start_at)}" if later else "another is running"
    error = f" {shortened(trouble.message)}" if trouble.message else ""
    since = f" {'at' if trouble.times == 1 else 'since'} {moment(trouble.since)}" if trouble.since else ""
    text = f"{times}{since}; {then}. The last error: {error.strip() or 'see its log.'}"
    if seen.unhealthy:
        return Health(Kind.FAILED, Code.FAILING, "failing", text + meanwhile(seen.versions), trouble.since)
    return Health(Kind.WORKING, Code.FAILING, "restarting", text, trouble.since)


def _idle(seen: Observed) -> Health | None:
    if seen.rests is None:
        return None
    finishing = " Its task publishes what it holds, and ends." if seen.tasks else ""
    return Health(Kind.WAITING, Code.IDLE, "idle", f"{seen.rests.told}{finishing}", seen.rests.since)


def _starting(seen: Observed) -> Health | None:
    if seen.tasks:
        return None
    if seen.detailed_state == "CONNECTING_TO_STREAM":
        text = "Headgate asks Kafka for the topic. The task starts when Kafka has answered."
    elif seen.next_start_at is not None and seen.next_start_at > seen.now:
        text = f"Its first task starts at {moment(seen.next_start_at)}."
    else:
        text = FIRST_TASK
    return Health(Kind.WORKING, Code.STARTING, "starting", text)


def _indexers(seen: Observed) -> Health | None:
    states = set(seen.indexer_states)
    if seen.kafka_error and seen.kafka_refuses:
        text = f"{shortened(seen.kafka_error)}. Its lag is unknown."
        return Health(Kind.FAILED, Code.KAFKA_REFUSES, "Kafka refuses", text)
    if seen.kafka_error:
        text = f"Kafka does not answer: {shortened(seen.kafka_error)}. Its task continues when Kafka answers again."
        return Health(Kind.WAITING, Code.KAFKA_UNREACHABLE, "Kafka unreachable", text)
    if states == {"paused"}:
        text = (
            f"Reading is paused: {shortened(seen.indexer_message) or 'a store refuses'}. Reading resumes automatically."
        )
        return Health(Kind.FAILED, Code.STORAGE_REFUSES, "paused", text)
    if states == {"restarting"}:
        text = f"All its indexers fail and restart: {shortened(seen.indexer_message)}"
        return Health(Kind.FAILED, Code.FAILING, "failing", text)
    return None


def _changing(seen: Observed) -> Health | None:
    if seen.versions is None:
        return None
    before, after = seen.versions
    text = f"Its task still uses version {before} of the spec. A task with version {after} takes over once it runs."
    return Health(Kind.WORKING, Code.CHANGING_SPEC, "changing spec", text)


def _nothing_stored(seen: Observed) -> Health | None:
    """What its task says of itself, as long as it has published nothing."""
    reason = seen.reason
    if reason is None:
        return None
    if reason.code in _NEED_SOMEBODY:
        return Health(Kind.NEEDS_ATTENTION, Code.NOTHING_STORED, "nothing stored", reason.text)
    if reason.code in ("topic_empty", "topic_expired", "starts_at_latest"):
        return Health(Kind.WAITING, Code.IDLE, "idle", reason.text)
    if reason.code in ("starting", "not_observed", "predecessor"):
        return Health(Kind.WORKING, Code.STARTING, "starting", reason.text)
    return None


def _behind(seen: Observed) -> Health | None:
    lag = seen.lag
    if lag is None:
        text = "Its task runs. Headgate checks the topic within a few seconds."
        return Health(Kind.WORKING, Code.STARTING, "starting", text)
    if seen.now - lag.at > STALE:
        text = f"Its lag has been unknown since {moment(lag.at)}. Are the processes `worker` and `beat` running?"
        return Health(Kind.WAITING, Code.NOT_OBSERVED, "lag unknown", text, lag.at)
    if not is_behind(lag):
        return None
    trend = trend_of(lag)
    lasts = "" if seen.behind_since is None else f" for {length(seen.now - seen.behind_since)}"
    long = lag.is_whole if seen.behind_since is None else seen.now - seen.behind_since >= PATIENCE
    kind = Kind.NEEDS_ATTENTION if long and (trend == Trend.GROWING or not lag.records_per_s) else Kind.WORKING
    text = f"{count(lag.lag, 'offset')} behind{lasts}, {_pace(seen, lag, trend)}"
    return Health(kind, Code.BEHIND, _LABELS[trend], text, seen.behind_since, lag.lag, trend)


def _quarantines(seen: Observed) -> Health | None:
    """Before all that is said of one that keeps up: what is not stored is no row."""
    lag = seen.lag
    known = lag is not None and seen.now - lag.at <= STALE and is_quarantining(lag)
    return health_of_quarantining(lag, seen.quarantining_since, seen.now) if lag is not None and known else None


def _pace(seen: Observed, lag: LagTrend, trend: Trend) -> str:
    rows = f"{lag.records_per_s or 0:,.0f} records per second"
    if trend == Trend.SHRINKING:
        left = time_left(lag)
        return f"and catching up{'' if lag.is_young else f' at {rows}'}: done in about {length(left)}."
    if lag.is_young and seen.tasks:
        return "and its indexers have just started to read."
    more = "Its autoscaler may add indexers" if seen.scales_itself else "Scale it up, or check its tasks"
    if not lag.records_per_s:
        return f"and nothing is stored: {'check its tasks and their logs' if seen.tasks else 'no task runs'}."
    how = "and growing" if trend == Trend.GROWING else "and not changing"
    return f"{how}: its {of_indexers(seen.indexers)} store {rows}. {more}."


def _holding(seen: Observed) -> Health | None:
    """All is read, and much of it is no row yet."""
    lag = seen.lag
    if lag is None or min(lag.lag, lag.before or 0) <= max(LITTLE, SOON_S * (lag.records_per_s or 0)):
        return None  # or it has come within the last minutes
    text = (
        f"{count(lag.lag, 'offset')} are not stored yet. Its indexers hold nearly all of them, and store them when "
        "they hand off."
    )
    return Health(Kind.WORKING, Code.HOLDING, "read, not stored", text, None, lag.lag, trend_of(lag))


def _well(seen: Observed) -> Health:
    lag = seen.lag
    if lag is not None and not lag.lag and not lag.records_per_s and lag.before is not None:
        # It is looked at over some minutes: nothing may have come in for days.
        late = "" if lag.is_young else f" in the last {max(1, round(lag.over.total_seconds() / 60))} min"
        text = f"All of topic {seen.topic!r} is settled. No records arrived{late}."
        return Health(Kind.WAITING, Code.IDLE, "idle", text)
    return Health(Kind.OK, Code.UP_TO_DATE, "up to date", f"It keeps up with its topic{_of_the_last_minute(lag)}.")


def _of_the_last_minute(lag: LagTrend | None) -> str:
    now = None if lag is None else lag.records_per_s_now
    if now == 0 and lag is not None and not lag.is_young:
        return "; no records arrived for a minute"
    return f" and stores {now:,.0f} records per second" if now is not None and now >= 2 else " and stores what comes in"


_OF_ITERATIONS = {"UNABLE_TO_CONNECT_TO_STREAM", "LOST_CONTACT_WITH_STREAM", "UNHEALTHY_SUPERVISOR"}
_NEED_SOMEBODY = {"share_groups_off", "all_unparseable", "all_filter_drops", "all_outside_window", "all_tombstones"}
_LABELS = {Trend.GROWING: "falling behind", Trend.STEADY: "behind", Trend.SHRINKING: "catching up"}
_RULES: tuple[Callable[[Observed], Health | None], ...] = (
    _terminated,
    _suspended,
    _quota,
    _topic,
    _iterations,
    lambda seen: seen.topics,
    _refused,
    _strangers,
    _unattended,
    _room,
    _failing,
    _idle,
    _starting,
    _indexers,
    _changing,
    _nothing_stored,
    _quarantines,
    _behind,
    _holding,
    _well,
)
