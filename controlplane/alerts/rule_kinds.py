"""The kinds of rules: a table. A new one is an entry: its parameters, where its facts come from, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from controlplane.alerts.facts import Params, Subject
from controlplane.alerts.models import AboutKind
from controlplane.alerts.recent_counts import ParseErrors, Quarantined
from controlplane.common.errors import FieldError
from controlplane.common.health import Code, Health
from controlplane.common.health import Kind as HealthKind
from controlplane.common.text import storable
from controlplane.sources.models import SourceEvent
from controlplane.supervisors.completeness import Completeness
from controlplane.supervisors.health_facts import HealthFacts
from controlplane.supervisors.health_messages import count, duration_text, shortened, utc
from controlplane.supervisors.health_rules import STALE, health_of
from controlplane.supervisors.lag_state import is_behind
from controlplane.supervisors.retention_countdown import Code as Expiry
from controlplane.supervisors.retention_countdown import Countdown
from ingestion.specs.causes import FINGERPRINT_LENGTH, cause_of
from ingestion.specs.limits import in_one_line

DAY_S = 86_400
MAX_INTERVALS = 24  # that are told in one round: the rest follow in the next
EVERY = {"hour": timedelta(hours=1), "day": timedelta(days=1)}
# On its way to something, or not looked at: neither well nor bad.
_UNDECIDED = {Code.STARTING, Code.NOT_OBSERVED, Code.RECOVERING, Code.KAFKA_UNREACHABLE, Code.STOPPING}
Interval = tuple[datetime, datetime]


@dataclass(frozen=True)
class Evaluation:
    """The health of a subject, as far as a kind of rules looks at it."""

    health: Health
    value: float | None = None

    @property
    def condition_holds(self) -> bool | None:
        """None: it is not known."""
        return None if self.health.code in _UNDECIDED and not self.health.calls else self.health.calls


Decide = Callable[[Any, Subject, Params, datetime], Evaluation]


@dataclass(frozen=True)
class Param:
    """What a rule of this kind says beside itself."""

    name: str
    label: str
    default: Any
    unit: Literal["s", "count", "percent", "text", "choice"] = "count"
    least: int = 1
    most: int = 10**9
    choices: tuple[str, ...] = ()

    def fault(self, value: Any) -> str:
        """Why it can't be this; empty: it can."""
        if self.unit == "choice":
            return "" if value in self.choices else f"must be one of {', '.join(self.choices)}"
        if self.unit == "text":
            fits = (
                isinstance(value, str) and len(value) <= FINGERPRINT_LENGTH and storable(value) and in_one_line(value)
            )
            return "" if fits else f"must be a text of at most {FINGERPRINT_LENGTH} characters"
        in_range = isinstance(value, int) and not isinstance(value, bool) and self.least <= value <= self.most
        return "" if in_range else f"must be a whole number from {self.least:,} to {self.most:,}"


@dataclass(frozen=True)
class Kind:
    """One entry of the table."""

    code: str
    label: str
    about: AboutKind
    source: str  # of ``facts.SOURCES``
    decide: Decide
    text: str  # what it is for
    params: tuple[Param, ...] = ()
    hold_s: int = 0
    clear_s: int = 60
    # Of what is told by intervals, and does not fire: those that are complete now, after the last that was told.
    intervals: Callable[[Any, Params, datetime | None], list[Interval]] | None = field(default=None)

    def checked(self, params: Any) -> tuple[dict[str, Any], list[FieldError]]:
        """The parameters, with defaults for those left out, and every fault of them."""
        if not isinstance(params, dict):
            return {}, [FieldError("/params", "must be an object", "params")]
        by_name = {p.name: p for p in self.params}
        faults = [
            FieldError(f"/params/{name}", f"is no parameter of the kind {self.code}", f"params.{name}")
            for name in params
            if name not in by_name
        ]
        values = {name: params.get(name, p.default) for name, p in by_name.items()}
        faults += [
            FieldError(f"/params/{name}", fault, f"params.{name}")
            for name, p in by_name.items()
            if (fault := p.fault(values[name]))
        ]
        return values, faults


_READ_SOONER = "Raise the topic's retention.ms now, or its number of indexers."


def _evaluation(bad: bool, code: Code, cause: str, action: str, value: float | None = None) -> Evaluation:
    return Evaluation(Health.of(code, cause, action) if bad else Health.of(Code.UP_TO_DATE, cause), value)


def _unknown(cause: str) -> Evaluation:
    return Evaluation(Health.of(Code.NOT_OBSERVED, cause))


def _unhealthy(observed: HealthFacts | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    return _unknown("Its health is not known yet.") if observed is None else Evaluation(health_of(observed))


def _behind(observed: HealthFacts | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    if observed is None or observed.lag is None:
        return _unknown("Its lag is not known yet.")
    if observed.suspended is not None:
        return Evaluation(Health.of(Code.SUSPENDED, "It is suspended."))
    if now - observed.lag.at > STALE:
        return _unknown(f"Its lag is not known since {utc(observed.lag.at)}.")
    if not is_behind(observed.lag):
        return Evaluation(Health.of(Code.UP_TO_DATE, "It keeps up with its topic."), observed.lag.lag)
    health = health_of(observed)
    behind_for = None if observed.behind_since is None else now - observed.behind_since
    bad = behind_for is None or behind_for >= timedelta(seconds=params["age_s"])
    lag_text = "" if health.code == Code.BEHIND else f"Lag: {count(observed.lag.lag, 'record')}. "
    kind = HealthKind.NEEDS_ATTENTION if bad else HealthKind.WORKING
    stated = Health.of(Code.BEHIND, f"{lag_text}{health.cause}", health.action, kind=kind)
    return Evaluation(stated, observed.lag.lag)


def _expiring(countdown: Countdown | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    if countdown is None:
        return Evaluation(Health.of(Code.UP_TO_DATE, "No unread record is older than a minute."))
    left = countdown.left(now)
    if left is None:
        known = countdown.code != Expiry.UNKNOWN
        return Evaluation(Health.of(Code.UP_TO_DATE, countdown.text)) if known else _unknown(countdown.text)
    bad = countdown.is_short(timedelta(seconds=params["left_s"]), now)
    return _evaluation(bad, Code.EXPIRING, countdown.text, _READ_SOONER, left.total_seconds())


def _no_data(completeness: Completeness | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    last = completeness.last_publish_at if completeness else None
    age = now - (last or subject.datasource.created_at)
    bad = age.total_seconds() >= params["age_s"]
    when = (
        f"since {utc(last)}, for {duration_text(age)}" if last else f"in the {duration_text(age)} since it was created"
    )
    cause = f"Nothing was published into it {when}." if bad else "Data arrives."
    why = f" {completeness.reason}" if completeness and completeness.reason else ""
    action = "Check that its supervisors read, and that records arrive in their topics."
    return _evaluation(bad, Code.NO_DATA, f"{cause}{why}", action, age.total_seconds())


_NOT_KNOWN = "Headgate does not know yet until when the datasource is complete."


def _incomplete(completeness: Completeness | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    if completeness is None or completeness.complete_until is None:
        return _unknown(completeness.reason if completeness and completeness.reason else _NOT_KNOWN)
    age = now - completeness.complete_until
    until = f"It is complete until {utc(completeness.complete_until)}, {duration_text(age)} ago."
    cause, bad = f"{until} {completeness.reason}".rstrip(), age.total_seconds() >= params["age_s"]
    action = "View its supervisors: their health says why."
    return _evaluation(bad, Code.INCOMPLETE, cause, action, age.total_seconds())


def _parse_errors(recent: ParseErrors | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    recent = recent or ParseErrors(0, 0)
    share = 100 * recent.errors / recent.records if recent.records else 0.0
    within = duration_text(timedelta(seconds=params["window_s"]))
    cause = (
        f"{recent.errors:,} of {count(recent.records, 'record')} ({share:.1f} %) in the last {within} had errors: "
        "Headgate could not read them, or read only a part."
    )
    bad = recent.errors > params["most"] and share >= params["percent"]
    action = "View the quarantined records. Fix the spec or the producer."
    return _evaluation(bad, Code.PARSE_ERRORS, cause, action, recent.errors)


def _quarantined(recent: Quarantined | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    within = duration_text(timedelta(seconds=params["window_s"]))
    if recent is None:
        return Evaluation(Health.of(Code.UP_TO_DATE, f"No record was quarantined within {within}."), 0)
    bad = recent.records >= params["most"]
    more = " or more" if bad else ""
    were = "was" if recent.records == 1 and not bad else "were"
    # Without what is the record's own: not all who are told may see that.
    last = cause_of("", recent.error).title.rstrip(".")
    cause = f"{count(recent.records, 'record')}{more} {were} quarantined within {within}. The last: {last}."
    return _evaluation(bad, Code.QUARANTINED, cause, "Fix the spec, then replay the records.", recent.records)


def _alarm(alarm: SourceEvent | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    if alarm is None or now - alarm.created_at > timedelta(seconds=params["window_s"]):
        return Evaluation(Health.of(Code.UP_TO_DATE, "No recent alarm."))
    cause = f"{alarm.get_kind_display()}: {shortened(alarm.detail)}."
    return Evaluation(Health.of(Code.ALARM, cause, "View the event. Acknowledge it when its cause is resolved."))


def _completeness(completeness: Completeness | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    if completeness is None or completeness.complete_until is None:
        return _unknown(completeness.reason if completeness and completeness.reason else _NOT_KNOWN)
    return Evaluation(Health.of(Code.UP_TO_DATE, f"It is complete until {utc(completeness.complete_until)}."))


def _complete_intervals(completeness: Completeness | None, params: Params, mark: datetime | None) -> list[Interval]:
    """Those that have become complete since ``mark``; with none, the one that did last, which is then a beginning."""
    if completeness is None or completeness.complete_until is None:
        return []
    step = EVERY[params["every"]]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    last = epoch + (completeness.complete_until - epoch) // step * step
    if mark is None:
        return [(last - step, last)]
    ended = [mark + step * n for n in range(1, MAX_INTERVALS + 1) if mark + step * n <= last]
    return [(end - step, end) for end in ended]


def _age_param(default_s: int) -> Param:
    return Param("age_s", "For longer than (s)", default_s, "s", 10, 90 * DAY_S)


_WINDOW = Param("window_s", "Within (s)", 600, "s", 60, DAY_S)
_SUPERVISOR, _DATASOURCE = AboutKind.SUPERVISOR, AboutKind.DATASOURCE
KINDS = {
    kind.code: kind
    for kind in (
        Kind(
            "unhealthy",
            "Unhealthy",
            _SUPERVISOR,
            "observed",
            _unhealthy,
            "A supervisor fails or needs attention.",
            hold_s=60,
            clear_s=120,
        ),
        Kind(
            "behind",
            "Behind",
            _SUPERVISOR,
            "observed",
            _behind,
            "A supervisor is behind its topic for longer than this time.",
            (_age_param(900),),
        ),
        Kind(
            "expiring",
            "Unread records expire",
            _SUPERVISOR,
            "unread",
            _expiring,
            "Kafka may delete unread records within this time, or within a quarter of the topic's retention.",
            (Param("left_s", "Within less than (s)", 21_600, "s", 60, 90 * DAY_S),),
        ),
        Kind(
            "no_data",
            "No data",
            _DATASOURCE,
            "completeness",
            _no_data,
            "Nothing was published into a datasource for longer than this time.",
            (_age_param(3600),),
        ),
        Kind(
            "incomplete",
            "Not complete",
            _DATASOURCE,
            "completeness",
            _incomplete,
            "The Complete until time of a datasource is more than this far in the past.",
            (_age_param(3600),),
        ),
        Kind(
            "parse_errors",
            "Parse errors",
            _DATASOURCE,
            "parse_errors",
            _parse_errors,
            "More than this number of records could not be read, or only in part.",
            (
                Param("most", "More than (records)", 100, least=0),
                Param("percent", "And at least (% of all)", 0, "percent", 0, 100),
                _WINDOW,
            ),
        ),
        Kind(
            "quarantined",
            "Quarantine grew",
            _DATASOURCE,
            "quarantined",
            _quarantined,
            "At least this number of records were quarantined, for any cause or one cause.",
            (
                Param("most", "By (records)", 100, most=100_000),
                _WINDOW,
                Param("cause", "Cause (fingerprint; empty: any)", "", "text"),
            ),
        ),
        Kind(
            "alarm",
            "Alarm",
            _DATASOURCE,
            "alarms",
            _alarm,
            "A datasource has a recent alarm: a task failed, or data may be missing.",
            (Param("window_s", "Within (s)", 3600, "s", 60, DAY_S),),
            clear_s=0,
        ),
        Kind(
            "complete",
            "Interval complete",
            _DATASOURCE,
            "completeness",
            _completeness,
            "Notifies once for each hour or day of a datasource when it is complete. It never fires.",
            (Param("every", "Each", "hour", "choice", choices=tuple(EVERY)),),
            intervals=_complete_intervals,
        ),
    )
}
