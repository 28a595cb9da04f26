"""Every way in which a topic or a datasource is read into something else, asked by who may not see its masked column.

The ways are the site's own addresses that change something, and its own types of tasks: a new one is here either as a
way, with the request that would read, or as one that reads nothing.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.datasources.masking import set_masks
from controlplane.datasources.models import Datasource
from controlplane.loading.documents import to_nested
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks.models import Task, task_types
from controlplane.teams.models import Membership
from controlplane.teams.roles import Role
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.support.django_cast import Cast, browsing_as, spec_for
from tests.support.permission_table import CAUSE_OF_CAST, TABLE, arguments, draft_of
from tests.support.routes import Route

REST, DRUID = "/api/v1/tasks/", "druid/indexer/v1/"
TOPIC = "flights-topic"
# Masked is ``password``; this makes a column of it that is not.
COPY = {"transforms": [{"type": "expression", "name": "plain", "expression": "password"}]}
OF_SEGMENTS = {"type": "druid", "dataSource": "flights", "interval": "2013/P1Y"}


def reading(into: str, type_: str = "index_kafka", **io_config: Any) -> dict[str, Any]:
    """A spec that reads the topic of the masked datasource."""
    group = {} if type_ in ("index_kafka", "kafka") else {"groupId": "a-group-of-its-own"}
    spec = spec_for(into, topic=TOPIC, **io_config)
    spec["ioConfig"].pop("groupId")
    spec["ioConfig"].pop("pollTimeout")
    spec["ioConfig"] |= group | ({"useEarliestOffset": True} if not group else {})
    return {"type": type_, **{name: spec[name] for name in ("dataSchema", "ioConfig")}}


def copying(type_: str) -> dict[str, Any]:
    """A batch task that reads the masked datasource."""
    schema = {"dataSource": "open", "timestampSpec": {"column": "__time", "format": "millis"}, "dimensionsSpec": {}}
    return {
        "type": type_,
        "spec": {
            "dataSchema": {**schema, "granularitySpec": {"segmentGranularity": "DAY"}},
            "ioConfig": {"type": type_, "inputSource": OF_SEGMENTS},
        },
    }


# By Druid's type: what somebody would submit to read past the mask, and what is answered.
TASKS: dict[str, tuple[dict[str, Any], int]] = {
    "index_kafka": (reading("open"), 403),
    "index_kafka_share_group": (reading("open", "index_kafka_share_group"), 403),
    "index_parallel": (copying("index_parallel"), 403),
    "index": (copying("index"), 403),
    "compact": (
        {
            "type": "compact",
            "dataSource": "flights",
            "ioConfig": {"type": "compact", "inputSpec": {"type": "interval", "interval": "2013/P1Y"}},
            "metricsSpec": [{"type": "longSum", "name": "plain", "fieldName": "password"}],
        },
        403,
    ),
    "kill": ({"type": "kill", "dataSource": "flights", "interval": "2013/P1Y"}, 403),  # it needs the role admin
    "repair": ({"type": "repair"}, 400),  # nobody submits these
    "replay": ({"type": "replay"}, 400),
    "rewind": ({"type": "rewind"}, 400),
}
SUPERVISED = reading("open", "kafka")
AS_FORM = {"document": json.dumps(reading("open"))}
IMPORT = {"document": json.dumps([{"id": "open", "spec": SUPERVISED}]), "team": "alpha", "ticked": "open", "sure": "1"}
OF_A_CAUSE = {"document": json.dumps(SUPERVISED)}

# Each address that makes something of records or rows: the body, the query, and what an operator is answered.
WAYS: dict[str, tuple[Any, str, int]] = {
    "api/v1/tasks/": (reading("open"), "", 403),
    f"{DRUID}task": (reading("open"), "", 403),
    "tasks/-/new/": (AS_FORM, "", 403),
    "api/v1/supervisors/": (SUPERVISED, "", 403),  # these need the role admin, which sees what is masked
    "api/v1/supervisors/-/plan/": (SUPERVISED, "", 403),
    f"{DRUID}supervisor": (SUPERVISED, "", 403),
    "supervisors/-/new/": ({"document": json.dumps(SUPERVISED)}, "", 403),
    "api/v1/druid/import/": ([{"id": "open", "spec": SUPERVISED}], "?dry_run=false", 403),
    "supervisors/-/import/": (IMPORT, "", 403),
    "supervisors/<str:supervisor_id>/spec/<int:number>/": ({}, "", 403),
    "api/v1/sampler/": (SUPERVISED, "", 403),
    "api/sampler/": (SUPERVISED, "", 403),
    f"{DRUID}sampler": (SUPERVISED, "", 403),
    "api/v1/load/drafts/<uuid:draft_id>/records/": ({}, "", 403),
    "api/v1/load/drafts/<uuid:draft_id>/submit/": ({"as_task": True}, "", 403),
    "load/<uuid:draft_id>/<slug:step_name>/": ({"datasource": "open", "go": "task"}, "", 403),
    "api/v1/datasources/<str:name>/quarantine/replay/": (
        {"mode": "ingest", "filter": {}, "spec": copying("index")},
        "",
        403,
    ),
    "api/v1/datasources/<str:name>/quarantine/try/": ({"cause": CAUSE_OF_CAST, "spec": SUPERVISED}, "", 403),
    "datasources/<str:name>/quarantine/fix/": (OF_A_CAUSE, "?cause=CAUSE", 403),
    "datasources/<str:name>/quarantine/fix/submit/": (OF_A_CAUSE, "?cause=CAUSE", 403),
    f"{DRUID.replace('indexer', 'coordinator')}config/compaction": (
        {"dataSource": "flights", "metricsSpec": []},  # merges keep columns as they are: there is no such field
        "",
        400,
    ),
}

# What else changes something, by the areas that know no records, and one by one where records or rows are about.
ELSEWHERE = (
    "alerts/",
    "login/",
    "logout/",
    "account/",
    "teams/",
    "people/",
    "password/",
    "join/",
    "connections/",
    "-/",
)
ELSEWHERE_OF_REST = ("alerts", "auth", "account", "tokens", "teams", "people", "invitations", "connections")
VERBS = {
    *("transfer", "masks", "delete", "columns/mask", "compaction/apply", "segments/kill", "quarantine/purge"),
    *("retention/rules", "retention/mark", "rules/preview", "rules", "segments/mark-unused", "segments/mark-used"),
    *("quarantine/confirm", "markUnused", "markUsed", "segments", "segments/<str:segment_id>", "acknowledge"),
    *("suspend", "resume", "terminate", "shutdown", "reset", "resetOffsets", "handoff", "taskGroups/handoff", "scale"),
    # Into the same datasource, by a spec that it has.
    *("backfills", "resetToLatestAndBackfill", "rewinds", "rewinds/undo", "rewinds/cancel"),
    *("share-group/config", "share-group/apply", "suspendAll", "resumeAll", "terminateAll", "stop", "finish"),
    "quarantine/replay",  # of a page: with the spec that reads the records now
    *("dead-letters", "dead-letters/import"),  # past another datasource's mask: test_dead_letter_imports
}
# Whole: a draft is written, a spec is read, and nothing is stored; and what is of the whole site.
ALONE = {
    "load/",
    "retention/",
    "api/v1/load/drafts/",
    "api/v1/load/drafts/<uuid:draft_id>/",
    "api/v1/validate/",
    "api/v1/sql/",  # masked columns are NULL there: test_sql
    "api/v1/sql/<str:query_id>/",
    "query/saved/-/new/",
    "query/saved/<int:number>/",
    "api/v1/sql/saved/",
    "api/v1/sql/saved/<int:number>/",
    "druid/v2/sql",  # the same: test_druid_sql_requests
    "druid/v2/sql/",
    "druid/v2/sql/<str:query_id>",
    "api/v1/datasources/<str:name>/compaction/",  # the same config as at Druid's address
    "druid/indexer/v1/taskStatus",
    "druid/indexer/v1/lockedIntervals",
    "druid/indexer/v1/lockedIntervals/v2",
    "druid/indexer/v1/compaction/config/cluster",
    "druid/coordinator/v1/config/compaction/taskslots",
    "druid/coordinator/v1/datasources/<str:name>",
    "druid/indexer/v1/datasources/<str:name>",
    "iceberg/v1/oauth/tokens",
    "iceberg/v1/<path:rest>",
    "druid/coordinator/v1/rules/<str:name>",
}


def reads_nothing(pattern: str) -> bool:
    """Whether an address that changes something is known to read neither a topic nor rows."""
    rest = pattern.removeprefix("api/v1/")
    of_others = pattern.startswith(ELSEWHERE) or (rest != pattern and rest.startswith(ELSEWHERE_OF_REST))
    verb = pattern.rstrip("/").rpartition(">/")[2] if "segments/<" not in pattern else "segments/<str:segment_id>"
    at_all = pattern.rstrip("/").rpartition("/")[2]
    of_tasks = pattern.startswith("internal/")  # those that run already, by their own token
    return of_tasks or of_others or pattern in ALONE or verb in VERBS or at_all in VERBS


@pytest.fixture
def masked(cast: Cast) -> Cast:
    """A masked column, and beside its datasource one of the team without masks."""
    set_masks(user=cast.users["owner"], datasource=cast.datasource, masks={"password": "admin"})
    Datasource.objects.create(name="open", team=cast.alpha)
    return cast


def stored() -> tuple[int, int, int]:
    return Task.objects.count(), SpecVersion.objects.count(), Supervisor.objects.count()


def test_each_address_that_changes_something_is_a_way_or_reads_nothing() -> None:
    changing = {row.pattern for row in TABLE if row.method in ("POST", "PUT", "PATCH")}
    unknown = {pattern for pattern in changing if pattern not in WAYS and not reads_nothing(pattern)}
    assert unknown == set(), "say in WAYS what reads a topic or rows, or add it to what reads nothing"
    assert set(WAYS) <= changing, "these addresses are gone"
    assert set(TASKS) == set(task_types()), "give a task of each type"


@pytest.mark.parametrize("pattern", WAYS)
def test_no_address_reads_past_a_mask(masked: Cast, clients: dict[str, Client], pattern: str) -> None:
    body, query, status = WAYS[pattern]
    is_page = not pattern.startswith(("api/", "druid/"))
    client = browsing_as(masked, "operator") if is_page else clients["operator"]
    if "draft" in pattern:
        fill_draft(masked)
    path = Route(pattern, frozenset(), None).path(**{**arguments(masked, pattern), "step_name": "review"})
    before = stored()
    query = query.replace("CAUSE", masked.quarantined.cause)
    address = path + query
    answer = client.post(address, body) if is_page else client.post(address, body, content_type="application/json")
    assert answer.status_code == status, answer.content
    assert stored() == before


def fill_draft(cast: Cast) -> None:
    draft = draft_of(cast)
    draft.document = to_nested(reading("open", "kafka"))
    draft.save()


@pytest.mark.parametrize("type_", TASKS)
def test_no_task_reads_past_a_mask(masked: Cast, clients: dict[str, Client], type_: str) -> None:
    document, status = TASKS[type_]
    before = stored()
    assert post(clients["operator"], document).status_code == status
    assert stored() == before


def post(client: Client, document: object) -> Any:
    return client.post(REST, document, content_type="application/json")


def test_a_mask_is_named_where_a_task_is_refused(masked: Cast, clients: dict[str, Client]) -> None:
    refused = post(clients["operator"], reading("open"))
    assert "Datasource flights has masked columns: a task" in refused.json()["detail"]
    assert post(clients["owner"], reading("open")).status_code == 201


def test_a_task_may_do_what_the_supervisor_does(masked: Cast, clients: dict[str, Client]) -> None:
    """Its own spec once more, for records of before, is right; with another column of the masked one it is not."""
    again = masked.supervisor.current.spec["spec"]
    document = {"type": "index_kafka_share_group", "spec": json.loads(json.dumps(again))}
    document["spec"]["ioConfig"]["taskCount"] = 2
    assert post(clients["operator"], document).status_code == 201
    document["spec"]["dataSchema"]["transformSpec"] = COPY
    assert post(clients["operator"], document).status_code == 403
    document["spec"] = json.loads(json.dumps(again))
    document["spec"]["ioConfig"]["inputFormat"] = {
        "type": "json",
        "flattenSpec": {"fields": [{"type": "path", "name": "plain", "expr": "$.password"}]},
    }
    assert post(clients["operator"], document).status_code == 403
    document["spec"] = json.loads(json.dumps(again))
    document["spec"]["dataSchema"]["dataSource"] = "open"
    assert post(clients["operator"], document).status_code == 403


def test_what_a_supervisor_makes_of_another_topic_lets_no_task_read_the_masked_one(
    masked: Cast, clients: dict[str, Client]
) -> None:
    other = reading("open", "index_kafka_share_group")
    other["ioConfig"]["topic"] = "another-topic"
    Task.objects.create(
        pk="index_kafka_share_group_open_1",
        kind="share_group",
        datasource=Datasource.objects.get(name="open"),
        supervisor_id="open",
        spec=parse_task_spec(other).canonical(),
        created_at=timezone.now(),
    )
    assert post(clients["operator"], reading("open", "index_kafka_share_group")).status_code == 403


def test_another_topic_and_another_team_go_on(masked: Cast, clients: dict[str, Client]) -> None:
    """A mask holds in its own team; what another team's logins may read is for Kafka to say."""
    other = reading("open")
    other["ioConfig"]["topic"] = "another-topic"
    assert post(clients["operator"], other).status_code == 201
    Membership.objects.create(user=masked.users["operator"], team=masked.beta, role=Role.OPERATOR)
    Datasource.objects.create(name="betas", team=masked.beta)
    assert post(clients["operator"], reading("betas")).status_code == 201
