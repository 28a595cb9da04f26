"""How ours answers to the bodies of ``druid_corpus``, beside what Druid was recorded to answer.

``python -m tests.support.druid_agreement SECTION`` shows the cases that are not the same of the sections whose names
begin so; ``druid_tables`` writes the counts into the docs.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from ingestion.decode.decoded import Decoded
from ingestion.decode.druid_values import EvaluationFailed
from ingestion.decode.engine import Engine
from ingestion.decode.envelope import Envelope
from ingestion.decode.errors import UnusableSchema
from ingestion.decode.expression_runner import ExpressionRunner
from ingestion.decode.expressions import BadExpression
from ingestion.decode.fields import FieldReader
from ingestion.decode.formats import jq
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.rows import row_indexes
from ingestion.segments.rollup import roll_up
from ingestion.segments.table_shape import Shape
from ingestion.specs.errors import SpecError
from ingestion.specs.formats.input_format import JsonInputFormat
from ingestion.specs.formats.jq import parse_jq
from ingestion.specs.inputs.io_config import KafkaIOConfig
from ingestion.specs.messages.sampler_spec import parse_sampler_spec
from ingestion.specs.messages.sampling import SampleOrder
from ingestion.specs.schema.data_schema import DataSchema, ExpressionTransform
from ingestion.task.sampler.values import json_rows
from tests.support.druid_corpus import GOLDEN, RECORD, Case, cases
from tests.support.druid_jq import RECORD as OF_JQ
from tests.support.druid_kafka import TOPIC, Record
from tests.support.sketches import with_contents

Verdict = Literal["same", "told", "refused", "alone", "other"]
_KAFKA = {"topic": "t", "consumerProperties": {"bootstrap.servers": "none:1"}}
# Druid's sampler calls these records unparseable; its tasks read them another way, and store rows of them.
_OF_TASKS = {("kafka", "a value that is no object")}
RECORDED: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))


def ours(case: Case) -> Any:
    """In the form of the recorder's: a row for each record that is kept, and what could not be read."""
    try:
        order = parse_sampler_spec(case.body).order
    except SpecError:
        return "refused"
    if case.section.startswith("expressions"):
        return _expression(order.data_schema.transformSpec.transforms[0])
    if case.section == "jq":
        return _of_jq(order)
    if case.records:
        return _of_topic(order, case.records)
    return _rolled_up(order) if order.data_schema.granularitySpec.rollup else _decoded(order)


def _expression(transform: ExpressionTransform) -> Any:
    """Without a decoder: there are many."""
    engine = _engine()
    try:
        runner = ExpressionRunner(engine, transform.expression, transform.language)
    except BadExpression:
        return "refused"
    found = runner.run(_columns(tuple(runner.fields)), np.array([json.loads(RECORD)["t"]]), np.array([10_000]))
    text = found.texts[0].as_py()
    row = {"__time": json.loads(RECORD)["t"]} | ({} if text in (None, "null") else {"r": json.loads(text)})
    return [{"row": row} | ({"unparseable": True} if found.failed[0] else {})]


@cache
def _columns(fields: tuple[str, ...]) -> dict[str, pa.Array]:
    """These of the record that expressions see: many expressions have the same."""
    return FieldReader(_engine(), fields, discovers=False).read(pa.array([RECORD])).columns


def _of_jq(order: SampleOrder) -> Any:
    """Without a decoder, as above."""
    read = order.io_config.inputFormat
    assert isinstance(read, JsonInputFormat) and read.flattenSpec is not None
    program = read.flattenSpec.fields[1].expr or ""
    record = jq.load_record(OF_JQ) or {}
    try:
        value = json.loads(jq.first_value(record, parse_jq(program), lambda: None))
    except EvaluationFailed:
        return [{"unparseable": True}]
    return [{"row": {"__time": record["t"]} | ({} if value is None else {"r": value})}]


@cache
def _engine() -> Engine:
    return Engine(256 * 1024 * 1024)


@lru_cache(maxsize=8)
def _decoder(schema: str, input_format: str) -> JsonDecoder:
    """Many cases have the same spec, and other records."""
    read = KafkaIOConfig.model_validate({**_KAFKA, "inputFormat": json.loads(input_format)})
    return JsonDecoder(DataSchema.model_validate_json(schema), 256 * 1024 * 1024, input_format=read.inputFormat)


def _decoder_of(order: SampleOrder) -> JsonDecoder:
    """Raises ``UnusableSchema``."""
    return _decoder(order.data_schema.model_dump_json(), order.io_config.inputFormat.model_dump_json())


def _decoded(order: SampleOrder) -> Any:
    try:
        decoder = _decoder_of(order)
    except UnusableSchema:
        return "refused"
    records = order.records or []
    if _columns_are_fixed(order.data_schema):
        return _rows_of(decoder.decode(records))
    # Druid shows each row by itself, before the columns of a segment get the types that hold all their values.
    return [entry for record in records for entry in _rows_of(decoder.decode([record]))]


def _columns_are_fixed(schema: DataSchema) -> bool:
    """Whether a value of one record never changes how those of others are shown."""
    spec = schema.dimensionsSpec
    return not spec.discovers and all(d.type not in ("auto", "json") for d in spec.dimensions)


def _of_topic(order: SampleOrder, records: tuple[Record, ...]) -> Any:
    try:
        decoder = _decoder_of(order)
    except UnusableSchema:
        return "refused"
    told = []
    for record in records:
        said = Envelope(TOPIC, [record.key], [record.time_ms], [record.headers])
        told += _rows_of(decoder.decode([record.value], envelope=said))
    return told


def _rows_of(decoded: Decoded) -> list[dict[str, Any]]:
    rows = json_rows(decoded.rows.select(range(1, decoded.rows.num_columns)))
    return _entries(dict(zip(row_indexes(decoded.rows).tolist(), rows, strict=True)), decoded)


def _entries(rows: dict[int, dict[str, Any]], decoded: Decoded) -> list[dict[str, Any]]:
    """``rows``: by the record, or the first of those, that each is of."""
    unread = {*decoded.unparseable, *decoded.processed_with_error}
    return [
        ({"row": rows[place]} if place in rows else {}) | ({"unparseable": True} if place in unread else {})
        for place in sorted({*rows, *unread})
    ]


def _rolled_up(order: SampleOrder) -> Any:
    """Without the sampler, which reads each record a second time to show all its fields."""
    try:
        decoded = _decoder_of(order).decode(order.records or [])
    except UnusableSchema:
        return "refused"
    shape = Shape.of(order.data_schema)
    merged = roll_up(shape.to_shape(decoded.rows), shape) if len(decoded.rows) else decoded.rows
    rows = json_rows(merged.select(range(shape.lead, merged.num_columns)))
    rolled = {min(records): row for records, row in zip(merged.column(0).to_pylist(), rows, strict=True)}
    return _entries(rolled, decoded)


def verdict(case: Case, answer: Any) -> Verdict:
    """What ours is beside Druid's."""
    metrics = case.body["spec"]["dataSchema"].get("metricsSpec") or []
    druids = _with_sketches(metrics, _without_times(RECORDED[case.section][case.name]))
    answer = _with_sketches(metrics, answer)
    if same(answer, druids):
        return "same"
    if answer == "refused":
        return "refused"
    told = any(entry.get("unparseable") for entry in answer)
    if druids == "refused":
        return "same" if told else "alone"
    if (case.section, case.name) in _OF_TASKS and not told:
        return "alone"
    theirs = Counter(_row(entry) for entry in druids)
    untold = [entry for entry in answer if not entry.get("unparseable")]
    return "told" if told and all(theirs[_row(entry)] for entry in untold) else "other"


def _without_times(answer: Any) -> Any:
    """Of first and last Druid's sampler shows the time beside the value; a query shows the value."""
    if answer == "refused":
        return answer
    return [entry | ({"row": _values(entry["row"])} if "row" in entry else {}) for entry in answer]


def _with_sketches(metrics: list[dict[str, Any]], answer: Any) -> Any:
    """What is in sketches for their bytes."""
    if answer == "refused":
        return answer
    return [entry | ({"row": with_contents(metrics, entry["row"])} if "row" in entry else {}) for entry in answer]


def _values(row: dict[str, Any]) -> dict[str, Any]:
    pairs = {n: v["rhs"] for n, v in row.items() if isinstance(v, dict) and v.keys() == {"lhs", "rhs"}}
    return {name: pairs.get(name, value) for name, value in row.items() if pairs.get(name, value) is not None}


def _row(entry: dict[str, Any]) -> str:
    return json.dumps(entry.get("row"), sort_keys=True)


def same(one: Any, other: Any) -> bool:
    """Of the same types too, but doubles that are written with or without their last digit."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        return one == other or abs(one - other) <= 1e-15 * abs(other)
    return type(one) is type(other) and bool(one == other)


@cache
def verdicts() -> dict[tuple[str, str], Verdict]:
    """Of all cases, by section and name."""
    return {(case.section, case.name): verdict(case, ours(case)) for case in cases()}


def counted() -> dict[str, Counter[Verdict]]:
    """By section."""
    found: dict[str, Counter[Verdict]] = {}
    for (section, _), what in verdicts().items():
        found.setdefault(section, Counter())[what] += 1
    return found


def main(section: str) -> None:
    """Shows."""
    for case in cases():
        answer = ours(case) if case.section.startswith(section) else None
        if answer is not None and (found := verdict(case, answer)) != "same":
            print(f"{found:8} {case.name}\n    druid {RECORDED[case.section][case.name]}\n    ours  {answer}")


if __name__ == "__main__":
    main(sys.argv[1])
