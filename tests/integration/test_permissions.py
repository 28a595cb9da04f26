"""Every address of the site, asked by everybody: see ``support.permission_table``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.test import Client

from controlplane.datasources.models import Datasource
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.lifecycle import new_token
from controlplane.tasks.models import Task
from ingestion.specs.messages.protocol import SettledRequest
from tests.support.django_cast import PAYLOAD, ROLES, SEED, Cast, speaking_as
from tests.support.permission_table import TABLE, Everybody, Row
from tests.support.routes import all_routes
from tests.support.snapshot import Snapshot

ROUTES = {route.pattern: route for route in all_routes()}
# What no answer to somebody outside of the team may hold.
ALPHAS = (b"flights", b"alpha", b"a line of the log", PAYLOAD)
# The answers of these hold what they were sent.
ECHOED = ("api/v1/validate/", "api/v1/druid/import/", "supervisors/-/import/")


@pytest.fixture(autouse=True)
def log(cast: Cast, empty_cache: None) -> Iterator[None]:
    path = Path(settings.TASK_DIR) / cast.task.pk / "spark.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("a line of the log\n")
    yield
    path.unlink()


def test_the_table_knows_every_address() -> None:
    """Row 13 of the security checklist.

    A new one must be given rows: all methods of a class, at least one of a function.
    """
    known = {(row.method, row.pattern) for row in TABLE}
    patterns = {pattern for _, pattern in known}
    declared = {(method, route.pattern) for route in ROUTES.values() for method in route.methods}
    missing = (declared - known) | {("?", pattern) for pattern in ROUTES if pattern not in patterns}
    assert missing == set(), "give these rows in tests/support/permission_table.py"
    assert patterns - set(ROUTES) == set(), "these addresses are gone"


def parts() -> dict[str, list[Row]]:
    """The table's rows in a few parts, each with one cast and one client of each role."""
    found = defaultdict(list)
    for row in TABLE:
        found["pages" if row.is_page else row.pattern.partition("/")[0]].append(row)
    return found


@pytest.mark.parametrize("rows", parts().values(), ids=parts())
def test_who_may_do_what(rows: list[Row], cast: Cast) -> None:
    """Row 13 of the security checklist: every address, asked by everybody."""
    everybody, state = Everybody(cast), kept(cast)
    before = state()
    wrong: list[str] = []
    for row, (number, role) in product(rows, enumerate(ROLES)):
        cache.clear()  # throttles begin anew
        with transaction.atomic():
            wrong += faults(everybody, row, role, row.statuses[number])
            if row.statuses[number] >= 400 and state() != before:
                wrong.append(f"{role} changed something: {row}")
            transaction.set_rollback(True)  # the next finds all as it was
    assert not wrong, "\n".join(["", *wrong])


def faults(everybody: Everybody, row: Row, role: str, expected: int) -> Iterator[str]:
    """What is wrong with the answer to a row, asked by somebody with the role."""
    who = f"{role}, {row.method} /{row.pattern}{row.query}"
    answer: Any = everybody.ask(row, role)
    if answer.status_code != expected:
        yield f"{who}: {answer}, not {expected}"
    content = b"".join(answer) if answer.streaming else answer.content  # a query has its place until it is read
    foreign = role in ("outsider", "anonymous") and expected < 400 and row.pattern not in ECHOED
    found = [word for word in ALPHAS if foreign and word in content.replace(b"flights-topic", b"")]
    if found:
        yield f"{who} was shown {found}"


def kept(cast: Cast) -> Snapshot:
    """What a refused request may not have changed."""
    return Snapshot(
        Task.objects.order_by("id").values_list("id", "goal", "status"),
        Supervisor.objects.order_by("id").values_list("id", "version", "suspended", "terminated_at"),
        Datasource.objects.order_by("id").values_list("name", "team__name"),
        cast.alpha.memberships.order_by("user__username").values_list("user__username", "role"),
    )


@pytest.mark.parametrize(
    ("role", "status", "team"),
    [
        ("owner", 201, "alpha"),
        ("operator", 403, None),
        ("viewer", 403, None),
        ("outsider", 201, "beta"),
        ("anonymous", 401, None),
        ("superuser", 400, None),  # must say for which team
    ],
)
@pytest.mark.parametrize("place", ["tasks", "supervisors"])
def test_who_may_make_a_datasource(cast: Cast, role: str, status: int, team: str | None, place: str) -> None:
    answer = speaking_as(cast, role).post(f"/api/v1/{place}/", SEED, content_type="application/json")
    assert answer.status_code == status
    made = Datasource.objects.filter(name="my_datasource").select_related("team").first()
    assert (made.team.name if made else None) == team


def test_lists_and_counts_hold_what_is_ones_own(cast: Cast) -> None:
    """Row 13 of the security checklist: lists and counts too."""
    mine = Datasource.objects.create(name="outsiders-own", team=cast.beta)
    outsider, superuser = speaking_as(cast, "outsider"), speaking_as(cast, "superuser")
    assert [d["name"] for d in outsider.get("/api/v1/datasources/").json()["results"]] == [mine.name]
    assert [d["name"] for d in superuser.get("/api/v1/datasources/").json()["results"]] == ["flights", mine.name]
    assert [t["name"] for t in outsider.get("/api/v1/teams/").json()["results"]] == ["beta"]
    assert outsider.get("/api/v1/tasks/").json()["results"] == []
    assert outsider.get("/druid/indexer/v1/supervisor").json() == []


def test_a_user_without_a_team_sees_nothing(cast: Cast) -> None:
    cast.users["viewer"].memberships.all().delete()
    client = speaking_as(cast, "viewer")
    for path in ("teams", "datasources", "supervisors", "tasks"):
        assert client.get(f"/api/v1/{path}/").json()["results"] == []
    assert client.get("/api/v1/datasources/flights/").status_code == 404


def test_a_user_who_is_turned_off_sees_nothing(cast: Cast) -> None:
    client = speaking_as(cast, "superuser")
    cast.users["superuser"].is_active = False
    cast.users["superuser"].save()
    assert client.get("/api/v1/datasources/").status_code == 401


def test_a_token_of_a_user_does_not_open_a_task(cast: Cast) -> None:
    """Row 13 of the security checklist: nor does a user's token open what is an application's."""
    assert Client().get(f"/internal/tasks/{cast.task.pk}/assignment").status_code == 401


def test_an_indexer_number_beyond_all_numbers_is_bad_input(cast: Cast) -> None:
    """Not 503, which an indexer would answer by sending the same again, for ever."""
    headers = {"Authorization": f"Bearer {new_token(cast.task)}"}
    body = SettledRequest(epoch=1, topic_id="t", offsets={0: [(0, 1)]}).model_dump_json()
    path = f"/internal/tasks/{cast.task.pk}/indexers/{2**40}/settled"
    answer = Client().post(path, body, content_type="application/json", headers=headers)
    assert answer.status_code == 400
