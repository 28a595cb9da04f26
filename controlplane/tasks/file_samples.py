"""What a batch task's spec makes of quarantined records of files. Nothing is stored; it is the sampler that decodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from controlplane.datasources.sampling import take_sample
from controlplane.segments.models import QuarantinedRecord
from controlplane.teams.models import User
from ingestion.specs.batch import BatchTaskSpec
from ingestion.specs.input_format import JsonInputFormat
from ingestion.specs.sampler_spec import SamplerSpec
from ingestion.specs.sampling import MOST_ROWS, KeptRecord, SampleAnswer


def sample_of(
    user: User, spec: BatchTaskSpec, records: Sequence[QuarantinedRecord]
) -> tuple[SamplerSpec, SampleAnswer]:
    """In the order of the records. Raises ``NotAllowed``, ``InvalidInput`` with every fault, ``Unavailable``."""
    written = spec.spec.ioConfig.line_format
    named = not isinstance(written, JsonInputFormat) and bool(written.has_header)
    plain = written if isinstance(written, JsonInputFormat) else written.model_copy(update={"skipHeaderRows": 0})
    document = {
        "type": spec.type,
        "spec": {
            "dataSchema": spec.canonical()["spec"]["dataSchema"],
            "ioConfig": {
                "type": spec.type,
                "inputSource": {"type": "inline", "data": ""},
                "inputFormat": plain.model_dump(mode="json", by_alias=True, exclude_none=True),
            },
        },
        "samplerConfig": {"numRows": MOST_ROWS},
    }
    return take_sample(user=user, document=document, kept=[_as_kept(record, named) for record in records])


def _as_kept(record: QuarantinedRecord, named: bool) -> KeptRecord:
    """``named``: its columns stand in a line before it, as in its file."""
    payload = bytes(record.payload or b"")
    more: dict[str, Any] = {"key": None, "headers": [], "timestamp_ms": None}
    if named and record.file_header:
        payload = bytes(record.file_header) + b"\n" + payload
    return KeptRecord.model_construct(partition=record.partition, offset=record.offset, payload=payload, **more)
