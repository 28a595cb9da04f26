"""A team's quota, asked for by many at once: two that both see the last free place must not both take it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import LazySettings
from django.db import connections

from controlplane.quotas import services as quotas
from controlplane.tasks import launcher, services
from controlplane.tasks.models import Task
from tests.support.django_cast import make_cast, spec_for

MANY, PLACES = 20, 7


def test_twenty_that_are_submitted_and_launched_at_once_have_no_more_places_than_their_team(
    transactional_db: None, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.WORKER_CAPACITY = 0
    monkeypatch.setattr(launcher, "_spark_command", lambda task: ["/bin/echo", "launched"])
    cast = make_cast()
    Task.objects.all().delete()
    quotas.set_quota(user=cast.users["superuser"], team=cast.alpha, limits={"indexers": PLACES})

    def submitted_and_launched(number: int) -> bool:
        try:
            document = spec_for(f"raced-{number}", taskCount=1)
            task = services.submit_task(user=cast.users["owner"], document=document, team_name="alpha")
            return launcher.launch(task.pk)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(MANY) as pool:
        launched = list(pool.map(submitted_and_launched, range(MANY)))
    assert launched.count(True) == PLACES
    assert Task.objects.exclude(launched_at=None).count() == PLACES
    assert Task.objects.count() == MANY
