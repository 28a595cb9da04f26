"""The history of a supervisor's spec: who made each version and when, what it changed, and what ended it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from controlplane.common.spec_text import DiffLine, spec_diff
from controlplane.connections.secrets import SecretsLost, unseal
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.selectors import versions
from controlplane.tasks.selectors import shown_spec
from ingestion.specs.kafka import secrets as spec_secrets
from ingestion.specs.tasks.ingestion_spec import SupervisorSpec


@dataclass(frozen=True)
class SpecChange:
    """What is different in one version from another."""

    diff: list[DiffLine]
    secrets: bool | None  # whether any of them changed; None: they can't be opened


@dataclass(frozen=True)
class Tombstone:
    """The supervisor was terminated."""

    at: datetime
    by: str  # a user's name


def history(supervisor: Supervisor) -> QuerySet[SpecVersion]:
    """Its versions, newest first, each with what ``change_of`` and ``tombstone_of`` look at."""
    same_supervisor = SpecVersion.objects.filter(supervisor_id=OuterRef("supervisor_id"))
    before = same_supervisor.filter(version=OuterRef("version") - 1)
    after = same_supervisor.filter(version=OuterRef("version") + 1)
    return (
        versions(supervisor)
        .select_related("supervisor")
        .annotate(
            spec_before=Subquery(before.values("spec")[:1]),
            secrets_before=Subquery(before.values("secrets")[:1]),
            replaced_at=Subquery(after.values("created_at")[:1]),
        )
    )


def change_of(version: Any) -> SpecChange | None:
    """What a version of ``history`` changed; None for the first."""
    if version.spec_before is None:
        return None
    diff = spec_diff(shown_spec(version.spec_before), shown_spec(version.spec))
    return SpecChange(diff, secrets_differ(version.secrets_before, version.secrets))


def change_between(before: SpecVersion, after: SpecVersion) -> SpecChange:
    """What differs between any two versions, seen from the first."""
    diff = spec_diff(shown_spec(before.spec), shown_spec(after.spec))
    return SpecChange(diff, secrets_differ(before.secrets, after.secrets))


def diff_to_current(supervisor: Supervisor, spec: SupervisorSpec) -> list[DiffLine]:
    """What a spec, were it submitted, would change of the one that holds; secrets aside."""
    canonical, _ = spec_secrets.split_secrets(spec.canonical())
    return spec_diff(
        _without_own_fields(shown_spec(supervisor.current.spec)), _without_own_fields(shown_spec(canonical))
    )


def _without_own_fields(document: dict[str, Any]) -> dict[str, Any]:
    """Without what the supervisor has of its own."""
    return {name: value for name, value in document.items() if name not in ("id", "suspended")}


def tombstone_of(version: Any) -> Tombstone | None:
    """The termination that ended a version of ``history``: one at most, as only a new version follows it."""
    for entry in version.supervisor.terminations:
        at = datetime.fromisoformat(entry["at"])
        if version.created_at <= at and (version.replaced_at is None or at < version.replaced_at):
            return Tombstone(at, entry["by"])
    return None


def secrets_differ(before: str, after: str) -> bool | None:
    """Whether two sealed sets of secrets differ; None: they can't be opened."""
    try:
        return before != after and unseal(before) != unseal(after)
    except SecretsLost:
        return None
