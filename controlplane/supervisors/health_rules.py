"""The health of a supervisor: a pure function of what was observed. Lists, pages, REST and home all ask it.

Druid's own states stay what they are: ``Supervisor.state`` has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from controlplane.common.health import Code, Health, Kind, Trend
from controlplane.lag.trend import LagTrend
from controlplane.supervisors.health_facts import HealthFacts
from controlplane.supervisors.health_messages import (
    CHECK_PROCESSES,
    FIRST_TASK,
    FIX_CAUSE,
    attempts_text,
    count,
    duration_text,
    indexer_count,
    shortened,
    spec_change_note,
    utc,
)
from controlplane.supervisors.lag_state import is_behind, reading_rate, time_left, trend_of
from controlplane.supervisors.quarantine_health import health_of_quarantining, is_quarantining
from controlplane.supervisors.states import Detail, State
from controlplane.tasks.diagnosis import ALLOW_LOGIN, CHECK_KAFKA, CHECK_STORE, FIX_TASK, health_of_strangers
from controlplane.tasks.slot_needs import never_enough_slots

PATIENCE = timedelta(minutes=5)  # being behind for longer than this is somebody's business
STALE = timedelta(seconds=60)
SOON_S, LITTLE = 60, 100  # what comes in within so many seconds, and so few offsets, may be held until it is stored


def health_of(facts: HealthFacts) -> Health:
    """The first that applies."""
    health = next(filter(None, (rule(facts) for rule in _RULES)))
    health = replace(health, cause=f"{health.cause} {filling_text(facts)}".rstrip())
    return health if health.behind is not None or facts.lag is None else replace(health, behind=facts.lag.lag)


def filling_text(facts: HealthFacts) -> str:
    """What its backfills have still to read, or what nothing reads, as a sentence; empty without any."""
    progress, lag = facts.filling, facts.lag
    if progress is None and lag and lag.passed and lag.passed_stays and facts.terminated is None:
        return f"It has passed {count(lag.passed, 'offset')} that no running backfill reads: see its page Backfills."
    if progress is None or not progress.left:
        return ""
    done_at = "" if progress.time_left is None else f", done at about {facts.now + progress.time_left:%H:%M} UTC"
    return f"Its backfills fill {count(progress.left, 'offset')}{done_at}."


def _terminated(facts: HealthFacts) -> Health | None:
    if facts.terminated is None:
        return None
    cause = f"Terminated{facts.terminated.text}. Its segments stay.{_finishing(facts)}"
    action = "Submit its spec again to start it again."
    if facts.bounded is not None:
        left = facts.bounded.left
        cause += f" Of its offsets, {left:,} are not settled." if left else " All of its offsets are settled."
        fill = f"Fill them again on the page Backfills of {facts.fills}." if facts.fills is not None else action
        action = fill if left else ""
    return Health.of(Code.TERMINATED, cause, action, since=facts.terminated.at)


def _suspended(facts: HealthFacts) -> Health | None:
    if facts.suspended is None:
        return None
    cause = f"Suspended{facts.suspended.text}."
    if facts.tasks:
        return Health.of(Code.STOPPING, f"{cause}{_finishing(facts)}", since=facts.suspended.at)
    lag_text = f" The lag is {count(facts.lag.lag, 'offset')}." if facts.lag and facts.lag.lag else ""
    left_text = f" Of its offsets, {facts.bounded.left:,} are not settled." if facts.bounded else ""
    return Health.of(
        Code.SUSPENDED, f"{cause}{lag_text}{left_text}", "Resume it to continue.", since=facts.suspended.at
    )


def _completed(facts: HealthFacts) -> Health | None:
    if facts.detailed_state != Detail.COMPLETED or facts.bounded is None:
        return None
    return Health.of(Code.COMPLETED, f"All of its {count(facts.bounded.total, 'offset')} are settled.")


def _reading_offsets(facts: HealthFacts) -> Health | None:
    """In place of a lag, which is that of the topic."""
    progress = facts.bounded
    if progress is None or not facts.tasks:
        return None
    if facts.held_back is not None:
        held_back = facts.held_back
        return Health.of(Code.BEHIND, held_back.cause, held_back.action, label=held_back.label, behind=progress.left)
    left = f" About {duration_text(progress.time_left)} left." if progress.time_left else ""
    cause = f"{progress.done:,} of its {count(progress.total, 'offset')} are settled, {progress.percent} %.{left}"
    return Health.of(Code.BEHIND, cause, label="reading its offsets", behind=progress.left)


def _finishing(facts: HealthFacts) -> str:
    return " Its task publishes what it holds, and ends." if facts.tasks else ""


def _quota(facts: HealthFacts) -> Health | None:
    if facts.quota is None:
        return None
    quota = facts.quota
    return Health.of(Code.QUOTA_USED_UP, f"{quota.cause}{_finishing(facts)}", quota.action, since=quota.since)


def _topic(facts: HealthFacts) -> Health | None:
    missing = facts.iterations is not None and facts.iterations.kind == "TopicMissing" and not _topic_is_back(facts)
    if not missing and facts.topic_exists is not False:
        return None
    change_note = spec_change_note(facts.versions)
    if facts.topic_seen_at is not None:
        stored = f" {count(facts.stored, 'row')} of it were stored before." if facts.stored else ""
        cause = (
            f"Topic {facts.topic!r} has been missing since {utc(facts.topic_seen_at)}. It was deleted, or this login "
            f"no longer has permission to see it.{stored}{change_note}"
        )
        return Health.of(Code.TOPIC_MISSING, cause, "Create it again, or change the spec.", since=facts.topic_seen_at)
    since = facts.iterations.since if facts.iterations else None
    cause = f"There is no topic {facts.topic!r}, or this login has no permission to see it."
    if facts.unhealthy:
        cause += f" Headgate checks again every ioConfig.period.{change_note}"
        return Health.of(Code.TOPIC_MISSING, cause, "Check its name in the spec, or create it.", since=since)
    return Health.of(Code.WAITING_FOR_TOPIC, f"{cause} Reading starts when it exists.{change_note}", since=since)


def _topic_is_back(facts: HealthFacts) -> bool:
    """Whether the topic has been looked at since an iteration missed it: its next one will find it."""
    asked_at, seen_at = facts.contacted_at, facts.topic_seen_at
    return facts.topic_exists is not False and asked_at is not None and seen_at is not None and seen_at > asked_at


def _failing_runs(facts: HealthFacts) -> Health | None:
    errors = facts.iterations
    if errors is None:
        if facts.unhealthy and facts.detailed_state.state == State.UNHEALTHY_SUPERVISOR:
            runs = count(facts.runs_to_recover, "more successful run")
            return Health.of(Code.RECOVERING, f"It has recovered. Its state turns healthy after {runs}.")
        return None
    if errors.kind == "TopicMissing":
        return Health.of(Code.RECOVERING, "Its topic exists again, and its task reads it.")
    if not errors.is_of_source:
        cause = f"Its run failed {attempts_text(errors.times)}: {shortened(errors.message)}."
        return Health.of(Code.UNHEALTHY, cause, FIX_CAUSE, since=errors.since)
    kind = Kind.FAILED if facts.unhealthy else Kind.WAITING
    note = spec_change_note(facts.versions)
    if errors.kind == "KafkaRefuses":
        cause = f"{shortened(errors.message)}. Headgate retries every ioConfig.period.{note}"
        return Health.of(Code.KAFKA_REFUSES, cause, ALLOW_LOGIN, kind=kind, since=errors.since)
    if facts.contacted_at is None:
        cause, effect = f"Kafka has not answered yet: {shortened(errors.message)}.", " No task starts before it does."
    else:
        answered_at = utc(facts.contacted_at)
        cause, effect = f"Kafka does not answer: {shortened(errors.message)}. It last answered at {answered_at}.", ""
    effect = " Running tasks continue when Kafka answers again." if facts.tasks else effect
    return Health.of(Code.KAFKA_UNREACHABLE, cause + (note or effect), CHECK_KAFKA, kind=kind, since=errors.since)


def _kafka_refuses(facts: HealthFacts) -> Health | None:
    """Before all that supposes that it reads."""
    if not facts.refusal:
        return None
    refused = sum(state == "refused" for state in facts.indexer_states)
    part = "" if refused == len(facts.indexer_states) else f"{refused} of {len(facts.indexer_states)} indexers: "
    cause = f"{part}{shortened(facts.refusal)}. It retries every few seconds.{spec_change_note(facts.versions)}"
    return Health.of(Code.KAFKA_REFUSES, cause, ALLOW_LOGIN)


def _strangers(facts: HealthFacts) -> Health | None:
    """Before all that supposes that every partition is read here."""
    return health_of_strangers(facts.foreign_members) if facts.foreign_members else None


def _no_runs(facts: HealthFacts) -> Health | None:
    """Before all that promises that something happens by itself: it is rounds that do it."""
    if facts.ran_at is None or facts.now - facts.ran_at <= STALE:
        return None
    effect = "Its task continues to read" if facts.tasks else "No task starts"
    cause = f"Its last run was at {utc(facts.ran_at)}. {effect} meanwhile."
    return Health.of(Code.NOT_OBSERVED, cause, CHECK_PROCESSES, label="no runs", since=facts.ran_at)


def _no_room(facts: HealthFacts) -> Health | None:
    room = facts.slot_wait
    if room is None:
        return None
    if room.team is not None:
        return replace(room.team.wait_health(room.needed), since=room.since)
    if room.never:
        return replace(never_enough_slots(room.needed, room.size or 0), since=room.since)
    size = f" of {room.size:,}" if room.size is not None else ""
    free = f"{room.free or 0:,}{size} {'is' if room.free == 1 else 'are'} free{room.text}"
    cause = f"It needs {count(room.needed, 'slot')}; {free}. It starts when enough slots are free."
    return Health.of(Code.WAITING_FOR_SLOT, cause, since=room.since)


def _failing(facts: HealthFacts) -> Health | None:
    errors = facts.failures
    if errors is None or not errors.times:
        if facts.detailed_state == Detail.UNHEALTHY_TASKS:
            cause = "Its task reads again. Its state turns healthy after a minute of reading."
            return Health.of(Code.RECOVERING, cause)
        return None
    if facts.tasks and not facts.unhealthy:
        return None  # one failure, and another task is at work
    times = "Its last task failed" if errors.times == 1 else f"Its last {errors.times:,} tasks have all failed"
    later = facts.next_start_at is not None and facts.next_start_at > facts.now
    then = f"the next starts at {utc(facts.next_start_at)}" if later else "another is running"
    error = f" The last error: {shortened(errors.message)}." if errors.message else ""
    since = f" {'at' if errors.times == 1 else 'since'} {utc(errors.since)}" if errors.since else ""
    cause = f"{times}{since}; {then}.{error}"
    if facts.unhealthy:
        return Health.of(Code.FAILING, cause + spec_change_note(facts.versions), FIX_TASK, since=errors.since)
    return Health.of(Code.FAILING, cause, kind=Kind.WORKING, label="restarting", since=errors.since)


def _idle(facts: HealthFacts) -> Health | None:
    if facts.idleness is None:
        return None
    return Health.of(Code.IDLE, f"{facts.idleness.text}{_finishing(facts)}", since=facts.idleness.since)


def _starting(facts: HealthFacts) -> Health | None:
    if facts.tasks:
        return None
    if facts.detailed_state == Detail.CONNECTING_TO_STREAM:
        return Health.of(Code.STARTING, "Headgate asks Kafka for the topic. The task starts when Kafka has answered.")
    if facts.next_start_at is not None and facts.next_start_at > facts.now:
        return Health.of(Code.STARTING, f"Its first task starts at {utc(facts.next_start_at)}.")
    return FIRST_TASK


def _indexers(facts: HealthFacts) -> Health | None:
    states = set(facts.indexer_states)
    if facts.kafka_error and facts.kafka_refuses:
        return Health.of(Code.KAFKA_REFUSES, f"{shortened(facts.kafka_error)}. Its lag is unknown.", ALLOW_LOGIN)
    if facts.kafka_error:
        cause = f"Kafka does not answer: {shortened(facts.kafka_error)}. Its task continues when Kafka answers again."
        return Health.of(Code.KAFKA_UNREACHABLE, cause, CHECK_KAFKA)
    message = shortened(facts.indexer_message)
    if states == {"paused"}:
        cause = f"Reading is paused: {message or 'a store refuses'}. It resumes automatically."
        return Health.of(Code.STORAGE_REFUSES, cause, CHECK_STORE)
    if states == {"restarting"}:
        return Health.of(Code.FAILING, f"All its indexers fail and restart: {message or 'see its log'}.", FIX_TASK)
    return None


def _changing(facts: HealthFacts) -> Health | None:
    if facts.versions is None:
        return None
    before, after = facts.versions
    cause = f"Its task still uses version {before} of the spec. A task with version {after} takes over once it runs."
    return Health.of(Code.CHANGING_SPEC, cause)


def _nothing_stored(facts: HealthFacts) -> Health | None:
    """What its task says of itself, as long as it has published nothing."""
    reason = facts.reason
    code = _CODES_OF_REASONS.get(reason.code) if reason else None
    return Health.of(code, reason.cause, reason.action) if reason and code else None


def _behind(facts: HealthFacts) -> Health | None:
    lag = facts.lag
    if lag is None:
        return Health.of(Code.STARTING, "Its task runs. Headgate checks the topic within a few seconds.")
    if facts.now - lag.at > STALE:
        cause = f"Its lag has been unknown since {utc(lag.at)}."
        return Health.of(Code.NOT_OBSERVED, cause, CHECK_PROCESSES, label="lag unknown", since=lag.at)
    if not is_behind(lag):
        return None
    trend = trend_of(lag)
    lasts_text = "" if facts.behind_since is None else f" for {duration_text(facts.now - facts.behind_since)}"
    is_long = lag.has_full_window if facts.behind_since is None else facts.now - facts.behind_since >= PATIENCE
    rate = reading_rate(lag) if trend == Trend.SHRINKING else lag.records_per_s
    calls = is_long and (trend == Trend.GROWING or not rate)
    pace, action = _pace_and_action(facts, lag, trend)
    return Health.of(
        Code.BEHIND,
        f"{count(lag.ahead, 'offset')} behind{lasts_text}, {pace}",
        action,
        kind=Kind.NEEDS_ATTENTION if calls else Kind.WORKING,
        label=_LABELS[trend],
        since=facts.behind_since,
        behind=lag.lag,
        trend=trend,
    )


def _quarantining(facts: HealthFacts) -> Health | None:
    """Before all that is said of one that keeps up: what is not stored is no row."""
    lag = facts.lag
    is_recent = lag is not None and facts.now - lag.at <= STALE and is_quarantining(lag)
    return health_of_quarantining(lag, facts.quarantining_since, facts.now) if lag is not None and is_recent else None


def _pace_and_action(facts: HealthFacts, lag: LagTrend, trend: Trend) -> tuple[str, str]:
    rows = f"{count(round(lag.records_per_s or 0), 'record')} per second"
    left = time_left(lag) if trend == Trend.SHRINKING else None
    if left is not None:
        pace = "" if lag.is_too_new or not lag.records_per_s else f" at {rows}"
        return f"and catching up{pace}: done in about {duration_text(left)}.", ""
    if lag.is_too_new and facts.tasks:
        return "and its indexers have just started to read.", ""
    if not lag.records_per_s:
        return (
            ("and nothing is stored.", "Check its tasks and their logs.")
            if facts.tasks
            else ("and nothing is stored: no task runs.", "")
        )
    direction = "and growing" if trend == Trend.GROWING else "and not changing"
    verb = "stores" if facts.indexers == 1 else "store"
    pace = f"{direction}: its {indexer_count(facts.indexers)} {verb} {rows}."
    if facts.scales_itself:
        return f"{pace} Its autoscaler may add indexers.", "If it has reached taskCountMax, raise that."
    return pace, "Scale it up, or check its tasks."


def _holding(facts: HealthFacts) -> Health | None:
    """All is read, and much of it is no row yet."""
    lag = facts.lag
    if lag is None or min(lag.ahead, lag.before or 0) <= max(LITTLE, SOON_S * (lag.records_per_s or 0)):
        return None  # or it has come within the last minutes
    cause = (
        f"{count(lag.ahead, 'offset')} are not stored yet. Its indexers hold nearly all of them, and store them when "
        "they hand off."
    )
    return Health.of(Code.HOLDING, cause, behind=lag.lag, trend=trend_of(lag))


def _up_to_date(facts: HealthFacts) -> Health:
    lag = facts.lag
    if lag is not None and not lag.lag and not lag.records_per_s and lag.before is not None:
        # It is looked at over some minutes: nothing may have come in for days.
        period = "" if lag.is_too_new else f" in the last {max(1, round(lag.elapsed.total_seconds() / 60))} min"
        return Health.of(Code.IDLE, f"All of topic {facts.topic!r} is settled. No records arrived{period}.")
    is_filled = facts.filling is not None  # then the rate is not the reader's alone
    return Health.of(Code.UP_TO_DATE, f"It keeps up with its topic{_last_minute_text(None if is_filled else lag)}.")


def _last_minute_text(lag: LagTrend | None) -> str:
    now = None if lag is None else lag.records_per_s_now
    if now == 0 and lag is not None and not lag.is_too_new:
        return "; no records arrived for a minute"
    return f" and stores {now:,.0f} records per second" if now is not None and now >= 2 else " and stores what comes in"


_CODES_OF_REASONS: dict[str, Code] = {
    **dict.fromkeys((Code.TOPIC_EMPTY, Code.TOPIC_EXPIRED, Code.STARTS_AT_LATEST), Code.IDLE),
    **dict.fromkeys((Code.STARTING, Code.NOT_OBSERVED, Code.PREDECESSOR), Code.STARTING),
    **dict.fromkeys((Code.SHARE_GROUPS_OFF, Code.ALL_UNPARSEABLE, Code.ALL_FILTER_DROPS), Code.NOTHING_STORED),
    **dict.fromkeys((Code.ALL_OUTSIDE_WINDOW, Code.ALL_TOMBSTONES), Code.NOTHING_STORED),
}
_LABELS = {Trend.GROWING: "falling behind", Trend.STEADY: "behind", Trend.SHRINKING: "catching up"}
_RULES: tuple[Callable[[HealthFacts], Health | None], ...] = (
    _terminated,
    _suspended,
    _completed,
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
    _reading_offsets,
    _nothing_stored,
    _quarantining,
    _behind,
    _holding,
    _up_to_date,
)
