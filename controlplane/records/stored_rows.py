"""The rows that a record became: what its spec makes of it, looked for in the segments that its receipt names.

A segment's rows do not say where they come from. So the record is decoded anew, by the spec that read it, and the rows
with its time and its dimensions are shown: its own, and those of records that are alike. With rollup they are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from controlplane.common.errors import Conflict, HeadgateError, InvalidInput, NotAllowed, Unavailable
from controlplane.datasources.models import Datasource
from controlplane.datasources.sampling import take_sample
from controlplane.publishing.selectors.fate import Fate, record_fate
from controlplane.records.lookup import KafkaLookup, RecordQuery, look_up
from controlplane.segments.newest_rows import NewestRows, rows_like
from controlplane.tasks.models import Task
from controlplane.teams.models import User
from ingestion.specs.messages.lookup import FoundRecord
from ingestion.specs.messages.sampling import KeptRecord, SampledRecord
from ingestion.specs.schema.data_schema import DataSchema

MAX_ROWS = 5  # of one record


@dataclass(frozen=True)
class StoredRow:
    """The rows of one datasource that hold a record, or one of several rows of it."""

    datasource: str
    made: dict[str, Any]  # what the spec makes of the record, by column, without nulls; times are milliseconds
    rollup: bool  # whether a row stands for several records
    rows: NewestRows | None
    problem: str  # why there are no rows; empty where there are some


def stored_rows(
    *, user: User, query: RecordQuery, group: str = "", kafka: KafkaLookup | None = None
) -> list[StoredRow]:
    """One for each reader that has stored the record and each of its rows, the first ones of many.

    ``kafka``: what a search at this place has found already.

    Needs the role operator. Raises ``InvalidInput``, ``NotFound``, ``NotAllowed``, ``Conflict``, ``Unavailable``.
    """
    query.check()
    if query.partition is None or query.offset is None:
        raise InvalidInput("Give partition and offset.")
    fates = record_fate(user, topic=query.topic, partition=query.partition, offset=query.offset, group=group or None)
    stored = [fate for fate in fates if fate.outcome == "stored" and fate.segments]
    if not stored:
        return []
    lookup = kafka or look_up(user=user, query=query, group=group)
    if not lookup.answer.found:
        raise Conflict("Kafka no longer has the record, so Headgate cannot find its row.")
    return [row for fate in stored for row in _rows_of_fate(user, fate, lookup)]


def _rows_of_fate(user: User, fate: Fate, lookup: KafkaLookup) -> list[StoredRow]:
    name, record = fate.source.datasource, lookup.answer.found[0]
    if lookup.answer.topic_id != fate.source.topic_id:
        return [StoredRow(name, {}, False, None, "It was read from an earlier topic of this name, which was deleted.")]
    task = Task.objects.select_related("datasource__team").filter(pk=fate.task_id).first()
    if task is None:
        return [
            StoredRow(
                name, {}, False, None, "The task that read it no longer exists, so there is no spec to decode it."
            )
        ]
    try:
        schema, sampled = _decode_again(user, task, record)
    except (Conflict, InvalidInput, NotAllowed, Unavailable) as error:
        return [StoredRow(name, {}, False, None, error.detail)]
    rollup = schema.granularitySpec.rollup
    if all(segment.removed for segment in fate.segments):
        return [StoredRow(name, {}, rollup, None, f"Its row was removed {fate.segments[0].removed}.")]
    rows = sampled.stored_rows[:MAX_ROWS]
    if not rows:
        reason = sampled.error or sampled.outcome.replace("_", " ")
        return [StoredRow(name, {}, rollup, None, f"Its spec no longer makes a row of it: {reason}")]
    return [_find_rows(user, task.datasource, fate, schema, row) for row in rows]


def _find_rows(user: User, datasource: Datasource, fate: Fate, schema: DataSchema, row: dict[str, Any]) -> StoredRow:
    metrics = {metric.name for metric in schema.metricsSpec}
    like = {n: v for n, v in row.items() if n not in metrics and isinstance(v, str | bool | int | float)}
    rollup = schema.granularitySpec.rollup
    try:
        rows = rows_like(
            user=user,
            datasource=datasource,
            segments=[segment.id for segment in fate.segments],
            at_ms=row["__time"],
            like={name: value for name, value in like.items() if name != "__time"},
        )
    except HeadgateError as error:
        return StoredRow(datasource.name, row, rollup, None, error.detail)
    problem = "" if rows.rows else "No row of its segments has the record's time and dimensions."
    if rows.problems:
        problem = f"{rows.problems[0].path} can't be read: {rows.problems[0].problem}"
    return StoredRow(datasource.name, row, rollup, rows, problem)


def _decode_again(user: User, task: Task, record: FoundRecord) -> tuple[DataSchema, SampledRecord]:
    payload, key = record.payload, record.key
    if any(part is not None and part.size > len(part.start) for part in (payload, key)):
        raise Conflict("The record is too large, so Headgate does not search for its row.")
    kept_record = KeptRecord.model_construct(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=None if key is None else key.start,
        headers=record.headers,
        payload=None if payload is None else payload.start,
    )
    spec, answer = take_sample(user=user, document=task.spec, kept_records=[kept_record])
    return spec.order.data_schema, answer.records[0]
