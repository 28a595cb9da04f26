"""Which datasources a topic's records become rows of: by specs that name it, and by what has read it."""

from __future__ import annotations

from typing import Any

from django.db.models import F, QuerySet

from controlplane.datasources.masking import register_topic_readers
from controlplane.quarantine.models import DeadLetterImport
from controlplane.sources.models import Source
from controlplane.supervisors.models import SpecVersion
from controlplane.tasks.models import Task

_TOPIC = "spec__spec__ioConfig__topic"
_DEAD_LETTERS = "spec__spec__ioConfig__groupConfig__deadLetterTopic"


@register_topic_readers
def readers(topic: str) -> list[QuerySet[Any, Any]]:
    """The keys of the datasources, also of those whose records Kafka writes to it as dead letters.

    A supervisor that was terminated has made rows, if it has a source.
    """
    supervised = SpecVersion.objects.filter(version=F("supervisor__version"), supervisor__terminated_at=None)
    return [
        Source.objects.filter(topic=topic).values("datasource"),
        supervised.filter(**{_TOPIC: topic}).values("supervisor__datasource"),
        supervised.filter(**{_DEAD_LETTERS: topic}).values("supervisor__datasource"),
        DeadLetterImport.objects.filter(topic=topic).values("source__datasource"),
        Task.objects.active().filter(**{_TOPIC: topic}).values("datasource"),
    ]
