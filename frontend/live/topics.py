"""What a page wants to hear of: ``supervisor:orders``, ``task:…``, ``datasource:…``, or ``team`` for all it may see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from controlplane.common.changes import Change
from controlplane.common.errors import InvalidInput, NotFound
from controlplane.common.text import storable
from controlplane.datasources.models import Datasource
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from controlplane.teams.models import Membership, User

MAX_TOPICS = 20
TEAM = "team"  # whatever happens in the user's teams
EVERYTHING = "*"  # for the page: something may have been missed
_VISIBLE: dict[str, Callable[[User, str], QuerySet[Any, Any]]] = {
    "supervisor": lambda user, name: Supervisor.objects.visible_to(user).filter(pk=name),
    "task": lambda user, name: Task.objects.visible_to(user).filter(pk=name),
    "datasource": lambda user, name: Datasource.objects.visible_to(user).filter(name=name),
}


@dataclass(frozen=True)
class AudienceKey:
    """What sets apart who is told what."""

    topics: tuple[str, ...]
    teams: frozenset[int] | None  # None: all


@dataclass(frozen=True)
class Subscription:
    """What a stream is for, and what its user may hear."""

    user: int
    topics: tuple[str, ...]
    teams: frozenset[int] | None  # None: all, of the site's administrator

    @property
    def audience_key(self) -> AudienceKey:
        """Those who have it in common hear the same."""
        return AudienceKey(self.topics, self.teams)

    def matching_topics(self, change: Change, about: Sequence[str]) -> list[str]:
        """Those of the topics that a change concerns; ``about`` are all of its own."""
        if self.teams is not None and change.team not in self.teams:
            return []
        return [topic for topic in about if topic in self.topics]


def topics_of(change: Change) -> list[str]:
    """All that concern it."""
    named = {"supervisor": change.supervisor, "task": change.task, "datasource": change.datasource}
    return [*(f"{kind}:{name}" for kind, name in named.items() if name), *([TEAM] if change.team else [])]


def read_subscription(user: User, topics: Sequence[str]) -> Subscription:
    """Raises ``InvalidInput``, and ``NotFound`` for what the user does not see."""
    unique = tuple(dict.fromkeys(topics))
    if not unique or len(unique) > MAX_TOPICS:
        raise InvalidInput(f"Give 1 to {MAX_TOPICS} topics.")
    for topic in unique:
        _check(user, topic)
    team_ids = Membership.objects.filter(user_id=user.pk).values_list("team_id", flat=True)
    return Subscription(user.pk, unique, None if user.is_superuser else frozenset(team_ids))


def _check(user: User, topic: str) -> None:
    if topic == TEAM:
        return
    kind, _, name = topic.partition(":")
    if kind not in _VISIBLE or not name or not storable(name):
        raise InvalidInput(f"There is no topic {topic[:100]!r}.")
    if not _VISIBLE[kind](user, name).exists():
        raise NotFound(f"There is no {kind} {name!r}.")
