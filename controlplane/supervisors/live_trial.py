"""A changed spec tried on the newest records of the topic that its supervisor reads, beside the spec in force.

A change that helps the records in quarantine may harm those that come in. Nothing is stored, joined or committed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from controlplane.common.errors import HeadgateError
from controlplane.connections.secrets import unseal
from controlplane.datasources.sampling import take_sample
from controlplane.supervisors.models import Supervisor
from controlplane.teams.models import User
from ingestion.specs.causes import cause_of
from ingestion.specs.kafka import secrets as spec_secrets
from ingestion.specs.messages.sampling import STORED, KeptRecord, SampleAnswer
from ingestion.specs.tasks.stored_specs import io_config_of

NEWEST = 100
READ_MS = 4_000
_IO_CONFIG_FIELDS = {"type", "topic", "consumerProperties", "connection", "groupId", "isolationLevel"}


@dataclass(frozen=True)
class LiveTrial:
    """How many of the topic's newest records become rows; or why they could not be tried."""

    tried: int = 0
    passing: int = 0  # with the changed spec
    passing_now: int = 0  # with the spec in force
    failing: int = 0  # that the changed spec can't read
    failures_by_cause: tuple[tuple[str, int], ...] = ()  # with these, by cause, the most frequent first
    failure: str = ""

    @property
    def worse(self) -> bool:
        """Whether the changed spec reads fewer than the spec in force does."""
        return self.passing < self.passing_now


def try_live(user: User, supervisor: Supervisor, document: dict[str, Any]) -> LiveTrial:
    """What a changed spec, which was tried on other records already, makes of the topic's newest records.

    Trusts the caller to have looked at the user's rights over the supervisor.
    """
    try:
        current = _current_spec(supervisor)
        records = _newest_records(user, supervisor, current)
        before, after = (_sample(user, spec, records) for spec in (current, document))
    except HeadgateError as error:
        return LiveTrial(failure=" ".join([error.detail, *(f.message for f in error.errors)]))
    # An answer that is too large ends early: only what both specs were tried on is compared.
    compared = min(len(before.records), len(after.records))
    error_texts = [r.error for r in after.records[:compared] if r.outcome == "unparseable"]
    causes = Counter(cause_of("unparseable", error).title for error in error_texts).most_common()
    return LiveTrial(
        compared, _count_passing(after, compared), _count_passing(before, compared), len(error_texts), tuple(causes)
    )


def _current_spec(supervisor: Supervisor) -> dict[str, Any]:
    """The spec in force with its secrets, as clients need it."""
    version = supervisor.current
    secrets = unseal(version.secrets)
    document = spec_secrets.with_registry_secrets(version.spec, secrets, lambda values: values)
    io_config = io_config_of(document).model_dump(mode="json", by_alias=True, exclude_none=True)
    properties = {**io_config.get("consumerProperties", {}), **spec_secrets.kafka_secrets(secrets)}
    full_io_config = io_config | ({"consumerProperties": properties} if properties else {})
    return {**document, "spec": {**document["spec"], "ioConfig": full_io_config}}


def _newest_records(user: User, supervisor: Supervisor, current: dict[str, Any]) -> list[KeptRecord]:
    io_config = io_config_of(current).model_dump(mode="json", include=_IO_CONFIG_FIELDS, exclude_none=True)
    schema = {"dataSource": supervisor.datasource.name}
    parts = {"dataSchema": schema, "ioConfig": {**io_config, "useEarliestOffset": False}}
    return take_sample(user=user, document=_with_sampler_config({**current, "spec": parts}), wanted="records")[1].kept


def _sample(user: User, document: dict[str, Any], kept: list[KeptRecord]) -> SampleAnswer:
    return take_sample(user=user, document=_with_sampler_config(document), kept_records=kept)[1]


def _with_sampler_config(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "samplerConfig": {"numRows": NEWEST, "timeoutMs": READ_MS}}


def _count_passing(answer: SampleAnswer, records: int) -> int:
    return sum(record.outcome in STORED for record in answer.records[:records])
