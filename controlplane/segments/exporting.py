"""Quarantined records as a file of newline-delimited JSON."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.datasources.models import Datasource
from controlplane.segments.selectors.quarantine import QuarantineFilter, export_chunks, filtered, matching
from controlplane.segments.trail import note_quarantine
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require


def export_quarantine(*, user: User, datasource: Datasource, wanted: QuarantineFilter) -> Iterator[bytes]:
    """All that match and are there now, payloads and all, in chunks. Who took them is in the audit trail.

    Raises ``NotAllowed``.
    """
    require(user, Action.VIEW, datasource.team)
    found = filtered(datasource, wanted)
    seen = matching(found)
    note_quarantine(
        user,
        datasource,
        "export",
        records=seen.records,
        **wanted.described(),
    )
    return export_chunks(found.filter(pk__lte=seen.upto))
