"""Records that are pasted into the sampler, and parts of its answer."""

from __future__ import annotations

import base64
from typing import Any

from ingestion.specs.messages.sampler_spec import parse_sampler_spec
from ingestion.specs.messages.sampling import SampleAnswer, SampledRecord
from ingestion.task.sampler.answering import answer_to
from tests.support.formats import HERE

JSON = {"type": "json"}
TYPED = {"dimensionsSpec": {"useSchemaDiscovery": True}}
TIMED = {"timestampSpec": {"column": "t", "format": "auto"}}


def sample(
    *records: bytes, input_format: Any = JSON, schema: Any = None, rows: int = 1000, **io_config: Any
) -> SampleAnswer:
    texts = [base64.b64encode(r).decode() for r in records]
    io_config |= {"inputSource": {"type": "inline", "data": texts, "encoding": "base64"}}
    if input_format is not None:
        io_config["inputFormat"] = input_format
    spec = {"dataSchema": schema or {}, "ioConfig": io_config}
    order = parse_sampler_spec({"type": "inline", "spec": spec, "samplerConfig": {"numRows": rows}}).order
    return answer_to(order.model_copy(update={"address_policy": HERE}))


def only(answer: SampleAnswer) -> SampledRecord:
    assert answer.failure is None
    (record,) = answer.records
    return record


def columns(answer: SampleAnswer) -> dict[str, str]:
    return {c.name: c.type for c in answer.columns}


def fields(answer: SampleAnswer) -> dict[str, str]:
    return {c.name: c.type for c in answer.fields}
