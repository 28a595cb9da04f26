"""The pool of indexers as one team sees it."""

from __future__ import annotations

from controlplane.tasks.capacity import Pool, places_by_team, shown
from controlplane.tasks.team_limits import limits_of_teams


def shown_of(team: str) -> Pool:
    """The places that the team's tasks have, with its own limit, and which of its tasks wait; of all for no name."""
    whole = shown()
    if not team:
        return whole
    size, _ = limits_of_teams().get(team, (None, False))
    waiting = [asking for asking in whole.waiting if asking.team == team]
    return Pool(size=size, used=places_by_team().get(team, 0), waiting=waiting, of_spark=whole.of_spark)
