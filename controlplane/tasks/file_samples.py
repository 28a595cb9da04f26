"""What a batch task's spec makes of quarantined records of files. Nothing is stored; it is the sampler that decodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from controlplane.datasources.sampling import take_sample
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.teams.models import User
from ingestion.specs.messages.sampler_spec import SamplerSpec, sampler_of_batch
from ingestion.specs.messages.sampling import KeptRecord, SampleAnswer
from ingestion.specs.tasks.batch import BatchTaskSpec


def sample_of(
    user: User, spec: BatchTaskSpec, records: Sequence[QuarantinedRecord]
) -> tuple[SamplerSpec, SampleAnswer]:
    """In the order of the records. Raises ``NotAllowed``, ``InvalidInput`` with every fault, ``Unavailable``."""
    with_header = spec.spec.ioConfig.has_header
    kept_records = [_to_kept_record(record, with_header) for record in records]
    return take_sample(user=user, document=sampler_of_batch(spec), kept_records=kept_records, bounded=True)


def _to_kept_record(record: QuarantinedRecord, with_header: bool) -> KeptRecord:
    """``with_header``: its columns stand in a line before it, as in its file."""
    payload = bytes(record.payload or b"")
    more: dict[str, Any] = {"key": None, "headers": [], "timestamp_ms": None}
    if with_header and record.file_header:
        payload = bytes(record.file_header) + b"\n" + payload
    return KeptRecord.model_construct(partition=record.partition, offset=record.offset, payload=payload, **more)
