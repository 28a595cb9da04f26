"""A new version of a spec that does not start: the supervisor says so, and which version is in force."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from controlplane.segments.models import IndexerFence
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks.models import Status, Task
from tests.support.django_cast import Cast


def second_version(cast: Cast) -> None:
    spec = cast.supervisor.versions.get(version=1).spec
    SpecVersion.objects.create(supervisor=cast.supervisor, version=2, spec=spec)
    Supervisor.objects.filter(pk="flights").update(version=2)


def failed_task(cast: Cast, number: int) -> Task:
    task = copy.copy(cast.task)
    task.pk, task.spec_version, task.status = f"second-{number}", 2, Status.FAILED
    task.created_at = timezone.now() + timedelta(seconds=number)
    task.ended_at, task.error = task.created_at, "The broker said no."
    task.save(force_insert=True)
    return task


def said(client: Client) -> str:
    reasons: list[Any] = client.get("/api/v1/supervisors/flights/").json()["why_nothing"]
    return next((r["text"] for r in reasons if r["code"] == "version_not_started"), "")


def test_the_task_of_the_version_before_reads_on(cast: Cast, clients: dict[str, Client]) -> None:
    second_version(cast)
    assert said(clients["viewer"]) == ""  # it has not failed
    failed_task(cast, 1)
    failed_task(cast, 2)
    text = said(clients["viewer"])
    assert "Version 2 of the spec does not start: 2 of its tasks failed" in text
    assert "The task of version 1 reads on meanwhile." in text


def test_without_one_that_reads_the_last_that_published_is_named(cast: Cast, clients: dict[str, Client]) -> None:
    second_version(cast)
    failed_task(cast, 1)
    Task.objects.filter(pk=cast.task.pk).update(status=Status.SUCCESS, ended_at=timezone.now())
    assert "Version 1 was the last that published" in said(clients["viewer"])


def test_a_version_that_has_published_did_start(cast: Cast, clients: dict[str, Client]) -> None:
    second_version(cast)
    failed = failed_task(cast, 1)
    fence = IndexerFence.objects.filter(task_id=cast.task.pk).first()
    assert fence is not None
    fence.pk, fence.task_id = None, failed.pk
    fence.save(force_insert=True)
    assert said(clients["viewer"]) == ""
