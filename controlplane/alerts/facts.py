"""What is known of what rules are about, asked once for all of them: a few statements however many rules there are.

None of it is worked out here: health_by_id, completeness and counts come from those who know them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.alerts.models import AboutKind
from controlplane.alerts.recent_counts import count_parse_errors, count_quarantined, newest_alarms
from controlplane.datasources.models import Datasource
from controlplane.supervisors.completeness import completeness_of
from controlplane.supervisors.health_queries import health_facts
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.unread_times import countdowns
from controlplane.teams.models import User

NOBODY = User(is_active=False)  # to whom a health names no supervisor of others


@dataclass(frozen=True)
class Subject:
    """What a rule is about."""

    about: AboutKind
    name: str
    datasource: Datasource  # itself, or what it fills
    supervisor: Supervisor | None = None


Params = Mapping[str, Any]
Key = Hashable


@dataclass(frozen=True)
class Source:
    """Where facts come from."""

    key: Callable[[Subject, Params], Key]  # by what a subject's are asked for
    read: Callable[[Sequence[Subject], Sequence[Any]], Mapping[Any, Any]]  # those of all keys, by key


def _read_health(subjects: Sequence[Subject], _: Sequence[Any]) -> Mapping[Any, Any]:
    return health_facts(NOBODY, {s.name: s.supervisor for s in subjects if s.supervisor is not None}.values())


def _read_countdowns(subjects: Sequence[Subject], _: Sequence[Any]) -> Mapping[Any, Any]:
    return countdowns({s.name: s.supervisor for s in subjects if s.supervisor is not None}.values())


def _read_completeness(subjects: Sequence[Subject], _: Sequence[Any]) -> Mapping[Any, Any]:
    return completeness_of({s.datasource.pk: s.datasource for s in subjects}.values())


SOURCES = {
    "observed": Source(lambda s, _: s.name, _read_health),
    "unread": Source(lambda s, _: s.name, _read_countdowns),
    "completeness": Source(lambda s, _: s.datasource.pk, _read_completeness),
    "parse_errors": Source(
        lambda s, params: (s.datasource.pk, params["window_s"]), lambda _, keys: count_parse_errors(keys)
    ),
    "quarantined": Source(
        lambda s, params: (s.datasource.pk, params["cause"], params["window_s"], params["most"]),
        lambda _, keys: count_quarantined(keys),
    ),
    "alarms": Source(lambda s, _: s.datasource.pk, lambda _, keys: newest_alarms(keys)),
}


class Facts:
    """``requests``: which source, of what, with which parameters."""

    def __init__(self, requests: Iterable[tuple[str, Subject, Params]]) -> None:
        self._subjects: dict[str, dict[Key, Subject]] = {}
        for source, subject, params in requests:
            self._subjects.setdefault(source, {})[SOURCES[source].key(subject, params)] = subject
        self._read = {
            source: SOURCES[source].read(list(by_key.values()), list(by_key))
            for source, by_key in self._subjects.items()
        }

    def value(self, source: str, subject: Subject, params: Params) -> Any:
        """None where nothing is known."""
        return self._read[source].get(SOURCES[source].key(subject, params))
