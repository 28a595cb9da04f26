"""Manifests and manifest lists as Iceberg's format version 2 has them: Avro files as bytes."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterable
from functools import cache
from typing import Any

import fastavro

from ingestion.specs.iceberg_partitions import Partition, spec_fields
from ingestion.specs.messages.iceberg import ListedFile, ListedManifest, ManifestContent, SnapshotOrder
from ingestion.specs.time_column import TIME_ID

_EXISTING = 0  # the status of an entry: nothing is said to be new, as manifests are written whole
_VERSION = {"format-version": "2"}
Record = dict[str, Any]


def manifest_bytes(order: SnapshotOrder, content: ManifestContent) -> bytes:
    """The manifest of one interval."""
    partition = Partition.of(content.start, content.end)
    metadata = {
        **_VERSION,
        "schema": order.table_schema,
        "schema-id": str(json.loads(order.table_schema)["schema-id"]),
        "partition-spec": json.dumps(spec_fields(partition.spec)),
        "partition-spec-id": str(partition.spec),
        "content": "data",
    }
    entries = (_entry(order, partition, file) for file in json.loads(content.files))
    return _avro(_entry_schema(partition.spec), entries, metadata)


def manifest_list_bytes(order: SnapshotOrder, manifests: Iterable[ListedManifest]) -> bytes:
    """The list of a snapshot's manifests."""
    metadata = {**_VERSION, "snapshot-id": str(order.number), "sequence-number": str(order.number)}
    return _avro(_list_schema(), (_listed(order.root, manifest) for manifest in manifests), metadata)


def _avro(schema: Any, records: Iterable[Record], metadata: dict[str, str]) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec="deflate", metadata=metadata)
    return out.getvalue()


def _entry(order: SnapshotOrder, partition: Partition, file: ListedFile) -> Record:
    path, rows, size_bytes, lowest, highest = file
    return {
        "status": _EXISTING,
        "snapshot_id": order.number,
        "sequence_number": order.number,
        "file_sequence_number": order.number,
        "data_file": {
            "content": 0,
            "file_path": f"{order.root}/{path}",
            "file_format": "PARQUET",
            "partition": {field["name"]: partition.value for field in spec_fields(partition.spec)},
            "record_count": rows,
            "file_size_in_bytes": size_bytes,
            "lower_bounds": [{"key": TIME_ID, "value": struct.pack("<q", lowest)}],
            "upper_bounds": [{"key": TIME_ID, "value": struct.pack("<q", highest)}],
            "sort_order_id": 0,
        },
    }


def _listed(root: str, manifest: ListedManifest) -> Record:
    bound = None if manifest.value is None else struct.pack("<i", manifest.value)
    partition = {"contains_null": False, "contains_nan": None, "lower_bound": bound, "upper_bound": bound}
    return {
        "manifest_path": f"{root}/{manifest.path}",
        "manifest_length": manifest.length,
        "partition_spec_id": manifest.spec,
        "content": 0,
        "sequence_number": manifest.number,
        "min_sequence_number": manifest.number,
        "added_snapshot_id": manifest.number,
        "added_files_count": 0,
        "existing_files_count": manifest.segments,
        "deleted_files_count": 0,
        "added_rows_count": 0,
        "existing_rows_count": manifest.rows,
        "deleted_rows_count": 0,
        "partitions": [] if bound is None else [partition],
    }


def _field(number: int, name: str, kind: Any) -> Record:
    return {"name": name, "type": kind, "field-id": number}


def _optional(number: int, name: str, kind: Any) -> Record:
    return {**_field(number, name, ["null", kind]), "default": None}


def _record(name: str, fields: list[Record]) -> Record:
    return {"type": "record", "name": name, "fields": fields}


def _bounds(key: int, value: int) -> Record:
    """A map from a column's id to a value, as Avro has maps whose keys are no strings."""
    pair = _record(f"k{key}_v{value}", [_field(key, "key", "int"), _field(value, "value", "bytes")])
    return {"type": "array", "logicalType": "map", "items": pair}


@cache
def _entry_schema(spec: int) -> Any:
    partition = [_optional(f["field-id"], f["name"], _partition_type(f["transform"])) for f in spec_fields(spec)]
    data_file = [
        _field(134, "content", "int"),
        _field(100, "file_path", "string"),
        _field(101, "file_format", "string"),
        _field(102, "partition", _record("r102", partition)),
        _field(103, "record_count", "long"),
        _field(104, "file_size_in_bytes", "long"),
        _optional(125, "lower_bounds", _bounds(126, 127)),
        _optional(128, "upper_bounds", _bounds(129, 130)),
        _optional(140, "sort_order_id", "int"),
    ]
    entry = [
        _field(0, "status", "int"),
        _optional(1, "snapshot_id", "long"),
        _optional(3, "sequence_number", "long"),
        _optional(4, "file_sequence_number", "long"),
        _field(2, "data_file", _record("r2", data_file)),
    ]
    return fastavro.parse_schema(_record("manifest_entry", entry))


def _partition_type(transform: str) -> Any:
    return {"type": "int", "logicalType": "date"} if transform == "day" else "int"


@cache
def _list_schema() -> Any:
    partition = [
        _field(509, "contains_null", "boolean"),
        _optional(518, "contains_nan", "boolean"),
        _optional(510, "lower_bound", "bytes"),
        _optional(511, "upper_bound", "bytes"),
    ]
    partitions = {"type": "array", "element-id": 508, "items": _record("r508", partition)}
    manifest = [
        _field(500, "manifest_path", "string"),
        _field(501, "manifest_length", "long"),
        _field(502, "partition_spec_id", "int"),
        _field(517, "content", "int"),
        _field(515, "sequence_number", "long"),
        _field(516, "min_sequence_number", "long"),
        _field(503, "added_snapshot_id", "long"),
        _field(504, "added_files_count", "int"),
        _field(505, "existing_files_count", "int"),
        _field(506, "deleted_files_count", "int"),
        _field(512, "added_rows_count", "long"),
        _field(513, "existing_rows_count", "long"),
        _field(514, "deleted_rows_count", "long"),
        _optional(507, "partitions", partitions),
    ]
    return fastavro.parse_schema(_record("manifest_file", manifest))
