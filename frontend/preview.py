"""What a preview shows of a sample: each record beside the row it would become."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from frontend.forms import PreviewForm
from frontend.payload import Payload, payload_of
from frontend.sketches import sketch_text
from frontend.templatetags.headgate import from_ms, iso
from ingestion.specs.messages.protocol import Column
from ingestion.specs.messages.sampler_spec import SamplerSpec
from ingestion.specs.messages.sampling import (
    STORED,
    AbsentField,
    Bytes,
    KeptRecord,
    RolledUpRow,
    SampleAnswer,
    SampledRecord,
)

SHOWN_BYTES = 1024
MAX_COLUMNS = 60
MAX_CHARACTERS = 1000  # of one value
MAX_EXTRA_ROWS = 9  # rows of one record, beside its first
_STOPPED = {
    "time": "Kafka sent no more in time.",
    "bytes": "The preview reached its size limit.",
    "answer": "The page reached its size limit.",
}


@dataclass(frozen=True)
class Line:
    """A record: ``cells`` are its row's columns with their values; empty if it has none.

    Of one that holds several rows they are the first one's; ``further`` are the others', as many as are shown.
    """

    record: SampledRecord
    key: Payload
    payload: Payload
    cells: list[tuple[str, str]]
    further: list[list[tuple[str, str]]]
    headers: list[tuple[str, Payload]] = field(default_factory=list)  # of a record that is kept for a draft

    @property
    def more_rows(self) -> int:
        """How many rows it holds beside those that are shown."""
        return self.record.held - 1 - len(self.further)


@dataclass(frozen=True)
class RollupRow:
    """A row of the rollup, and how many records became it."""

    cells: list[tuple[str, str]]
    records: int


@dataclass(frozen=True)
class Preview:
    """A sample as the form shows it."""

    lines: list[Line]
    columns: list[Column]
    unused_fields: list[Column]  # fields of the records that nothing is made of
    absent: list[AbsentField]  # what the spec names, and no record has
    hidden: int  # how many columns are not shown
    counts: Sequence[tuple[str, int]]
    stopped: str
    rollup: list[RollupRow] | None = field(default=None)


def preview_of(spec: SamplerSpec, answer: SampleAnswer) -> Preview:
    """A sample, ready for its template."""
    shown = answer.columns[:MAX_COLUMNS]
    schema = spec.order.data_schema
    used = {schema.timestampSpec.column, *(column.name for column in answer.columns)}
    used |= {metric.field for metric in schema.metricsSpec if metric.field is not None}
    stored = any(record.outcome in STORED for record in answer.records)  # else nothing says what would be
    return Preview(
        lines=[_line(record, shown) for record in answer.records],
        columns=shown,
        unused_fields=[f for f in answer.fields if f.name not in used] if stored else [],
        absent=answer.absent,
        hidden=len(answer.columns) - len(shown),
        counts=Counter(record.outcome for record in answer.records).most_common(),
        stopped=_STOPPED.get(answer.stopped_by, ""),
        rollup=None if answer.rollup is None else [_rollup_row(row, shown) for row in answer.rollup],
    )


def with_headers(preview: Preview, records: Iterable[KeptRecord]) -> Preview:
    """Each record with its headers, as Kafka has them."""
    by_position: dict[tuple[int | None, int | None], KeptRecord] = {
        (record.partition, record.offset): record for record in records
    }
    places = [by_position.get((line.record.partition, line.record.offset)) for line in preview.lines]
    lines = [replace(line, headers=_headers(record)) for line, record in zip(preview.lines, places, strict=True)]
    return replace(preview, lines=lines)


def _headers(record: KeptRecord | None) -> list[tuple[str, Payload]]:
    return [] if record is None else [(name, payload_of(value, SHOWN_BYTES)) for name, value in record.headers]


def preview_request(document: Any, form: PreviewForm) -> Any:
    """The sampler's request for a spec as it was written, and the records that the form chooses."""
    if not isinstance(document, dict):
        return document
    request = {**document, "samplerConfig": {"numRows": form.cleaned_data["rows"]}}
    nested = isinstance(document.get("spec"), dict)
    parts = {**document["spec"]} if nested else request
    if nested:
        request["spec"] = parts
    io_config = parts.get("ioConfig", {})
    if isinstance(io_config, dict):
        parts["ioConfig"] = {**io_config, **form.io_config}
    return request


def _line(record: SampledRecord, columns: list[Column]) -> Line:
    rows = record.by_row[: 1 + MAX_EXTRA_ROWS]
    cells, *further = ([] if sampled.row is None else _cells(sampled.row, columns) for sampled in rows)
    return Line(record, _payload(record.key), _payload(record.payload), cells, further)


def _rollup_row(row: RolledUpRow, columns: list[Column]) -> RollupRow:
    return RollupRow(_cells(row.row, columns), len(row.records))


def _payload(data: Bytes | None) -> Payload:
    return payload_of(None) if data is None else payload_of(data.start, SHOWN_BYTES, data.size)


def _cells(row: dict[str, Any], columns: list[Column]) -> list[tuple[str, str]]:
    return [(column.name, _cell(row.get(column.name), column.type)) for column in columns]


def _cell(value: Any, kind: str) -> str:
    text = _text(value, kind)
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "…"


def _text(value: Any, kind: str) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if kind.startswith("COMPLEX<"):
        return sketch_text(value)
    return iso(from_ms(value)) if kind == "timestamp" else json.dumps(value, ensure_ascii=False)
