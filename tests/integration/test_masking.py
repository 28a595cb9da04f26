"""Columns that not every member sees: a secret value is put wherever one may come to lie, and looked for everywhere."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.test import Client
from django.utils import timezone

from controlplane.compaction.models import Job
from controlplane.datasources.masking import MAX_COLUMNS, set_masks
from controlplane.datasources.models import Datasource, MaskedColumn
from controlplane.quarantine.models import FaultyRecord, QuarantinedRecord
from controlplane.segments.models import Segment, SegmentSchema
from controlplane.sources.models import SourceEvent
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Indexer, Status, Task
from controlplane.teams.models import ApiToken, AuditEntry
from controlplane.teams.roles import Role
from ingestion.specs.causes import cause_of
from tests.integration.test_newest_rows import cells
from tests.support.desk import DAY_MS, Desk, batch_of, schema_of
from tests.support.django_cast import Cast, browsing_as, speaking_as
from tests.support.html import parsed
from tests.support.permission_table import TABLE, Everybody
from tests.support.sql import register

SECRET = "hunter2-in-a-column"
MASKS = "/api/v1/datasources/flights/masks/"
ERROR = f"field 'password' holds {SECRET}, which is no number"


@pytest.fixture
def everywhere(cast: Cast, settings: Any, tmp_path: Path) -> Cast:
    """The secret in a stored row, in quarantine, in errors, in the log: all that is of the datasource ``flights``."""
    settings.TASK_DIR = str(tmp_path / "tasks")
    log = tmp_path / "tasks" / cast.task.pk / "spark.log"
    log.parent.mkdir(parents=True)
    log.write_text(f"10:00 WARN parse exception error={ERROR}\n")
    settings.DEEP_STORAGE = str(tmp_path / "deep")
    desk = Desk(tmp_path, schema_of())
    settings.DEEP_STORAGE = str(desk.deep)
    desk.add(batch_of([DAY_MS], n=pa.array([7]), password=pa.array([SECRET])))
    files = desk.write()
    desk.index.close()
    register(Datasource.objects.create(name="rows-of-secrets", team=cast.alpha), files)
    record = cast.quarantined
    QuarantinedRecord.objects.filter(pk=record.pk).update(
        payload=f'{{"password": "{SECRET}"}}'.encode(), key=SECRET.encode(), error=ERROR
    )
    FaultyRecord.objects.create(
        source=cast.source,
        datasource=cast.datasource,
        task_id=cast.task.pk,
        partition=0,
        offset=1,
        delivery_count=1,
        error=ERROR,
        cause=cause_of("processed_with_error", ERROR).fingerprint,
        payload=SECRET.encode(),
        payload_size=9,
        created_at=record.created_at,
    )
    unread = {"place": "/data/x.json, byte 0", "start": SECRET, "error": ERROR, "stored": True}
    Task.objects.filter(pk=cast.task.pk).update(unread=[unread])
    for kind in (SourceEvent.Kind.QUARANTINED, SourceEvent.Kind.TASK_FAILED, SourceEvent.Kind.FAILING):
        SourceEvent.objects.create(
            datasource=cast.datasource, kind=kind, alarm=True, detail=ERROR, task_id=cast.task.pk
        )
    Task.objects.filter(pk=cast.task.pk).update(error=ERROR, status=Status.FAILED)
    Indexer.objects.filter(task=cast.task).update(message=ERROR)
    failed = {"at": "2025-06-01T12:00:00+00:00", "class": "TaskFailed", "message": ERROR, "task": cast.task.pk}
    Supervisor.objects.filter(pk=cast.supervisor.pk).update(recent_errors=[failed], failures=1)
    return cast


def mask(cast: Cast, role: str = "admin", name: str = "flights") -> None:
    datasource = Datasource.objects.get(name=name)
    set_masks(user=cast.users["owner"], datasource=datasource, masks={"password": role})


def told(answer: Any) -> str:
    body = b"".join(answer) if answer.streaming else answer.content
    return "".join(f"{name}: {value}\n" for name, value in answer.items()) + body.decode(errors="replace")


def answers(cast: Cast, role: str, wanted: Collection[str] = ()) -> list[tuple[str, str]]:
    """What somebody with the role is told at each address of the whole site, or at the wanted ones."""
    everybody, found = Everybody(cast), []
    for row in TABLE:
        if row.method != "GET" or row.pattern.startswith(("internal/", "^")) or row.pattern == "-/live/":
            continue
        if wanted and row.pattern not in wanted:
            continue
        found.append((row.pattern, told(everybody.ask(row, role))))
    quarantined = f"/datasources/flights/quarantine/{cast.quarantined.pk}/"
    more = [*(f"{quarantined}?as={form}" for form in ("text", "json", "tree", "hexadecimal", "spec"))]
    more += [f"/tasks/{cast.task.pk}/errors/?kind=faulty", f"/tasks/{cast.task.pk}/log/?log_text=hunter"]
    more += ["/datasources/flights/events/?kind=failing", "/quarantine/?show=all"]
    client = browsing_as(cast, role)
    more += [f"/druid/coordinator/v1/{path}?full" for path in ("datasources", "datasources/flights")]
    more += [f"/druid/coordinator/v1/{path}?full" for path in ("metadata/datasources", "datasources/flights/intervals")]
    more += ["/druid/coordinator/v1/metadata/datasources/flights/segments?full"]
    return found + [(address, told(client.get(address))) for address in more if not wanted or address in wanted]


def spots(found: list[tuple[str, str]], secret: str = SECRET) -> set[str]:
    """The addresses at which the secret was told."""
    return {address for address, text in found if secret in text}


def failed_merge(cast: Cast, error: str) -> None:
    start, now = cast.segments[0].interval_start, timezone.now()
    Job.objects.create(
        id="failed-merge", datasource=cast.datasource, interval_start=start, interval_end=start + timedelta(days=1),
        tier=0, state="failed", inputs=[], data_schema={}, rollup=False, max_rows_per_segment=5_000_000,
        rows_before=9, bytes_before=9, error=error, created_at=now,
    )  # fmt: skip


def test_what_is_masked_is_told_to_nobody_below_the_role(everywhere: Cast, clients: dict[str, Client]) -> None:
    """Nor where a file lies, in which all columns are plain. Druid's addresses answer without, so its tools go on."""
    address = "/druid/coordinator/v1/metadata/segments"
    path = everywhere.segments[0].path
    failed_merge(everywhere, f"{path} does not exist")
    found = answers(everywhere, "operator")
    sees = answers(everywhere, "viewer", spots(found))
    assert len(spots(sees)) > 15, "a viewer finds the secret as long as nothing is masked"
    places = spots(found, path)
    assert {"api/v1/datasources/<str:name>/compaction/jobs/", "datasources/<str:name>/compaction/"} <= places
    assert {address.lstrip("/"), "datasources/<str:name>/segments/"} <= places
    assert "/druid/coordinator/v1/datasources?full" in places
    assert "api/v1/records/" in spots(found, everywhere.segments[1].path) | places
    mask(everywhere)
    assert spots(answers(everywhere, "viewer")) == set()
    found = answers(everywhere, "operator")
    assert (spots(found), spots(found, path)) == (set(), set())
    [first, *_] = clients["operator"].get(address).json()
    assert first["loadSpec"] == {"type": "parquet"}
    assert clients["owner"].get(address).json()[0]["loadSpec"] == {"type": "parquet", "path": path}


def test_the_role_of_a_mask_sees_what_it_hides(everywhere: Cast, clients: dict[str, Client]) -> None:
    record = f"/api/v1/datasources/flights/quarantine/{everywhere.quarantined.pk}/"
    for role, sees in (("admin", {"owner"}), ("operator", {"operator", "owner"})):
        mask(everywhere, role)
        assert {who for who in ("viewer", "operator", "owner") if SECRET in told(clients[who].get(record))} == sees


def test_rows_are_masked_by_column_and_files_addresses_are_kept_back(
    everywhere: Cast, clients: dict[str, Client]
) -> None:
    address = "/api/v1/datasources/rows-of-secrets/rows/"
    assert SECRET in told(clients["operator"].get(address))
    mask(everywhere, name="rows-of-secrets")
    for role in ("viewer", "operator"):
        shown = clients[role].get(address).json()
        assert cells(shown, "password") == [{"masked": True, "role": "admin"}]
        assert cells(shown, "n") == [7]
        for path in ("manifest/", "manifest/addresses/"):
            refused = clients[role].get(f"/api/v1/datasources/rows-of-secrets/{path}")
            assert refused.status_code == 403
            assert "the role admin in team alpha" in refused.json()["detail"]
    assert cells(clients["owner"].get(address).json(), "password") == [SECRET]
    page = told(browsing_as(everywhere, "operator").get("/datasources/rows-of-secrets/rows/table/"))
    assert "hidden: needs role admin" in page
    assert SECRET not in page


def test_a_number_is_masked_even_where_there_is_none(everywhere: Cast, clients: dict[str, Client]) -> None:
    datasource = Datasource.objects.get(name="rows-of-secrets")
    set_masks(user=everywhere.users["owner"], datasource=datasource, masks={"n": "operator"})
    shown = clients["viewer"].get("/api/v1/datasources/rows-of-secrets/rows/").json()
    assert cells(shown, "n") == [{"masked": True, "role": "operator"}]


def test_a_field_of_nested_values_is_hidden_with_its_column(
    everywhere: Cast, clients: dict[str, Client], tmp_path: Path
) -> None:
    """Wherever the payload is shown, too: a mask of its field by path hides all that was not decoded."""
    desk = Desk(tmp_path, schema_of())
    nested = pa.array([f'{{"email": "{SECRET}"}}'])
    desk.add(batch_of([DAY_MS], **{"n": pa.array([7]), "user": nested, "user.email.domain": pa.array([SECRET])}))
    files = desk.write()
    desk.index.close()
    datasource = Datasource.objects.create(name="nested", team=everywhere.alpha)
    register(datasource, files)
    address = "/api/v1/datasources/nested/rows/"
    assert SECRET in told(clients["operator"].get(address))
    set_masks(user=everywhere.users["owner"], datasource=datasource, masks={"user.email": "admin"})
    shown = clients["operator"].get(address)
    assert SECRET not in told(shown)
    assert cells(shown.json(), "user") == [{"masked": True, "role": "admin"}]
    assert cells(shown.json(), "n") == [7]
    assert SECRET in told(clients["owner"].get(address))
    set_masks(user=everywhere.users["owner"], datasource=everywhere.datasource, masks={"user.password": "admin"})
    record = f"/datasources/flights/quarantine/{everywhere.quarantined.pk}/"
    for path in (f"/api/v1{record}", f"{record}?as=tree", f"{record}?as=spec", f"/tasks/{everywhere.task.pk}/"):
        client = clients["operator"] if path.startswith("/api") else browsing_as(everywhere, "operator")
        assert SECRET not in told(client.get(path)), path


def test_records_are_not_found_by_a_masked_key(everywhere: Cast, clients: dict[str, Client]) -> None:
    QuarantinedRecord.objects.filter(pk=everywhere.quarantined.pk).update(timestamp_ms=1)
    query = {"topic": "flights-topic", "key": SECRET, "from": "1970-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"}
    assert len(clients["viewer"].get("/api/v1/records/search/", query).json()["quarantined"]) == 1
    mask(everywhere)
    found = clients["operator"].get("/api/v1/records/search/", query).json()
    assert found["quarantined"] == []
    assert "needs the role admin" in found["problem"]
    assert len(clients["owner"].get("/api/v1/records/search/", query).json()["quarantined"]) == 1


@pytest.mark.parametrize("named", [{"dataSource": "flights"}, {"dataSource": "another"}, {}], ids=str)
def test_a_sample_of_its_topic_needs_the_role(
    everywhere: Cast, clients: dict[str, Client], named: dict[str, str]
) -> None:
    mask(everywhere)
    io_config = {"topic": "flights-topic", "consumerProperties": {"bootstrap.servers": "127.0.0.1:1"}}
    spec = {"type": "kafka", "spec": {"dataSchema": named, "ioConfig": io_config}}
    for address in ("/api/v1/sampler/", "/druid/indexer/v1/sampler"):
        answer = clients["operator"].post(address, spec, content_type="application/json")
        assert answer.status_code == 403, answer.content
        assert "masked columns" in told(answer)
    assert clients["owner"].post("/api/v1/sampler/", spec, content_type="application/json").status_code != 403


def test_whose_team_it_is_not_is_told_nothing_of_it(everywhere: Cast, clients: dict[str, Client]) -> None:
    mask(everywhere)
    io_config = {"topic": "flights-topic", "consumerProperties": {"bootstrap.servers": "127.0.0.1:1"}}
    spec = {"type": "kafka", "spec": {"dataSchema": {}, "ioConfig": io_config}}
    answer = clients["outsider"].post("/api/v1/sampler/", spec, content_type="application/json")
    assert answer.status_code != 403
    assert "flights " not in told(answer)


def test_admins_mask_and_the_trail_has_it(cast: Cast, clients: dict[str, Client]) -> None:
    columns = [{"column": "email"}, {"column": "n", "role": "operator"}]
    body = {"columns": columns}
    assert clients["operator"].put(MASKS, body, content_type="application/json").status_code == 403
    assert clients["outsider"].put(MASKS, body, content_type="application/json").status_code == 404
    assert not MaskedColumn.objects.exists()
    answer = clients["owner"].put(MASKS, body, content_type="application/json")
    assert answer.json()["columns"] == [{"column": "email", "role": "admin"}, columns[1]]
    assert clients["viewer"].get(MASKS).json() == answer.json()
    assert clients["owner"].put(MASKS, body, content_type="application/json").status_code == 200
    entry = AuditEntry.objects.get(action="mask")
    assert entry.detail == {"before": {}, "after": {"email": "admin", "n": "operator"}}
    assert clients["owner"].put(MASKS, {"columns": []}, content_type="application/json").json() == {
        "columns": [],
        "warnings": [],
    }


@pytest.mark.parametrize(
    "columns",
    [
        [{"column": "__time"}],
        [{"column": ""}],
        [{"column": "a\0b"}],
        [{"column": "a", "role": "viewer"}],
        [{"column": "a"}, {"column": "a", "role": "operator"}],
        [{"column": "a" * 301}],
        [{"column": f"c{n}"} for n in range(MAX_COLUMNS + 1)],
        "email",
    ],
    ids=["time", "empty", "nul", "viewer", "twice", "long", "many", "text"],
)
def test_bad_masks_change_nothing(cast: Cast, clients: dict[str, Client], columns: Any) -> None:
    MaskedColumn.objects.create(datasource=cast.datasource, column="kept", role=Role.ADMIN)
    assert clients["owner"].put(MASKS, {"columns": columns}, content_type="application/json").status_code == 400
    assert [m.column for m in MaskedColumn.objects.all()] == ["kept"]


def test_the_page_masks_and_shows_who_sees(cast: Cast) -> None:
    owner, address = browsing_as(cast, "owner"), "/datasources/flights/columns/"
    owner.post(f"{address}mask/", {"column": ["email", "", "__time"], "role": ["operator", "admin", ""]})
    assert {m.column: m.role for m in MaskedColumn.objects.all()} == {"email": "operator"}
    assert "operators and admins" in told(browsing_as(cast, "viewer").get(address))
    assert "__time" in told(owner.post(f"{address}mask/", {"column": "__time", "role": "admin"}, follow=True))
    assert {m.column: m.role for m in MaskedColumn.objects.all()} == {"email": "operator"}


# Of a datasource with the columns __time, carrier and user.
DOUBTS = [
    (["carrier"], []),
    (["Carrier"], ["Column 'carrier' is not masked: names are case-sensitive, and the mask names 'Carrier'."]),
    (["carrier", "Carrier"], ["No segment has a column 'Carrier' yet. If one comes, it is masked."]),
    (["email"], ["No segment has a column 'email' yet. If one comes, it is masked."]),
    (["user.email"], ["Column 'user' is completely hidden, because its field 'user.email' is masked."]),
    (["User.email"], ["Column 'user' is not masked: names are case-sensitive, and the mask names 'User.email'."]),
]


@pytest.fixture
def nested(cast: Cast) -> Cast:
    """The datasource has a column of nested values."""
    columns = [{"name": name, "type": t} for name, t in (("__time", "timestamp"), ("carrier", "string"))]
    schema = SegmentSchema.of(cast.datasource, [*columns, {"name": "user", "type": "json"}])
    Segment.objects.filter(datasource=cast.datasource).update(schema=schema)
    return cast


@pytest.mark.parametrize(("names", "warnings"), DOUBTS, ids=str)
def test_a_mask_that_hides_nothing_or_more_warns(
    nested: Cast, clients: dict[str, Client], names: list[str], warnings: list[str]
) -> None:
    body = {"columns": [{"column": name} for name in names]}
    answer = clients["owner"].put(MASKS, body, content_type="application/json")
    assert (answer.status_code, answer.json()["warnings"]) == (200, warnings)
    assert clients["viewer"].get(MASKS).json()["warnings"] == warnings
    form = {"column": names, "role": ["admin"] * len(names)}
    page = browsing_as(nested, "owner").post("/datasources/flights/columns/mask/", form, follow=True)
    shown = parsed(page).text
    assert [warning for warning in warnings if warning not in shown] == []


def test_a_mask_of_a_field_is_shown_where_its_column_is(nested: Cast) -> None:
    set_masks(
        user=nested.users["owner"], datasource=nested.datasource, masks={"user.email": "admin", "user": "operator"}
    )
    page = parsed(browsing_as(nested, "owner").get("/datasources/flights/columns/"))
    [cell] = [c for c in page.all("td") if c.attributes.get("data-masked") == "admin"]
    assert cell.text == "admin by mask user.email"
    assert "Hidden below admin by mask user.email." in page.text
    assert "to other teams' Kafka logins" in page.one("section", id="masking").text


def test_a_segments_page_names_what_is_hidden_and_who_sees_it(everywhere: Cast) -> None:
    [segment] = Segment.objects.filter(datasource__name="rows-of-secrets")
    address = f"/datasources/rows-of-secrets/segments/{segment.pk}/file/"
    assert "Masked columns" not in parsed(browsing_as(everywhere, "operator").get(address)).text
    mask(everywhere, name="rows-of-secrets")
    told_to = {
        role: parsed(browsing_as(everywhere, role).get(address)).text for role in ("viewer", "operator", "owner")
    }
    assert "Operators of the team see them, except in masked columns." in told_to["viewer"]
    assert "Masked columns: password (needs role admin)." in told_to["viewer"]
    assert "Masked columns: password (needs role admin)." in told_to["operator"]
    assert "Viewers do not see" not in told_to["operator"]
    assert "Masked columns" not in told_to["owner"]


def test_nothing_that_is_hidden_is_written_back(everywhere: Cast) -> None:
    mask(everywhere)
    viewer = speaking_as(everywhere, "operator")
    for path in ("suspend/", "resume/"):
        viewer.post(f"/api/v1/supervisors/flights/{path}")
    viewer.post(f"/api/v1/tasks/{everywhere.task.pk}/stop/")
    assert Task.objects.get(pk=everywhere.task.pk).error == ERROR
    assert Supervisor.objects.get(pk="flights").recent_errors[0]["message"] == ERROR
    assert QuarantinedRecord.objects.get(pk=everywhere.quarantined.pk).error == ERROR


def test_a_token_sees_by_its_scope_and_reads_no_topic_past_its_datasources(everywhere: Cast) -> None:
    mask(everywhere)
    owner = everywhere.users["owner"]
    Datasource.objects.create(name="another", team=everywhere.alpha)
    io_config = {"topic": "flights-topic", "consumerProperties": {"bootstrap.servers": "127.0.0.1:1"}}
    spec = {"type": "kafka", "spec": {"dataSchema": {"dataSource": "another"}, "ioConfig": io_config}}
    record = f"/api/v1/datasources/flights/quarantine/{everywhere.quarantined.pk}/"
    for scope, datasources, shown in (("admin", [], True), ("read", [], False), ("operate", ["another"], False)):
        _, secret = ApiToken.objects.create(user=owner, name="t", scope=scope, datasources=datasources)
        client = Client(headers={"Authorization": f"Bearer {secret}"})
        assert (SECRET in told(client.get(record))) is shown
        sampled = client.post("/api/v1/sampler/", spec, content_type="application/json")
        assert (sampled.status_code == 403) is not shown, (scope, sampled.content)
