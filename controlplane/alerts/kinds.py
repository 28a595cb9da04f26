"""The kinds of rules: a table. A new one is an entry: its parameters, where its facts come from, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from controlplane.alerts.alert_state import Evaluation
from controlplane.alerts.facts import Params, Subject
from controlplane.alerts.models import AboutKind
from controlplane.alerts.recent_counts import ParseErrors, Quarantined
from controlplane.common.errors import FieldError
from controlplane.common.text import in_one_line, storable
from controlplane.sources.models import SourceEvent
from controlplane.supervisors.behind import is_behind
from controlplane.supervisors.completeness import Completeness
from controlplane.supervisors.health import Code
from controlplane.supervisors.health_messages import count, length, moment, shortened
from controlplane.supervisors.health_rules import STALE, Observed, health_of
from ingestion.specs.causes import FINGERPRINT_LENGTH, cause_of

DAY_S = 86_400
MOST_INTERVALS = 24  # that are told in one round: the rest follow in the next
EVERY = {"hour": timedelta(hours=1), "day": timedelta(days=1)}
# On its way to something, or not looked at: neither well nor bad.
_UNDECIDED = {Code.STARTING, Code.NOT_OBSERVED, Code.RECOVERING, Code.KAFKA_UNREACHABLE, Code.STOPPING}
Interval = tuple[datetime, datetime]
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
        whole = isinstance(value, int) and not isinstance(value, bool) and self.least <= value <= self.most
        return "" if whole else f"must be a whole number from {self.least:,} to {self.most:,}"


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

    def checked(self, given: Any) -> tuple[dict[str, Any], list[FieldError]]:
        """The parameters, with defaults for those left out, and every fault of them."""
        if not isinstance(given, dict):
            return {}, [FieldError("/params", "must be an object", "params")]
        known = {p.name: p for p in self.params}
        faults = [
            FieldError(f"/params/{name}", f"is no parameter of the kind {self.code}", f"params.{name}")
            for name in given
            if name not in known
        ]
        values = {name: given.get(name, p.default) for name, p in known.items()}
        faults += [
            FieldError(f"/params/{name}", fault, f"params.{name}")
            for name, p in known.items()
            if (fault := p.fault(values[name]))
        ]
        return values, faults


def _unhealthy(seen: Observed | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    if seen is None:
        return Evaluation(None, "Its health is not known yet.")
    said = health_of(seen)
    if said.calls:
        return Evaluation(True, said.text)
    return Evaluation(None if said.code in _UNDECIDED else False, said.text)


def _behind(seen: Observed | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    if seen is None or seen.lag is None:
        return Evaluation(None, "Its lag is not known yet.")
    if seen.suspended is not None:
        return Evaluation(False, "It is suspended.")
    if now - seen.lag.at > STALE:
        return Evaluation(None, f"Its lag is not known since {moment(seen.lag.at)}.")
    if not is_behind(seen.lag):
        return Evaluation(False, "It keeps up with its topic.", seen.lag.lag)
    said = health_of(seen)
    lasts = None if seen.behind_since is None else now - seen.behind_since
    bad = lasts is None or lasts >= timedelta(seconds=params["age_s"])
    text = said.text if said.code == Code.BEHIND else f"Lag: {count(seen.lag.lag, 'record')}. {said.text}"
    return Evaluation(bad, text, seen.lag.lag)


def _no_data(seen: Completeness | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    last = seen.last_publish_at if seen else None
    age = now - (last or subject.datasource.created_at)
    what = f"since {moment(last)}, for {length(age)}" if last else f"in the {length(age)} since it was created"
    text = f"Nothing was published into it {what}." if age.total_seconds() >= params["age_s"] else "Data arrives."
    why = f" {seen.reason}" if seen and seen.reason else ""
    return Evaluation(age.total_seconds() >= params["age_s"], f"{text}{why}", age.total_seconds())


_NOT_KNOWN = "Headgate does not know yet until when the datasource is complete."


def _incomplete(seen: Completeness | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    if seen is None or seen.complete_until is None:
        return Evaluation(None, seen.reason if seen and seen.reason else _NOT_KNOWN)
    age = now - seen.complete_until
    text = f"It is complete until {moment(seen.complete_until)}, {length(age)} ago. {seen.reason}".rstrip()
    return Evaluation(age.total_seconds() >= params["age_s"], text, age.total_seconds())


def _parse_errors(seen: ParseErrors | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    seen = seen or ParseErrors(0, 0)
    share = 100 * seen.errors / seen.records if seen.records else 0.0
    within = length(timedelta(seconds=params["window_s"]))
    text = (
        f"{seen.errors:,} of {count(seen.records, 'record')} ({share:.1f} %) in the last {within} had errors: Headgate "
        "could not read them, or read only a part."
    )
    bad = seen.errors > params["most"] and share >= params["percent"]
    return Evaluation(bad, text, seen.errors)


def _quarantined(seen: Quarantined | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    within = length(timedelta(seconds=params["window_s"]))
    if seen is None:
        return Evaluation(False, f"No record was quarantined within {within}.", 0)
    bad = seen.records >= params["most"]
    more = " or more" if bad else ""
    were = "was" if seen.records == 1 and not bad else "were"
    # Without what is the record's own: not all who are told may see that.
    last = cause_of("", seen.error).title.rstrip(".")
    text = f"{count(seen.records, 'record')}{more} {were} quarantined within {within}. The last: {last}."
    return Evaluation(bad, text, seen.records)


def _alarm(seen: SourceEvent | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    if seen is None or now - seen.created_at > timedelta(seconds=params["window_s"]):
        return Evaluation(False, "No recent alarm.")
    return Evaluation(True, f"{seen.get_kind_display()}: {shortened(seen.detail)}.")


def _until(seen: Completeness | None, subject: Subject, params: Params, now: datetime) -> Evaluation:
    if seen is None or seen.complete_until is None:
        return Evaluation(None, seen.reason if seen and seen.reason else _NOT_KNOWN)
    return Evaluation(False, f"It is complete until {moment(seen.complete_until)}.")


def _intervals(seen: Completeness | None, params: Params, mark: datetime | None) -> list[Interval]:
    """Those that have become complete since ``mark``; with none, the one that did last, which is then a beginning."""
    if seen is None or seen.complete_until is None:
        return []
    step = EVERY[params["every"]]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    last = epoch + (seen.complete_until - epoch) // step * step
    if mark is None:
        return [(last - step, last)]
    ended = [mark + step * n for n in range(1, MOST_INTERVALS + 1) if mark + step * n <= last]
    return [(end - step, end) for end in ended]


def _age(default_s: int) -> Param:
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
            (_age(900),),
        ),
        Kind(
            "no_data",
            "No data",
            _DATASOURCE,
            "completeness",
            _no_data,
            "Nothing was published into a datasource for longer than this time.",
            (_age(3600),),
        ),
        Kind(
            "incomplete",
            "Not complete",
            _DATASOURCE,
            "completeness",
            _incomplete,
            "The Complete until time of a datasource is more than this far in the past.",
            (_age(3600),),
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
            _until,
            "Notifies once for each hour or day of a datasource when it is complete. It never fires.",
            (Param("every", "Each", "hour", "choice", choices=tuple(EVERY)),),
            intervals=_intervals,
        ),
    )
}
