"""The metadata of an Iceberg table, in format version 2. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from controlplane.catalog.columns import highest_id, name_mapping, table_schema
from controlplane.segments.models import Column, Snapshot
from ingestion.specs.iceberg_partitions import DEFAULT_SPEC, LAST_FIELD, all_specs

_UNSORTED = {"order-id": 0, "fields": []}


def table_metadata(
    *, root: str, name: str, identity: uuid.UUID, columns: Sequence[Column], snapshots: Sequence[Snapshot]
) -> dict[str, Any]:
    """What ``metadata.json`` of a table would have.

    ``identity``: the datasource's. ``columns``: by id. ``snapshots``: in their order, the last is the current one; a
    table without any is empty.
    """
    current = snapshots[-1] if snapshots else None
    last_column = highest_id(columns)
    shown = current.last_column if current else last_column
    schemas = {n: table_schema(columns, n) for n in sorted({shown, *(s.last_column for s in snapshots)})}
    metadata = {
        "format-version": 2,
        "table-uuid": str(identity),
        "location": f"{root}/{name}",
        "last-sequence-number": current.number if current else 0,
        "last-updated-ms": _ms(current.changed_at) if current else 0,
        "last-column-id": last_column,
        "current-schema-id": shown,
        "schemas": list(schemas.values()),
        "default-spec-id": DEFAULT_SPEC,
        "partition-specs": all_specs(),
        "last-partition-id": LAST_FIELD,
        "default-sort-order-id": 0,
        "sort-orders": [_UNSORTED],
        "properties": {"schema.name-mapping.default": name_mapping(columns, shown)},
        "snapshots": [_snapshot(root, s) for s in snapshots],
        "snapshot-log": [{"snapshot-id": s.number, "timestamp-ms": _ms(s.changed_at)} for s in snapshots],
        "metadata-log": [],
        "refs": {},
    }
    if current:
        metadata["current-snapshot-id"] = current.number
        metadata["refs"] = {"main": {"snapshot-id": current.number, "type": "branch"}}
    return metadata


def _snapshot(root: str, snapshot: Snapshot) -> dict[str, Any]:
    return {
        "snapshot-id": snapshot.number,
        "sequence-number": snapshot.number,
        # Not when it was built: DuckDB reads no snapshot that is later than the beginning of its transaction.
        "timestamp-ms": _ms(snapshot.changed_at),
        "manifest-list": f"{root}/{snapshot.path}",
        # Not "append": readers of what is new would find no file that is, and pass over all of it in silence.
        "summary": {
            "operation": "overwrite",
            "total-data-files": str(snapshot.segments),
            "total-records": str(snapshot.rows),
            "total-files-size": str(snapshot.size_bytes),
        },
        "schema-id": snapshot.last_column,
    }


def _ms(time: datetime) -> int:
    return int(time.astimezone(UTC).timestamp() * 1000)
