"""A shared application has one log for all of its tasks: who may see it must be allowed to see those of all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.datasources.masking import set_masks
from controlplane.datasources.models import Datasource
from controlplane.tasks.models import Status, Task
from controlplane.teams.models import Team
from controlplane.teams.roles import Scope
from tests.support.django_cast import Cast, browsing_as, serving

SECRET = "hunter2-of-the-neighbour"


@pytest.fixture(autouse=True)
def log(cast: Cast, settings: Any, tmp_path: Path) -> None:
    """That of the cast's task, with a line of its neighbour's."""
    settings.TASK_DIR = tmp_path / "tasks"
    folder = settings.TASK_DIR / cast.task.pk
    folder.mkdir(parents=True)
    (folder / "spark.log").write_text(f"level=warning task=neighbour error='{SECRET}'\n")


def shared_by(cast: Cast, team: Team, datasource: Datasource) -> str:
    """The application of a team's, which serves the cast's task and one of that datasource."""
    name = f"shared-0a1b2c3d-{team.pk}-0a1b2c3d"
    Task.objects.filter(pk=cast.task.pk).update(shared_application=name)
    Task.objects.create(
        pk="neighbour",
        kind=cast.task.kind,
        spec=cast.task.spec,
        datasource=datasource,
        status=Status.RUNNING,
        created_at=timezone.now(),
        shared_application=name,
    )
    return name


def sees_it(api: Client, cast: Cast, *more: str) -> bool:
    """By one answer of all addresses of the log; ``more``: of pages."""
    log = f"/druid/indexer/v1/task/{cast.task.pk}/log"
    answers = [api.get(a) for a in (f"/api/v1/tasks/{cast.task.pk}/log/", log, f"{log}?offset=0", *more)]
    [seen] = {SECRET in answer.content.decode() for answer in answers}
    assert all(answer.status_code == 200 for answer in answers)
    assert seen or all(b"Hidden: its application also serves" in answer.content for answer in answers[:3])
    return seen


def test_a_mask_of_a_neighbour_hides_it_below_the_role(cast: Cast, clients: dict[str, Client]) -> None:
    orders = Datasource.objects.create(name="orders", team=cast.alpha)
    shared_by(cast, cast.alpha, orders)
    assert sees_it(clients["viewer"], cast)
    set_masks(user=cast.users["owner"], datasource=orders, masks={"password": "operator"})
    assert not sees_it(clients["viewer"], cast)
    page = browsing_as(cast, "viewer")
    for address in (f"/tasks/{cast.task.pk}/", f"/tasks/{cast.task.pk}/log/?log_text=hunter"):
        assert SECRET not in page.get(address).content.decode()
    assert sees_it(clients["operator"], cast)
    Task.objects.filter(pk="neighbour").update(shared_application="")  # it has its own
    assert sees_it(clients["viewer"], cast)


def test_a_token_for_some_datasources_does_not_read_what_others_say(cast: Cast) -> None:
    orders = Datasource.objects.create(name="orders", team=cast.alpha)
    shared_by(cast, cast.alpha, orders)
    assert sees_it(serving(cast, Scope.READ, "flights", "orders"), cast)
    assert not sees_it(serving(cast, Scope.READ, "flights"), cast)


def test_who_got_a_datasource_does_not_read_its_former_neighbours(cast: Cast, clients: dict[str, Client]) -> None:
    """Its task goes on, in the application of the team that had it."""
    theirs = Datasource.objects.create(name="theirs", team=cast.beta)
    shared_by(cast, cast.beta, theirs)
    assert not sees_it(clients["owner"], cast)
    assert sees_it(clients["superuser"], cast)
