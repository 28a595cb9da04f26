"""Records of a publish that are kept aside: in quarantine, or with a faulty field for the report."""

from __future__ import annotations

from typing import Any

from controlplane.publishing.fence import LockedFence, LockedSource
from controlplane.quarantine import replays
from controlplane.quarantine.models import FaultyRecord, QuarantinedRecord
from ingestion.specs.causes import cause_of
from ingestion.specs.messages import protocol
from ingestion.specs.messages.protocol import PublishRequest

_KEY_FIELDS = {"id", "source", "partition", "offset"}
_UPDATED_FIELDS = [f.name for f in QuarantinedRecord._meta.concrete_fields if f.name not in {*_KEY_FIELDS, "replays"}]


def insert_quarantined(fence: LockedFence, source: LockedSource, request: PublishRequest) -> None:
    """Those of the publish, in the caller's transaction."""
    records = [
        QuarantinedRecord(
            **_common_fields(record, fence, source),
            reason=record.reason,
            cause=cause_of(record.reason, record.error).fingerprint,
            key=record.key,
            headers=replays.encode_headers(record.headers),
            publish_id=request.publish_id,
        )
        for record in request.quarantined
    ]
    # One that is there already is read again, since stored offsets were moved back.
    QuarantinedRecord.objects.bulk_create(
        records, update_conflicts=True, unique_fields=["source", "partition", "offset"], update_fields=_UPDATED_FIELDS
    )


def insert_faulty(fence: LockedFence, source: LockedSource, request: PublishRequest) -> None:
    """Likewise: those that are kept for the report."""
    records = [
        FaultyRecord(
            **_common_fields(record, fence, source),
            cause=cause_of(FaultyRecord.reason, record.error).fingerprint,
            payload_size=record.payload_size,
        )
        for record in request.faulty
    ]
    FaultyRecord.objects.bulk_create(records)


def _common_fields(
    record: protocol.QuarantinedRecord | protocol.FaultyRecord, fence: LockedFence, source: LockedSource
) -> dict[str, Any]:
    """What both kinds of kept records have."""
    return {
        "source_id": source.id,
        "datasource_id": fence.datasource,
        "task_id": fence.task_id,
        "created_at": fence.at,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "delivery_count": record.delivery_count,
        "error": record.error,
        "payload": record.payload,
    }
