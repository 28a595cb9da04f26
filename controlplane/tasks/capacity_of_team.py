"""The pool of indexers as one team sees it."""

from __future__ import annotations

from controlplane.quotas.services import limits_of_teams
from controlplane.tasks.capacity import Pool, running, shown, slots_of


def shown_of(team: str) -> Pool:
    """The places that the team's tasks have, with its own limit, and which of its tasks wait; of all for no name."""
    whole = shown()
    if not team:
        return whole
    size, _ = limits_of_teams().get(team, (None, False))
    waiting = [asking for asking in whole.waiting if asking.team == team]
    # On a cluster of Spark those that wait for a core are launched, and have none.
    mine = running().filter(datasource__team__name=team)
    mine = mine.filter(without_slot_since=None) if whole.of_spark else mine
    return Pool(size=size, used=sum(map(slots_of, mine)), waiting=waiting, of_spark=whole.of_spark)
