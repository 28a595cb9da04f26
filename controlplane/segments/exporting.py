"""Quarantined records as a file of newline-delimited JSON."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.datasources.models import Datasource
from controlplane.segments.selectors.quarantine import QuarantineFilter, export_chunks, filtered, matching
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require


def export_quarantine(*, user: User, datasource: Datasource, wanted: QuarantineFilter) -> Iterator[bytes]:
    """All that match and are there now, payloads and all, in chunks. Who took them is in the audit trail.

    Raises ``NotAllowed``.
    """
    require(user, Action.VIEW, datasource.team)
    found = filtered(datasource, wanted)
    seen = matching(found)
    audit.record(
        user=user,
        team=datasource.team,
        target="quarantine",
        target_id=datasource.name,
        action="export",
        records=seen.records,
        **wanted.described(),
    )
    return export_chunks(found.filter(pk__lte=seen.upto))
