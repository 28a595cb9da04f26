"""Several hosts: each task knows on which one it was launched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.tasks import launcher, residents, services
from controlplane.tasks.models import Resident
from tests.support.django_cast import Cast, browsing_as


@pytest.fixture
def there(settings: Any, tmp_path: Path) -> Any:
    """This process is a host of this name, with a folder of its own."""
    settings.HOST_NAME, settings.TASK_DIR = "ingest-2.example.org", tmp_path
    return settings


def test_a_task_says_on_which_host_it_was_launched(cast: Cast, there: Any, clients: dict[str, Client]) -> None:
    repair = services.create_repair(like=cast.task, holes=[], topic_id="topic-id-1")
    viewer = clients["viewer"]
    assert viewer.get(f"/api/v1/tasks/{repair.pk}/").json()["host"] == ""
    pages = browsing_as(cast, "viewer")
    assert b"data-host" not in pages.get(f"/tasks/{repair.pk}/").content
    assert launcher.launch(repair.pk)
    launcher.terminate(repair.pk)
    assert viewer.get(f"/api/v1/tasks/{repair.pk}/").json()["host"] == "ingest-2.example.org"
    assert b"data-host>ingest-2.example.org<" in pages.get(f"/tasks/{repair.pk}/").content


def test_the_compaction_application_says_it_too(cast: Cast, there: Any) -> None:
    resident = residents._claim("compaction", "token")
    assert resident is not None
    assert Resident.objects.get(pk=resident.pk).host == "ingest-2.example.org"
    Resident.objects.update(last_heartbeat_at=timezone.now())
    page = browsing_as(cast, "viewer").get(f"/datasources/{cast.datasource.name}/compaction/")
    assert b"data-host>ingest-2.example.org<" in page.content
