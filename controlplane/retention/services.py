"""What people do to segments: take them out of use, and put them back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from controlplane.common.errors import Conflict
from controlplane.datasources.models import Datasource
from controlplane.retention.retention_preview import check_bound, not_restorable
from controlplane.segments import killing, marking
from controlplane.segments.marking import Amount, SegmentSelection
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require

MAX_NAMED = 5  # segments that a refusal names


@dataclass(frozen=True)
class Restored:
    """What was put back into use, and of what was not, why: reason → segments."""

    amount: Amount
    passed_over: dict[str, int] = field(default_factory=dict)


def mark_unused(*, user: User, datasource: Datasource, chosen: SegmentSelection) -> Amount:
    """Take segments out of use; nobody reads them any more, and after a while their files go. Needs the role admin.

    Raises ``InvalidInput`` for too many at once.
    """
    require(user, Action.ADMINISTER, datasource.team)
    check_bound(datasource, chosen, used=True)
    what = _describe(chosen)
    amount = marking.mark_unused(datasource, chosen, by=user.get_username(), what=what)
    _record(user, datasource, "mark_unused", what, amount)
    return amount


def mark_used(*, user: User, datasource: Datasource, chosen: SegmentSelection) -> Restored:
    """Put segments back into use that were marked unused. Needs the role admin.

    What can't be is passed over. Raises ``Conflict`` when it was named by its id; nothing is changed then.
    ``InvalidInput`` for too many at once.
    """
    require(user, Action.ADMINISTER, datasource.team)
    check_bound(datasource, chosen, used=False)
    blocked = not_restorable(datasource, chosen)
    if blocked and chosen.ids is not None:
        names = "; ".join(f"{s.identifier} {why}" for s, why in blocked[:MAX_NAMED])
        more = f"; and {len(blocked) - MAX_NAMED:,} more" if len(blocked) > MAX_NAMED else ""
        raise Conflict(f"Not all of these can be marked used: {names}{more}.")
    excluded = frozenset(s.pk for s, _ in blocked)
    amount = marking.mark_used(datasource, replace(chosen, excluded_ids=excluded))
    _record(user, datasource, "mark_used", _describe(chosen), amount)
    return Restored(amount, dict(Counter(why for _, why in blocked)))


def kill(*, user: User, datasource: Datasource, chosen: SegmentSelection, dry_run: bool) -> Amount:
    """Have the files of unused segments deleted for good, as soon as no reader's lease holds them; how many.

    Nobody can use them again from now on. With ``dry_run`` nothing is changed. Needs the role admin.
    """
    require(user, Action.ADMINISTER, datasource.team)
    if dry_run:
        return killing.amount_of(killing.deletable_segments(datasource, chosen))
    amount = marking.give_up(datasource, chosen)
    _record(user, datasource, "kill", _describe(chosen), amount)
    return amount


def _describe(chosen: SegmentSelection) -> str:
    if chosen.ids is not None:
        return "1 segment by its id" if len(chosen.ids) == 1 else f"{len(chosen.ids):,} segments by their ids"
    if chosen.start is None or chosen.end is None:
        return "the whole datasource"
    versions = f", of version {', '.join(sorted(chosen.versions)[:MAX_NAMED])}" if chosen.versions else ""
    return f"{_day(chosen.start.isoformat())} to {_day(chosen.end.isoformat())}{versions}"


def _day(time: str) -> str:
    return time.removesuffix("+00:00").removesuffix("T00:00:00")


def _record(user: User, datasource: Datasource, action: str, what: str, amount: Amount) -> None:
    audit.record(
        user=user,
        team=datasource.team,
        target="datasource",
        target_id=datasource.name,
        action=action,
        what=what,
        segments=amount.segments,
        rows=amount.rows,
        size_bytes=amount.size_bytes,
    )
