"""The limits of teams that the pool of indexers keeps to."""

from __future__ import annotations

from django.db.models import F, Q

from controlplane.teams.models import Quota


def limits_of_teams() -> dict[str, tuple[int | None, bool]]:
    """By team: how many indexers it may run at once, and whether none of its tasks may start; those without are left
    out.
    """
    some = Quota.objects.filter(Q(indexers__isnull=False) | ~Q(used_up=Quota.UsedUp.NO))
    rows = some.values_list(F("team__name"), "indexers", "used_up")
    return {team: (indexers, bool(used_up)) for team, indexers, used_up in rows}
