"""Stored specs of tasks about segments, read again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from controlplane.common.errors import invalid_spec
from controlplane.tasks.models import Task
from ingestion.specs.errors import SpecError
from ingestion.specs.tasks.segment_tasks import CompactTaskSpec, KillTaskSpec, parse_segment_task

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def segment_spec(task: Task) -> CompactTaskSpec | KillTaskSpec:
    """Its spec. Raises ``InvalidInput`` for one of an earlier version that can't be read any more."""
    try:
        return parse_segment_task(task.spec)
    except SpecError as error:
        raise invalid_spec(error) from None


def span_of(spec: CompactTaskSpec | KillTaskSpec) -> tuple[datetime, datetime]:
    """What it is about, half-open."""
    start, end = (_EPOCH + timedelta(milliseconds=ms) for ms in spec.span_ms)
    return start, end
