"""Drafts of a datasource that goes to another team."""

from __future__ import annotations

from controlplane.datasources.models import Datasource
from controlplane.loading import samples
from controlplane.loading.models import Draft
from controlplane.transfers.services import on_transfer


@on_transfer
def forget_drafts(datasource: Datasource) -> None:
    """Drafts that change its supervisors hold their specs, sealed secrets and records: they stay with nobody."""
    for draft in Draft.objects.filter(supervisor__datasource=datasource):
        samples.delete_sample(draft)
        draft.delete()
