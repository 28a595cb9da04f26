"""What an indexer could not start with is refused when the spec is submitted, wherever that is."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client

from controlplane.datasources.models import Datasource
from controlplane.supervisors.models import Supervisor
from controlplane.tasks import checking
from controlplane.tasks.models import Task
from tests.support.django_cast import SEED, Cast

pytestmark = pytest.mark.usefixtures("cold_processes")  # those without `checked_here` show the process itself
TASKS = "/api/v1/tasks/"
SUPERVISORS = "/api/v1/supervisors/"
EXPRESSION = "/dataSchema/transformSpec/transforms/0/expression"


def post(client: Client, path: str, document: object) -> Any:
    return client.post(path, document, content_type="application/json")


def with_transform(expression: str) -> dict[str, Any]:
    spec = copy.deepcopy(SEED)
    transform = {"type": "expression", "name": "made", "expression": expression, "language": "sql"}
    spec["dataSchema"]["transformSpec"] = {"transforms": [transform]}
    return spec


@pytest.mark.usefixtures("checked_here")
@pytest.mark.parametrize(
    "path", [TASKS, SUPERVISORS, "/druid/indexer/v1/task", "/druid/indexer/v1/supervisor"], ids=lambda p: p[1:]
)
def test_an_expression_that_is_no_good_is_refused_and_nothing_is_stored(owner: Client, path: str) -> None:
    tasks, supervisors = Task.objects.count(), Supervisor.objects.count()
    answer = post(owner, path, with_transform("upper(a) || getenv('HOME')"))
    assert answer.status_code == 400
    assert "getenv" in answer.content.decode()
    assert (Task.objects.count(), Supervisor.objects.count()) == (tasks, supervisors)
    assert not Datasource.objects.filter(name="my_datasource").exists()


@pytest.mark.usefixtures("checked_here")
@pytest.mark.parametrize(
    "path", [TASKS, SUPERVISORS, "/druid/indexer/v1/task", "/druid/indexer/v1/supervisor"], ids=lambda p: p[1:]
)
def test_a_regular_expression_that_is_no_good_is_refused_where_it_is_all_there_is_to_check(
    owner: Client, path: str
) -> None:
    spec = copy.deepcopy(SEED)
    wrong = {"type": "regex", "dimension": "a", "pattern": "["}
    spec["dataSchema"]["transformSpec"] = {"filter": {"type": "and", "fields": [wrong]}}
    answer = post(owner, path, spec)
    assert answer.status_code == 400
    assert "without its closing" in answer.content.decode()


def test_where_it_is_wrong_is_told(owner: Client) -> None:
    [fault] = post(owner, TASKS, with_transform("(")).json()["errors"]
    assert (fault["pointer"], fault["path"]) == (EXPRESSION, "dataSchema.transformSpec.transforms[0].expression")


def test_one_that_is_good_is_taken(owner: Client) -> None:
    assert post(owner, TASKS, with_transform("upper(a)")).status_code == 201


@pytest.mark.usefixtures("checked_here")
def test_validation_checks_it_too(owner: Client) -> None:
    answer = post(owner, "/api/v1/validate/", {"kind": "supervisor", "spec": with_transform("(")})
    assert [e["pointer"] for e in answer.json()["errors"]] == ["/spec" + EXPRESSION]


@pytest.mark.usefixtures("checked_here")
def test_a_schema_file_is_checked_only_where_the_folder_is(
    owner: Client, cast: Cast, settings: LazySettings, tmp_path: Any
) -> None:
    spec = copy.deepcopy(SEED)
    decoder = {"type": "schema_file", "file": "flights.avsc"}
    spec["ioConfig"]["inputFormat"] = {"type": "avro_stream", "avroBytesDecoder": decoder}
    assert b"a spec may not name files on this site" in post(owner, TASKS, spec).content
    settings.SCHEMA_FOLDER = str(tmp_path)
    assert b"can't be read" in post(owner, TASKS, spec).content
    settings.SCHEMA_FOLDER = str(tmp_path / "on-another-machine")
    assert post(owner, TASKS, spec).status_code == 201


def test_a_process_that_can_not_check_is_no_fault_of_the_spec(
    owner: Client, settings: LazySettings, tmp_path: Any
) -> None:
    settings.BASE_DIR = tmp_path  # where there is no such module
    answer = post(owner, TASKS, with_transform("upper(a)"))
    assert answer.status_code == 503
    assert "The process that checks specs failed" in answer.json()["detail"]


def test_only_so_many_are_checked_at_a_time(owner: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "CHECK_S", 0.1)
    with checking._limiter.place("somebody", 10), checking._limiter.place("somebody else", 10):
        assert post(owner, TASKS, with_transform("upper(a)")).status_code == 503


@pytest.mark.usefixtures("checked_here")
def test_one_users_checks_leave_a_place_to_others(
    clients: dict[str, Client], cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 20 of the security checklist: a user whose spec takes long to check keeps only that user waiting."""
    with checking._limiter.place(cast.users["operator"].pk, 10):
        monkeypatch.setattr(checking, "CHECK_S", 0.1)
        mine = post(clients["operator"], "/api/v1/validate/", {"kind": "task", "spec": with_transform("upper(a)")})
        monkeypatch.setattr(checking, "CHECK_S", 30.0)
        others = post(clients["viewer"], "/api/v1/validate/", {"kind": "task", "spec": with_transform("upper(a)")})
    assert (mine.status_code, others.status_code) == (503, 200)


def test_on_a_busy_machine_it_is_to_be_sent_again(owner: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "CHECK_S", 0.001)
    answer = post(owner, TASKS, with_transform("upper(a)"))
    assert (answer.status_code, answer["Retry-After"]) == (503, "10")
    assert "could not be checked within 0.001 s: the machine is busy" in answer.json()["detail"]
