"""The round over all supervisors sends the jobs that have something to do, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from celery.signals import after_task_publish
from django.utils import timezone

from controlplane.publishing.models import Rewind, RewindPart
from controlplane.quarantine.models import DeadLetterImport
from controlplane.supervisors.celery_tasks import run_all
from controlplane.supervisors.models import Supervisor
from tests.support.django_cast import Cast


@contextmanager
def sent() -> Iterator[list[str]]:
    """The names of the jobs whose messages go to Valkey."""
    names: list[str] = []

    def note(sender: str, **_: Any) -> None:
        names.append(sender.rpartition(".")[2])

    after_task_publish.connect(note)
    try:
        yield names
    finally:
        after_task_publish.disconnect(note)


def test_only_jobs_with_something_to_do_are_sent(cast: Cast) -> None:
    now = timezone.now()
    Supervisor.objects.update(look_due_at=now + timedelta(hours=1))
    with sent() as names:
        run_all.run()
    assert names == []
    Supervisor.objects.filter(pk="flights").update(look_due_at=now)
    one = DeadLetterImport.objects.create(
        source=cast.source, topic="dead", topic_id="id", own=True, running=True, asked_by="owner", asked_at=now
    )
    rewind = Rewind.objects.create(
        datasource=cast.datasource, source=cast.source, spec={}, choice={}, by="owner", created_at=now
    )
    part = RewindPart.objects.create(rewind=rewind, number=1, taken=[], ranges=[])
    with sent() as names:
        run_all.run()
    assert names == ["iterate", "import_dead_letters", "rewind"]
    DeadLetterImport.objects.filter(pk=one.pk).update(running=False)
    RewindPart.objects.filter(pk=part.pk).update(state=RewindPart.State.DONE)
    with sent() as names:
        run_all.run()
    assert names == ["iterate"]
