"""The quarantine: which records match, how many they are, and all of them as lines of JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Func, IntegerField, Max, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from controlplane.common.errors import InvalidInput
from controlplane.common.text import storable
from controlplane.datasources.masked_querysets import ConcealingQuerySet
from controlplane.datasources.models import Datasource
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.quarantine.replays import decode_headers

EXPORT_BATCH_SIZE = 20  # a record may be as large as the broker lets it
MAX_IDS = 10_000
MAX_KEY = 2**63 - 1


@dataclass(frozen=True)
class QuarantineFilter:
    """Which records; what is None or empty filters nothing."""

    reason: str = ""
    cause: str = ""  # a fingerprint; see ``ingestion.specs.causes``
    state: str = ""
    topic: str = ""
    partition: int | None = None
    task: str = ""  # the one that put it there
    # since and until: when it was quarantined, half-open.
    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> QuarantineFilter:
        """From the validated values of a form or an address; others among them are left alone."""
        return cls(**{name: values[name] for name in cls.__dataclass_fields__ if values.get(name) is not None})

    def described(self) -> dict[str, Any]:
        """What it filters by, as JSON has it."""
        criteria = {name: value for name, value in asdict(self).items() if value not in (None, "")}
        return {name: v.isoformat() if isinstance(v, datetime) else v for name, v in criteria.items()}


EVERYTHING = QuarantineFilter()


@dataclass(frozen=True)
class Choice:
    """Records to act on: those with these ids, or all that match the filter with ids up to ``max_id``."""

    ids: tuple[int, ...] | None = None
    filter: QuarantineFilter = EVERYTHING
    max_id: int = MAX_KEY  # the highest id that whoever chose has seen: what comes in meanwhile is not meant

    def described(self) -> dict[str, Any]:
        """What it chooses by, as JSON has it."""
        return {"ids": len(self.ids)} if self.ids is not None else self.filter.described()


@dataclass(frozen=True)
class MatchCounts:
    """What a choice comes to."""

    records: int
    size_bytes: int  # payloads
    max_id: int  # the highest id, 0 when there is none
    ingestable: int
    producible: int
    kept: int  # these, and those that are cut
    held: int  # by a replay, and not purged

    @property
    def purgeable(self) -> int:
        return self.records - self.held

    @property
    def cut(self) -> int:
        """Kept with their beginning alone, or with nothing of them."""
        return self.kept - self.ingestable


def filter_records(datasource: Datasource, record_filter: QuarantineFilter) -> ConcealingQuerySet[QuarantinedRecord]:
    """Records that match, by columns of their own alone (see ``replays.take_records``), in no order."""
    if not all(
        storable(text)
        for text in (
            record_filter.reason,
            record_filter.cause,
            record_filter.state,
            record_filter.topic,
            record_filter.task,
        )
    ):
        return QuarantinedRecord.objects.none()
    records = QuarantinedRecord.objects.filter(datasource=datasource)
    plain = {
        "reason": record_filter.reason,
        "cause": record_filter.cause,
        "state": record_filter.state,
        "task_id": record_filter.task,
    }
    records = records.filter(**{name: value for name, value in plain.items() if value})
    if record_filter.topic:
        sources = datasource.sources.filter(topic=record_filter.topic).values_list("pk", flat=True)
        records = records.filter(source_id__in=list(sources))
    if record_filter.partition is not None:
        records = records.filter(partition=record_filter.partition)
    if record_filter.since is not None:
        records = records.filter(created_at__gte=record_filter.since)
    return records if record_filter.until is None else records.filter(created_at__lt=record_filter.until)


def chosen_records(datasource: Datasource, choice: Choice) -> ConcealingQuerySet[QuarantinedRecord]:
    """The records of a choice, in no order. Raises ``InvalidInput`` for too many ids."""
    if choice.ids is None:
        return filter_records(datasource, choice.filter).filter(pk__lte=choice.max_id)
    if len(choice.ids) > MAX_IDS:
        raise InvalidInput(f"Choose at most {MAX_IDS} records by id, or all that match a filter.")
    ids = [number for number in choice.ids if 0 < number <= MAX_KEY]
    return QuarantinedRecord.objects.filter(datasource=datasource, pk__in=ids)


_INGESTABLE = Q(state=QuarantinedRecord.State.KEPT, cut=False)
_PRODUCIBLE = Q(state=QuarantinedRecord.State.KEPT, source__isnull=False, cut=False)


def ingestable(records: QuerySet[QuarantinedRecord]) -> QuerySet[QuarantinedRecord]:
    """Those that can become rows: what is cut of a file's record is another record, and a dead letter may be empty."""
    return records.filter(_INGESTABLE)


def producible(records: QuerySet[QuarantinedRecord]) -> QuerySet[QuarantinedRecord]:
    """Those that have a topic, and are whole."""
    return records.filter(_PRODUCIBLE)


def count_matching(records: QuerySet[QuarantinedRecord]) -> MatchCounts:
    """How many they are, and how large."""
    size = Func(F("payload"), function="octet_length", output_field=IntegerField())
    states = QuarantinedRecord.State
    return MatchCounts(
        **records.aggregate(
            records=Count("pk"),
            size_bytes=Coalesce(Sum(size), 0),
            max_id=Coalesce(Max("pk"), 0),
            ingestable=Count("pk", filter=_INGESTABLE),
            producible=Count("pk", filter=_PRODUCIBLE),
            kept=Count("pk", filter=Q(state=states.KEPT)),
            held=Count("pk", filter=Q(state=states.REPLAYING)),
        )
    )


def export_chunks(records: QuerySet[QuarantinedRecord]) -> Iterator[bytes]:
    """The records as newline-delimited JSON, some lines at a time, oldest first: each chunk is a query of its own."""
    after = 0
    while rows := list(records.filter(pk__gt=after).select_related("source").order_by("pk")[:EXPORT_BATCH_SIZE]):
        yield b"".join(_json_line(row) for row in rows)
        after = rows[-1].pk


def _json_line(record: QuarantinedRecord) -> bytes:
    values = {
        "id": record.pk,
        **_location(record),
        "timestamp_ms": record.timestamp_ms,
        **_bytes_json("key", record.key),
        **_bytes_json("payload", record.payload),
        "headers": [{"name": name, **_bytes_json("value", value)} for name, value in decode_headers(record.headers)],
        **(_bytes_json("file_header", record.file_header) if record.file_header else {}),
        "reason": record.reason,
        "error": record.error,
        "delivery_count": record.delivery_count,
        "task": record.task_id,
        "state": record.state,
        "quarantined_at": record.created_at.isoformat(),
    }
    return json.dumps(values, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def _location(record: QuarantinedRecord) -> dict[str, Any]:
    if record.source is None:
        return {"place": record.place, "position": record.offset}
    return {
        "topic": record.source.topic,
        "topic_id": record.source.topic_id,
        "partition": record.partition,
        "offset": record.offset,
    }


def _bytes_json(name: str, value: bytes | memoryview | None) -> dict[str, str | None]:
    """Text where the bytes are UTF-8, else base64 under another name."""
    if value is None:
        return {name: None}
    try:
        return {name: bytes(value).decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}
