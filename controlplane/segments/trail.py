"""What the audit trail says of a datasource's quarantine."""

from __future__ import annotations

from typing import Any

from controlplane.datasources.models import Datasource
from controlplane.teams import audit
from controlplane.teams.models import User


def note_quarantine(user: User | None, datasource: Datasource, action: str, **detail: Any) -> None:
    """Add an entry; see ``audit.record``."""
    audit.record(
        user=user, team=datasource.team, target="quarantine", target_id=datasource.name, action=action, **detail
    )
