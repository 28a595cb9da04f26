"""Samples: records, their rows, and the columns of these rows."""

from __future__ import annotations

import base64
import codecs
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from ingestion.specs.messages.sampler_spec import sampler_types
from ingestion.specs.messages.sampling import Bytes, RolledUpRow, SampleAnswer, SampledRecord, SampledRow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SamplerConfigSerializer(serializers.Serializer[Any]):
    numRows = serializers.IntegerField(default=200, min_value=1, max_value=1000)
    timeoutMs = serializers.IntegerField(default=5000, min_value=100, max_value=15000)


class SampleBody(serializers.Serializer[Any]):
    """A sampler spec, flat or nested."""

    # Only OpenAPI uses this: ``parse_sampler_spec`` reads the body.

    type = serializers.ChoiceField(sampler_types())
    spec = serializers.JSONField(
        help_text="dataSchema and ioConfig; both may be unfinished. ioConfig.inputSource may contain pasted records."
    )
    samplerConfig = SamplerConfigSerializer(required=False)


class SampleColumnSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    type = serializers.CharField(
        help_text="`string`, `strings`, `long`, `double`, `boolean`, `timestamp`, `json`, or a sketch's type "
        "such as `COMPLEX<HLLSketch>`."
    )


class SampledRowSerializer(serializers.Serializer[Any]):
    """One row of a record that has several."""

    fields = serializers.JSONField(
        help_text="The fields that the input format reads. Null if it cannot read the record."
    )  # type: ignore[assignment]
    row = serializers.SerializerMethodField(help_text="The row that would be stored, without nulls.")

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_row(self, one: SampledRow) -> dict[str, Any] | None:
        return None if one.row is None else with_time(one.row)


class SampledRecordSerializer(serializers.Serializer[Any]):
    """A record of the sample. A long or binary key or payload has only its first 16 KiB."""

    partition = serializers.IntegerField(allow_null=True)
    offset = serializers.IntegerField(allow_null=True)
    timestamp = serializers.SerializerMethodField(help_text="The record's Kafka timestamp.")
    key_text = serializers.SerializerMethodField(help_text="The key as text. Null if it is not UTF-8.")
    key_base64 = serializers.SerializerMethodField(help_text="The key in Base64. Null if it is UTF-8.")
    payload_text = serializers.SerializerMethodField(help_text="The payload as text. Null if it is not UTF-8.")
    payload_base64 = serializers.SerializerMethodField(help_text="The payload in Base64. Null if it is UTF-8.")
    payload_size = serializers.SerializerMethodField(
        help_text="Size of the payload in bytes. Null for a record without a value."
    )
    outcome = serializers.CharField(
        help_text="`raw`, `stored`, `processed_with_error`, `filtered`, `outside_window`, `tombstone` or `unparseable`."
    )
    error = serializers.CharField()
    fields = serializers.JSONField(
        help_text="The fields that the input format reads. Null if it cannot read the record."
    )  # type: ignore[assignment]
    row = serializers.SerializerMethodField(help_text="The row that would be stored, without nulls.")
    further_rows = SampledRowSerializer(
        source="further", many=True, help_text="The other rows of a record that has several."
    )

    def get_timestamp(self, record: SampledRecord) -> datetime | None:
        try:
            return None if record.timestamp_ms is None else _EPOCH + timedelta(milliseconds=record.timestamp_ms)
        except OverflowError:
            return None  # a producer may write any number

    def get_key_text(self, record: SampledRecord) -> str | None:
        return _text(record.key)

    def get_key_base64(self, record: SampledRecord) -> str | None:
        return _base64(record.key)

    def get_payload_text(self, record: SampledRecord) -> str | None:
        return _text(record.payload)

    def get_payload_base64(self, record: SampledRecord) -> str | None:
        return _base64(record.payload)

    def get_payload_size(self, record: SampledRecord) -> int | None:
        return None if record.payload is None else record.payload.size

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_row(self, record: SampledRecord) -> dict[str, Any] | None:
        return None if record.row is None else with_time(record.row)


class RolledUpSerializer(serializers.Serializer[Any]):
    """A row that rollup made of equal rows."""

    row = serializers.SerializerMethodField()
    records = serializers.ListField(
        child=serializers.IntegerField(), help_text="Indexes in the list of records, from 0."
    )

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_row(self, merged: RolledUpRow) -> dict[str, Any]:
        return with_time(merged.row)


class AbsentFieldSerializer(serializers.Serializer[Any]):
    """A field that the spec names and no record of the sample has."""

    name = serializers.CharField()
    read_by = serializers.ListField(
        child=serializers.CharField(),
        help_text="Parts of the spec that use the field: dimension, filter, transform 'x', metric 'x', "
        "timestampSpec, flattenSpec or dimensionExclusions.",
    )


class SampleSerializer(serializers.Serializer[Any]):
    outcomes = serializers.SerializerMethodField(help_text="Number of records by outcome.")
    stopped_by = serializers.CharField(
        help_text="The limit that ended the sample early: `time`, `bytes` or `answer`. Else empty."
    )
    fields = SampleColumnSerializer(  # type: ignore[assignment]  # the stubs know Serializer.fields only
        many=True, help_text="All fields of the records, with the types that their values suggest."
    )
    columns = SampleColumnSerializer(many=True, help_text="The columns that a segment would have.")
    absent_fields = AbsentFieldSerializer(
        source="absent", many=True, help_text="Fields that the spec names and no record of the sample has."
    )
    records = SampledRecordSerializer(many=True)
    rollup = RolledUpSerializer(
        many=True, allow_null=True, help_text="The rolled-up rows. Null if the spec has no rollup."
    )

    def get_outcomes(self, sample: SampleAnswer) -> dict[str, int]:
        return dict(Counter(record.outcome for record in sample.records))


def with_time(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its time as ISO 8601."""
    if "__time" not in row:
        return row
    time = _EPOCH + timedelta(milliseconds=row["__time"])
    return {**row, "__time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z")}


def _text(data: Bytes | None) -> str | None:
    if data is None:
        return None
    try:
        # The cut may have gone through a character.
        return codecs.getincrementaldecoder("utf-8")().decode(data.start, final=len(data.start) == data.size)
    except UnicodeDecodeError:
        return None


def _base64(data: Bytes | None) -> str | None:
    return None if data is None or _text(data) is not None else base64.b64encode(data.start).decode()
