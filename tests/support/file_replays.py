"""Records of files in quarantine without an application: left by batch tasks, and published as a replay would."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from django.utils import timezone

from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.quarantine.selectors.filters import Choice
from controlplane.segments.models import Segment
from controlplane.supervisors import replays
from controlplane.tasks import batches
from controlplane.tasks.models import Status, Task
from ingestion.specs.causes import cause_of
from ingestion.specs.counters import Counters
from ingestion.specs.messages.batch_protocol import FileRecord
from ingestion.specs.messages.replays import KeptPublishRequest, StillBad
from ingestion.specs.tasks.batch import parse_batch_spec
from tests.support.batch_tasks import document, file, outcome
from tests.support.django_cast import Cast

ERROR = "field '__time' has no time: it is missing or null"
CAUSE = cause_of("unparseable", ERROR).fingerprint
STILL = "not JSON"


@pytest.fixture
def alone(cast: Cast) -> Cast:
    """Nothing else in quarantine."""
    make_receipt_partitions()
    QuarantinedRecord.objects.all().delete()
    return cast


def left_by(
    cast: Cast, *payloads: bytes, header: bytes = b"", name: str = "/a.json", cut: bool = False, **changes: Any
) -> Task:
    """A batch task that has left these records of a file, and stored ten rows."""
    task = batches.submit_batch(user=cast.users["operator"], document=document(cast.datasource.name, **changes))
    bad = [
        FileRecord(place=f"{name}, byte 1", position=n, reason="unparseable", error=ERROR, payload=b"", header=b"")
        for n in range(len(payloads))
    ]
    bad = [
        r.model_copy(update={"payload": p, "header": header, "cut": cut}) for r, p in zip(bad, payloads, strict=True)
    ]
    done = outcome(batches.start(task).epoch, file(), unparseable=len(bad))
    counters = done.counters.model_copy(update={"quarantined": len(bad)})
    batches.publish(task, done.model_copy(update={"counters": counters, "quarantined": bad}))
    return task


def ingest(cast: Cast, choice: Choice | None = None) -> list[Task]:
    mode, choice = Task.Replay.INGEST, choice or Choice()
    return replays.replay(user=cast.users["operator"], datasource=cast.datasource, choice=choice, mode=mode).tasks


def numbers() -> list[int]:
    return list(QuarantinedRecord.objects.order_by("pk").values_list("pk", flat=True))


def states() -> list[str]:
    return list(QuarantinedRecord.objects.order_by("pk").values_list("state", flat=True))


def became(
    epoch: int, stored: Sequence[int], thrown_away: Sequence[int] = (), bad: Sequence[int] = ()
) -> KeptPublishRequest:
    polled = len(stored) + len(thrown_away) + len(bad)
    of = {"thrown_away": len(thrown_away), "unparseable": len(bad), "quarantined": len(bad)}
    return KeptPublishRequest(
        publish_id=uuid.uuid4(),
        epoch=epoch,
        segments=[file(day=3, rows=len(stored))] if stored else [],
        counters=Counters(polled=polled, published=len(stored), **of),
        stored=list(stored),
        thrown_away=list(thrown_away),
        unparseable=[StillBad(number=n, reason="decoder_crash", error=STILL) for n in bad],
    )


def published_by(task: Task) -> int:
    return Segment.objects.filter(task_id=task.pk, used=True).count()


def a_record_of_a_file(cast: Cast) -> QuarantinedRecord:
    """One of the cast's datasource, in quarantine, whose time stands under another name than its task's spec says."""
    now = timezone.now()
    task = Task.objects.create(
        id=f"index_parallel_{uuid.uuid4().hex[:8]}", kind=Task.Kind.INDEX_PARALLEL, datasource=cast.datasource,
        spec=parse_batch_spec(document(cast.datasource.name)).canonical(), status=Status.SUCCESS, created_at=now,
        ended_at=now, submitted_by=cast.users["operator"],
    )  # fmt: skip
    error = "field 't' of a file has no time: it is missing or null"
    return QuarantinedRecord.objects.create(
        datasource=cast.datasource, task_id=task.pk, place="/data/a.json, byte 17", partition=0, offset=17,
        delivery_count=0, reason="unparseable", error=error, cause=cause_of("unparseable", error).fingerprint,
        payload=b'{"at": "2025-01-01T00:00:00Z"}', publish_id=uuid.uuid4(), created_at=now,
    )  # fmt: skip
