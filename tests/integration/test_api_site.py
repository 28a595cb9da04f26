"""What is common to the whole REST interface: problems, addresses with and without slash, health, OpenAPI, Swagger."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application
from django.core.management import call_command
from django.test import Client
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import SPECIFICATIONS
from pytest_django import Settings
from referencing import Resource

from controlplane.teams.models import ApiToken, User
from tests.support.django_cast import Cast

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.urls("tests.support.failing_urls")
@pytest.mark.parametrize(
    ("kind", "status", "name"),
    [
        ("fault", 500, "internal"),
        ("store", 503, "unavailable"),
        ("redis", 503, "unavailable"),
        ("twice", 409, "conflict"),
        ("range", 400, "invalid-input"),
        ("denied", 403, "not-allowed"),
    ],
)
def test_what_fails_inside_is_a_problem_without_its_cause(db: None, kind: str, status: int, name: str) -> None:
    client = Client(raise_request_exception=False)
    ours, druids = client.get(f"/api/failing/{kind}/"), client.get(f"/druid/failing/{kind}")
    assert (ours.status_code, druids.status_code) == (status, status)
    assert ours.headers["Content-Type"] == "application/problem+json"
    assert (ours.json()["type"], ours.json()["status"]) == (f"urn:headgate:problem:{name}", status)
    assert ours.json()["instance"] == f"/api/failing/{kind}/"
    assert druids.json()["error"] == "druidException"
    assert b"canary" not in ours.content + druids.content


@pytest.mark.urls("tests.support.failing_urls")
def test_a_fault_of_ours_is_logged_with_its_cause(db: None, caplog: pytest.LogCaptureFixture) -> None:
    Client(raise_request_exception=False).get("/api/failing/fault/")
    [record] = [r for r in caplog.records if r.name == "controlplane.api.problems"]
    assert "/api/failing/fault/" in record.getMessage()
    assert "canary" in (caplog.text)


@pytest.mark.parametrize("path", ["/api/none", "/api/v1/none/", "/api/v2/tasks/", "/api/v1/tasks/x/none", "/api/\x00"])
def test_an_address_that_does_not_exist_is_a_problem(db: None, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        answer = Client().generic(method, path)
        assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")


def test_an_address_of_druids_that_does_not_exist_has_druids_form(db: None) -> None:
    answer = Client().get("/druid/v2/none")
    assert (answer.status_code, answer.json()["category"]) == (404, "NOT_FOUND")


def test_the_slash_at_the_end_may_be_there_or_not(viewer: Client, clients: dict[str, Client], cast: Cast) -> None:
    for path in ("/api/v1/datasources", "/api/v1/datasources/flights", "/druid/indexer/v1/supervisor"):
        assert viewer.get(path).content == viewer.get(f"{path}/").content
        assert viewer.get(f"{path}/").status_code == 200
    answers = [clients["operator"].post(f"/api/{p}", {}, "application/json") for p in ("sampler", "v1/sampler/")]
    assert [a.status_code for a in answers] == [400, 400]
    assert answers[0].json()["errors"] == answers[1].json()["errors"] != []
    assert clients["operator"].post("/api/v1/supervisors/flights/suspend").json()["suspended"] is True
    assert clients["viewer"].post("/api/v1/supervisors/flights/resume").status_code == 403
    assert Client().get("/api/v1/datasources").status_code == 401


def test_a_session_without_the_csrf_token_is_refused_without_the_slash_too(cast: Cast) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(cast.users["owner"])
    assert browser.post("/api/v1/supervisors/flights/terminate").status_code == 403


@pytest.mark.django_db(transaction=True)
def test_a_chunked_body_is_read() -> None:
    """Through ASGI, as the site is served: DRF takes a body without a length for none."""
    user = User.objects.create_user("somebody")
    _, secret = ApiToken.objects.create(user=user)
    headers = [
        (b"host", b"testserver"),
        (b"authorization", f"Bearer {secret}".encode()),
        (b"content-type", b"application/json"),
        (b"transfer-encoding", b"chunked"),
    ]
    scope = {"type": "http", "method": "POST", "path": "/api/v1/tokens/", "query_string": b"", "headers": headers}

    async def ask() -> int:
        site = ApplicationCommunicator(get_asgi_application(), scope)
        for piece, more in ((b'{"name": ', True), (b'"chunked"}', False)):
            await site.send_input({"type": "http.request", "body": piece, "more_body": more})
        return int((await site.receive_output(timeout=30))["status"])

    # In a thread of its own: a browser test before this one may have left an event loop running in this one.
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(async_to_sync(ask)).result() == 201
    assert ApiToken.objects.filter(user=user, name="chunked").exists()


def test_ready_when_the_stores_answer(db: None) -> None:
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["checks"]) == (200, {"database": "ok", "redis": "ok"})
    assert "no-store" in answer.headers["Cache-Control"]


def test_not_ready_names_what_does_not_answer(db: None, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"] == {"database": "ok", "redis": "does not answer"}


def test_alive_without_any_store() -> None:
    """In a process of its own whose stores are at a closed port."""
    script = (
        "import django; django.setup()\n"
        "from django.test import Client\n"
        "for path in ('/healthz', '/readyz'): print(Client().get(path).status_code)\n"
    )
    closed = {"DATABASE_URL": "postgresql://u:p@127.0.0.1:1/d", "HEADGATE_REDIS_URL": "redis://127.0.0.1:1/0"}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **closed}, cwd=PROJECT, capture_output=True, text=True
    )
    assert done.stdout.split() == ["200", "503"], done.stderr


def test_openapi_has_no_warnings_and_is_valid(tmp_path: Path) -> None:
    """By the schema that ``--validate`` takes. Its references are resolved once: that takes a quarter of the time."""
    call_command("spectacular", "--fail-on-warn", "--format", "openapi-json", file=str(tmp_path / "s.json"))
    document = json.loads((tmp_path / "s.json").read_text())
    assert document["openapi"].startswith("3.1")
    openapi_3_1 = json.loads(files("drf_spectacular.validation").joinpath("openapi_3_1_schema.json").read_text())
    known = SPECIFICATIONS.with_resource(openapi_3_1["$id"], Resource.from_contents(openapi_3_1)).crawl()
    Draft202012Validator({"$ref": openapi_3_1["$id"]}, registry=known).validate(document)
    with pytest.raises(ValidationError):
        Draft202012Validator({"$ref": openapi_3_1["$id"]}, registry=known).validate({**document, "paths": {"x": 1}})


@cache
def openapi() -> dict[str, Any]:
    """What the site answers: the same every time, and a second's work."""
    document: dict[str, Any] = Client().get("/api/schema/").json()
    return document


def test_openapi_describes_what_there_is(db: None) -> None:
    schema = openapi()
    assert schema["openapi"].startswith("3.1")
    assert not [path for path in schema["paths"] if path.startswith("/internal")]
    operations = [operation for path in schema["paths"].values() for operation in path.values()]
    assert all({"operationId", "description", "responses"} <= set(o) for o in operations)
    assert all("default" in o["responses"] for o in operations)
    ids = [o["operationId"] for o in operations]
    assert len(ids) == len(set(ids))
    submitted = schema["paths"]["/api/v1/tasks/"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    either = schema["components"]["schemas"][submitted["$ref"].rpartition("/")[2]]["anyOf"]
    assert [kind["$ref"].rpartition("/")[2] for kind in either] == [
        "TaskSpec",
        "BatchTaskSpec",
        "CompactTaskSpec",
        "KillTaskSpec",
    ]
    assert "bearer" in schema["components"]["securitySchemes"]


def test_the_text_of_openapi_is_made_once_and_no_refusal_is_answered_with_it(db: None) -> None:
    first, again = (Client().get("/api/schema/") for _ in range(2))
    assert first.content is again.content
    dense = Client().get("/api/schema/", headers={"Accept": "application/json; indent=1"})
    assert dense.headers["Content-Type"] == "application/json"
    assert len(dense.content) < len(first.content)
    assert dense.json() == first.json()
    refused = Client().post("/api/schema/")
    assert (refused.status_code, refused.json()["status"]) == (405, 405)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/teams/", 200),
        ("/api/v1/teams/alpha/audit/", 403),
        ("/api/v1/tasks/none/", 404),
        ("/api/v1/datasources/flights/quarantine/export/", 200),
        ("/druid/indexer/v1/tasks", 200),
    ],
)
def test_nothing_in_between_keeps_an_answer(viewer: Client, path: str, status: int) -> None:
    answer = viewer.get(path)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (status, "no-store")


def test_an_answer_has_the_fields_that_openapi_says(viewer: Client) -> None:
    schema = openapi()
    fields = schema["components"]["schemas"]["DatasourceDetail"]["properties"]
    assert set(viewer.get("/api/v1/datasources/flights/").json()) == set(fields)
