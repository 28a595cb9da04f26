"""What comes from outside is text on every page: payloads, errors, logs, names, specs."""

from __future__ import annotations

import uuid

import pytest
from django.conf import settings
from django.test import Client

from controlplane.quarantine.models import QuarantinedRecord
from controlplane.supervisors.models import SpecVersion
from tests.support.django_cast import STARTED, Cast, browsing_as
from tests.support.html import parsed

ATTACK = "<script>alert(1)</script><img src=x onerror=alert(2)>"
SHOWN = "&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(2)&gt;"


@pytest.fixture
def viewer(cast: Cast) -> Client:
    return browsing_as(cast, "viewer")


@pytest.fixture
def poison(cast: Cast) -> QuarantinedRecord:
    return QuarantinedRecord.objects.create(
        source=cast.source,
        datasource=cast.datasource,
        task_id=cast.task.pk,
        partition=1,
        offset=9,
        delivery_count=1,
        reason="unparseable",
        error=f"Malformed {ATTACK}",
        key=ATTACK.encode(),
        payload=ATTACK.encode(),
        publish_id=uuid.uuid4(),
        created_at=STARTED,
    )


@pytest.mark.parametrize(
    "address",
    [
        "/datasources/flights/quarantine/",
        "/datasources/flights/quarantine/{number}/",
        "/tasks/{task}/",
        "/tasks/{task}/live/",
        "/tasks/{task}/errors/",
    ],
)
def test_a_poison_record_is_text(viewer: Client, cast: Cast, poison: QuarantinedRecord, address: str) -> None:
    answer = viewer.get(address.format(number=poison.pk, task=cast.task.pk))
    page, text = parsed(answer), answer.content.decode()
    assert ATTACK in [e.raw_text for e in page.all("pre")]
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert SHOWN in text
    assert all(s.attributes.get("src") for s in page.all("script"))


def test_the_bytes_of_a_record_are_a_file_and_never_a_page(viewer: Client, poison: QuarantinedRecord) -> None:
    answer = viewer.get(f"/datasources/flights/quarantine/{poison.pk}/payload")
    assert answer.content == ATTACK.encode()
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"] == 'attachment; filename="record-1-9.bin"'
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_a_log_and_an_error_are_text(viewer: Client, cast: Cast) -> None:
    folder = settings.TASK_DIR / cast.task.pk
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spark.log").write_text(f"INFO {ATTACK}\n")
    cast.task.status, cast.task.error = "FAILED", ATTACK
    cast.task.save()
    answer = viewer.get(f"/tasks/{cast.task.pk}/")
    assert f"INFO {ATTACK}\n" in [e.raw_text for e in parsed(answer).all("pre")]
    assert ATTACK in [e.raw_text for e in parsed(answer).all("pre")]
    assert "<script>alert" not in answer.content.decode()


def test_a_spec_is_text_also_where_it_is_edited(cast: Cast) -> None:
    spec = {**cast.task.spec, "context": {"note": "</textarea></pre>" + ATTACK}}
    SpecVersion.objects.create(supervisor=cast.supervisor, version=2, spec=spec)
    cast.supervisor.version = 2
    cast.supervisor.save()
    owner = browsing_as(cast, "owner")
    for address in ("/supervisors/flights/spec/", "/supervisors/-/new/?from=flights"):
        answer = owner.get(address)
        assert "<script>alert" not in answer.content.decode()
        assert ATTACK in parsed(answer).one("main").raw_text.replace('\\"', '"')


def test_what_was_typed_comes_back_as_text(cast: Cast) -> None:
    owner = browsing_as(cast, "owner")
    for answer in (
        owner.get("/datasources/", {"search": ATTACK}),
        owner.get("/tasks/", {"search": ATTACK, "status": ATTACK}),
        owner.get("/supervisors/", {"search": ATTACK}),
        owner.get("/records/", {"topic": ATTACK, "partition": ATTACK, "offset": "1"}),
        owner.get("/records/", {"topic": ATTACK, "partition": "1", "offset": "1"}),
        owner.get(f"/datasources/{ATTACK.replace('/', '')}/"),
        owner.post("/tasks/-/new/", {"document": ATTACK}),
        owner.post("/tasks/-/new/", {"document": '{"' + ATTACK.replace('"', "") + '": 1}'}),
        owner.post("/login/", {"username": ATTACK, "password": "x"}),
    ):
        assert "<script>alert" not in answer.content.decode()
        assert "<img src=x" not in answer.content.decode()


def test_every_page_forbids_scripts_that_are_not_ours(viewer: Client) -> None:
    policy = viewer.get("/datasources/")["Content-Security-Policy"]
    directives = {part.split()[0]: part.split()[1:] for part in policy.split(";") if part.strip()}
    assert directives["default-src"] == ["'self'"]
    assert directives["script-src"] == ["'self'"]
    assert "'unsafe-inline'" not in directives["style-src"]
    assert directives["frame-ancestors"] == ["'none'"]


def test_the_editor_has_a_nonce_for_its_styles(cast: Cast) -> None:
    answer = browsing_as(cast, "owner").get("/tasks/-/new/")
    nonce = parsed(answer).one("textarea", id="id_document").attributes["data-nonce"]
    assert f"'nonce-{nonce}'" in answer["Content-Security-Policy"]
