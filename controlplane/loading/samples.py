"""The records that a draft is tried on: read from Kafka once, kept on the server for an hour, sealed as secrets are.

They never reach a browser but for what a page shows of them. A draft that reads another topic forgets them.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.utils import timezone

from controlplane.connections.secrets import SecretsLost, seal, unseal
from controlplane.loading.models import Draft
from ingestion.specs.messages.sampling import Arrived, KeptRecord, SampleAnswer

TTL_S = 3600
MAX_RECORDS = 500
MAX_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True)
class Sample:
    """Newest records of all partitions alike, in the order of their times."""

    records: list[KeptRecord]
    read_at: datetime
    stopped_by: str  # why there are fewer than there could be: "time", "bytes", or empty
    arrived: Arrived | None  # how many had come of late when they were read


def store_sample(draft: Draft, answer: SampleAnswer) -> Sample:
    """Instead of those that there were."""
    sample = Sample(answer.kept, timezone.now(), answer.stopped_by, answer.arrived)
    answer_json = answer.model_dump_json(include={"kept", "stopped_by", "arrived"})
    text = json.dumps({"read_at": sample.read_at.isoformat(), "answer": answer_json})
    packed = base64.b64encode(zlib.compress(text.encode(), 1)).decode()
    cache.set(_key(draft), seal({"sample": packed}), TTL_S)
    return sample


def load_sample(draft: Draft) -> Sample | None:
    """None when there are none any more, or they were sealed with a key that is gone."""
    sealed = cache.get(_key(draft))
    if sealed is None:
        return None
    try:
        packed = unseal(sealed)["sample"]
    except SecretsLost:
        return None
    stored: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    answer = SampleAnswer.model_validate_json(stored["answer"])
    return Sample(answer.kept, datetime.fromisoformat(stored["read_at"]), answer.stopped_by, answer.arrived)


def delete_sample(draft: Draft) -> None:
    """There are none any more."""
    cache.delete(_key(draft))


def _key(draft: Draft) -> str:
    return f"load-records:{draft.pk}"
