"""Who may do what, for every address of the site: the table that ``test_permissions`` walks.

Each row gives the status for owner (role admin), operator, viewer (all of team alpha), outsider (admin of team beta),
anonymous, and the site's administrator, in the order of ``django_cast.ROLES``. Everything named belongs to team alpha.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any

from django.http import HttpResponseBase
from django.test import Client

from controlplane.loading.models import Draft
from controlplane.query.models import SavedQuery
from ingestion.specs.causes import cause_of
from tests.support.alerting import HOOK, alerting
from tests.support.django_cast import ROLES, Cast, browsing_as, speaking_as, spec_for
from tests.support.routes import Route

Statuses = tuple[int, int, int, int, int, int]

# REST: what is another team's is not found, and a role that is too low is told so.
EVERYBODY: Statuses = (200, 200, 200, 200, 200, 200)
LOGGED_IN: Statuses = (200, 200, 200, 200, 401, 200)
SEE: Statuses = (200, 200, 200, 404, 401, 200)
OPERATE: Statuses = (200, 200, 403, 404, 401, 200)
ADMINISTER: Statuses = (200, 403, 403, 404, 401, 200)
NOBODY: Statuses = (401, 401, 401, 401, 401, 401)
# Pages: who is not logged in is sent to the login page; an action ends with a redirect.
PAGE: Statuses = (200, 200, 200, 200, 302, 200)

PAGE_SEE: Statuses = (200, 200, 200, 404, 302, 200)
PAGE_MAY_OPERATE: Statuses = (200, 200, 404, 404, 302, 200)
PAGE_OPERATE: Statuses = (302, 302, 403, 404, 302, 302)
PAGE_ADMINISTER: Statuses = (302, 403, 403, 404, 302, 302)


def instead(statuses: Statuses, success: int) -> Statuses:
    """These statuses with another code for success."""
    a, b, c, d, e, f = (success if s == 200 else s for s in statuses)
    return a, b, c, d, e, f


@dataclass(frozen=True)
class Row:
    """One method of one address. ``body``: sent as JSON to REST, as a form to pages. ``query``: added to the path."""

    method: str
    pattern: str
    statuses: Statuses
    body: Any = None
    query: str = ""

    @property
    def is_page(self) -> bool:
        return not self.pattern.startswith(("api/v1/", "api/sampler/", "druid/", "iceberg/", "status", "internal/"))


ACTIONS = {"supervisors": "suspend", "teams": "leave", "connections": "restart"}
OF_TEAMS = ("api/v1/teams/", "api/v1/invitations/", "teams/")
OF_CONNECTIONS = ("api/v1/connections/", "connections/")


def _name(cast: Cast, pattern: str) -> str:
    if pattern.startswith(OF_CONNECTIONS):
        return cast.connection.name
    return cast.alpha.name if pattern.startswith(OF_TEAMS) else cast.datasource.name


def draft_of(cast: Cast) -> Draft:
    """The owner's, with nothing in it that Kafka could be asked for."""
    document = {"type": "kafka", "spec": {"dataSchema": {"dataSource": "flights"}, "ioConfig": {}}}
    wanted = {"owner": cast.users["owner"], "team": cast.alpha}
    return Draft.objects.filter(**wanted).first() or Draft.objects.create(**wanted, document=document)


def saved_query_of(cast: Cast) -> SavedQuery:
    """The owner's, shared with team alpha."""
    wanted: dict[str, Any] = {"owner": cast.users["owner"], "team": cast.alpha, **STATEMENT}
    return SavedQuery.objects.get_or_create(**wanted)[0]


def _number(cast: Cast, pattern: str) -> int:
    if "saved/" in pattern:
        return saved_query_of(cast).pk
    if "/events/" in pattern:
        return cast.event.pk
    if "alerts/" in pattern:
        return alerting(cast).number(pattern) if "<int:number>" in pattern else 0
    return 0 if pattern.startswith("internal/") else cast.quarantined.pk


def arguments(cast: Cast, pattern: str) -> dict[str, object]:
    """Values for the parameters of any address, all of them team alpha's."""
    return {
        "name": _name(cast, pattern),
        "team": cast.alpha.name,
        "username": "viewer",
        "supervisor_id": cast.supervisor.pk,
        "task_id": cast.task.pk,
        "segment_id": cast.segments[0].identifier,
        "interval": "2013-01-01_2013-01-02",
        "number": _number(cast, pattern),
        "token_id": "an-id-of-a-token",
        "secret": "no-such-secret",
        "session_id": "an-id-of-a-session",
        "account": "loader",
        "provider_id": "oidc",
        "uidb64": "MQ",
        "token": "no-such-token",
        "step_name": "connection",
        **({"draft_id": draft_of(cast).pk} if "draft_id" in pattern else {}),
        "rest": "none",
        "topic": "a-topic",
        "application": "compaction_1",
        "job_id": "compact_1",
        "query_id": "a-query",
        "group": "a-group",
        "action": ACTIONS.get(pattern.partition("/")[0], "stop"),
    }


V1, DS, SV, TASK = "api/v1/", "api/v1/datasources/", "api/v1/supervisors/", "api/v1/tasks/"
ONE_DS, ONE_SV, ONE_TASK = f"{DS}<str:name>/", f"{SV}<str:supervisor_id>/", f"{TASK}<str:task_id>/"
CAUSE_OF_CAST = cause_of("unparseable", "Malformed JSON at byte 12").fingerprint
SAVED_QUERIES = f"{V1}sql/saved/"
STATEMENT = {"name": "Flights", "statement": "SELECT 1"}
DRUID_COUNT = {"query": "SELECT COUNT(*) FROM flights WHERE __time > TIMESTAMP '2100-01-01 00:00:00'"}
DRAFTS = f"{V1}load/drafts/"
DRAFT = f"{DRAFTS}<uuid:draft_id>/"
ONE_DAY = {"interval": "2013-01-01/2013-01-02"}
TEAM = f"{V1}teams/<str:name>/members/"
KNOWN_DATASOURCE = spec_for("flights", groupId="another-group")
# A spec for a datasource whose name is taken: an outsider learns no more than that.
SUBMIT: Statuses = (201, 201, 403, 409, 401, 201)
SAMPLE: Statuses = (200, 200, 403, 200, 401, 200)  # a name that is taken is as a new one
PASTED = {
    "type": "inline",
    "spec": {
        "dataSchema": {"dataSource": "flights"},
        "ioConfig": {"inputSource": {"type": "inline", "data": '{"a": 1}'}, "inputFormat": {"type": "json"}},
    },
}

CONNECTIONS, CONNECTION = f"{V1}connections/", f"{V1}connections/<str:team>/<str:name>/"
CLUSTER = {"bootstrap.servers": "127.0.0.1:1"}  # nobody answers
REGISTRY = {"url": "http://127.0.0.1:1"}
NO_CLUSTER: Statuses = (400, 400, 400, 404, 401, 400)  # the cast's connection is a registry
NEW_CONNECTION = {"name": "another", "kind": "kafka", "properties": CLUSTER}
ACCOUNTS = f"{V1}teams/<str:name>/service-accounts/"
PEOPLE = f"{V1}people/"
SITE: Statuses = (403, 403, 403, 403, 401, 200)
LINK = {"email": "new@example.org", "role": "viewer"}

ALERTS = f"{V1}alerts/"
NEW_RULE = {"name": "another", "kind": "behind", "datasource": "flights"}
# An outsider's own team has no such datasource; an administrator's is the datasource's.
MAKE_RULE: Statuses = (201, 403, 403, 400, 401, 201)
DELETE: Statuses = (204, 403, 403, 404, 401, 204)

ICEBERG = "iceberg/v1/"
NAMESPACES = f"{ICEBERG}namespaces"
NAMESPACE = f"{NAMESPACES}/<str:team>"

REST = [
    Row("GET", f"{ICEBERG}config", LOGGED_IN),
    Row("POST", f"{ICEBERG}oauth/tokens", (415, 415, 415, 415, 415, 415), {"grant_type": "client_credentials"}),
    Row("GET", NAMESPACES, LOGGED_IN),
    Row("GET", NAMESPACE, SEE),
    Row("GET", f"{NAMESPACE}/tables", SEE),
    Row("GET", f"{NAMESPACE}/tables/<str:name>", SEE),
    Row("GET", f"{ICEBERG}<path:rest>", (404, 404, 404, 404, 401, 404)),
    Row("POST", f"{ICEBERG}<path:rest>", (406, 406, 406, 406, 401, 406)),
    Row("GET", ALERTS, LOGGED_IN),
    Row("GET", f"{ALERTS}kinds/", LOGGED_IN),
    Row("GET", f"{ALERTS}history/", LOGGED_IN),
    Row("POST", f"{ALERTS}<int:number>/acknowledge/", OPERATE),
    Row("GET", f"{ALERTS}rules/", LOGGED_IN),
    Row("POST", f"{ALERTS}rules/", MAKE_RULE, NEW_RULE),
    Row("GET", f"{ALERTS}rules/<int:number>/", SEE),
    Row("PUT", f"{ALERTS}rules/<int:number>/", ADMINISTER, {"name": "other"}),
    Row("DELETE", f"{ALERTS}rules/<int:number>/", DELETE),
    Row("GET", f"{ALERTS}receivers/", LOGGED_IN),
    Row("POST", f"{ALERTS}receivers/", (201, 403, 403, 201, 401, 400), {"name": "x", "kind": "webhook", **HOOK}),
    Row("GET", f"{ALERTS}receivers/<int:number>/", SEE),
    Row("PUT", f"{ALERTS}receivers/<int:number>/", ADMINISTER, {"name": "other"}),
    Row("DELETE", f"{ALERTS}receivers/<int:number>/", DELETE),
    Row("POST", f"{ALERTS}receivers/<int:number>/test/", ADMINISTER),
    Row("GET", f"{ALERTS}silences/", LOGGED_IN),
    Row(
        "POST",
        f"{ALERTS}silences/",
        instead(OPERATE, success=201),
        {"reason": "r", "datasource": "flights", "for_s": 60},
    ),
    Row("GET", f"{ALERTS}silences/<int:number>/", SEE),
    Row("DELETE", f"{ALERTS}silences/<int:number>/", (204, 204, 403, 404, 401, 204)),
    Row("POST", f"{V1}auth/login/", (401, 401, 401, 401, 401, 401), {"username": "nobody", "password": "x"}),
    Row("POST", f"{V1}auth/logout/", instead(LOGGED_IN, success=204)),
    Row("GET", f"{V1}audit/", SITE),
    Row("GET", f"{V1}audit/export/", SITE),
    Row("GET", f"{V1}account/", LOGGED_IN),
    Row("PUT", f"{V1}account/email/", (403, 403, 403, 403, 401, 403), {"email": "new@example.org", "secret": "wrong"}),
    Row("GET", f"{V1}account/sessions/", LOGGED_IN),
    Row("DELETE", f"{V1}account/sessions/", instead(LOGGED_IN, success=204)),
    Row("DELETE", f"{V1}account/sessions/<str:session_id>/", (404, 404, 404, 404, 401, 404)),
    Row("GET", f"{V1}account/second-factors/", LOGGED_IN),
    Row("DELETE", f"{V1}users/<str:username>/second-factors/", (403, 403, 403, 403, 401, 200)),
    Row("GET", f"{V1}tokens/", LOGGED_IN),
    Row("POST", f"{V1}tokens/", instead(LOGGED_IN, success=201), {"name": "t"}),
    Row("DELETE", f"{V1}tokens/<str:token_id>/", (404, 404, 404, 404, 401, 404)),
    Row("GET", f"{V1}teams/", LOGGED_IN),
    Row("POST", f"{V1}teams/", (403, 403, 403, 403, 401, 201), {"name": "gamma"}),
    Row("GET", f"{V1}teams/<str:name>/", SEE),
    Row("PUT", f"{V1}teams/<str:name>/", ADMINISTER, {"description": "x"}),
    Row("PUT", f"{V1}teams/<str:name>/", (403, 403, 403, 404, 401, 200), {"name": "gamma"}),
    Row("DELETE", f"{V1}teams/<str:name>/", (403, 403, 403, 404, 401, 409)),  # it owns something
    Row("GET", TEAM, SEE),
    Row("PUT", f"{TEAM}<str:username>/", ADMINISTER, {"role": "operator"}),
    Row("DELETE", f"{TEAM}<str:username>/", (204, 403, 204, 404, 401, 204)),  # it is the viewer, who may leave
    Row("GET", f"{V1}teams/<str:name>/tokens/", ADMINISTER),
    Row("DELETE", f"{TEAM}<str:username>/tokens/<str:token_id>/", (404, 403, 403, 404, 401, 404)),
    Row("GET", f"{V1}teams/<str:name>/invitations/", ADMINISTER),
    Row("GET", ACCOUNTS, ADMINISTER),
    Row("POST", ACCOUNTS, instead(ADMINISTER, success=201), {"name": "another"}),
    Row("DELETE", f"{ACCOUNTS}<str:account>/", instead(ADMINISTER, success=204)),
    Row("GET", f"{ACCOUNTS}<str:account>/tokens/", ADMINISTER),
    Row("POST", f"{ACCOUNTS}<str:account>/tokens/", instead(ADMINISTER, success=201), {"scope": "read"}),
    Row("DELETE", f"{ACCOUNTS}<str:account>/tokens/<str:token_id>/", (404, 403, 403, 404, 401, 404)),
    Row("GET", f"{V1}teams/<str:name>/invitation-links/", ADMINISTER),
    Row("POST", f"{V1}teams/<str:name>/invitation-links/", instead(ADMINISTER, success=201), LINK),
    Row("DELETE", f"{V1}teams/<str:name>/invitation-links/<int:number>/", (404, 403, 403, 404, 401, 404)),
    Row("GET", PEOPLE, SITE),
    Row("POST", PEOPLE, instead(SITE, success=201), {"username": "new"}),
    Row("GET", f"{PEOPLE}<str:username>/", SITE),
    *(
        Row("POST", f"{PEOPLE}<str:username>/{action}/", instead(SITE, success=204))
        for action in ("deactivate", "activate")
    ),
    Row("POST", f"{PEOPLE}<str:username>/password-link/", SITE),
    Row("GET", f"{V1}invitations/", LOGGED_IN),
    Row("POST", f"{V1}invitations/<str:name>/", (404, 404, 404, 404, 401, 404)),
    Row("DELETE", f"{V1}invitations/<str:name>/", (404, 404, 404, 404, 401, 404)),
    Row("GET", f"{V1}teams/<str:name>/quotas/", ADMINISTER),
    Row("PUT", f"{V1}teams/<str:name>/quotas/", (403, 403, 403, 404, 401, 200), {"indexers": 4}),
    Row("GET", f"{V1}usage/", LOGGED_IN),
    Row("GET", f"{V1}usage/export/", LOGGED_IN),
    Row("GET", f"{V1}teams/<str:name>/audit/", ADMINISTER),
    Row("GET", f"{V1}teams/<str:name>/audit/export/", ADMINISTER),
    Row("GET", f"{V1}teams/<str:name>/connection-rule/", SEE),
    Row("PUT", f"{V1}teams/<str:name>/connection-rule/", ADMINISTER, {"own_properties": False}),
    Row("GET", CONNECTIONS, LOGGED_IN),
    Row("POST", CONNECTIONS, (201, 403, 403, 201, 401, 400), NEW_CONNECTION),  # 400: of two teams
    Row("GET", CONNECTION, SEE),
    Row("PUT", CONNECTION, ADMINISTER, {"properties": REGISTRY}),
    Row("DELETE", CONNECTION, (204, 403, 403, 404, 401, 204)),
    Row("GET", f"{CONNECTION}uses/", SEE),
    Row("POST", f"{CONNECTION}transfer/", (404, 403, 403, 404, 401, 200), {"team": "beta"}),
    Row("POST", f"{CONNECTION}restart/", OPERATE),
    Row("POST", f"{CONNECTION}test/", OPERATE, {}),
    Row(
        "POST",
        f"{CONNECTIONS}-/test/",
        (200, 403, 403, 200, 401, 400),
        {"kind": "schema_registry", "properties": REGISTRY},
    ),
    *(Row("GET", f"{CONNECTION}{part}/", NO_CLUSTER) for part in ("topics", "topics/<str:topic>")),
    *(Row("GET", f"{CONNECTION}{part}/", NO_CLUSTER) for part in ("groups", "groups/<path:group>")),
    Row("GET", f"{CONNECTION}topics/<str:topic>/records/", NO_CLUSTER),
    Row("GET", DS, LOGGED_IN),
    Row("GET", ONE_DS, SEE),
    Row("GET", f"{ONE_DS}segments/", SEE),
    Row("GET", f"{ONE_DS}segments/<str:segment_id>/", SEE),
    Row("GET", f"{ONE_DS}segments/<str:segment_id>/file/", SEE),
    Row("GET", f"{ONE_DS}timeline/", SEE),
    Row("GET", f"{ONE_DS}completeness/", SEE),
    Row("GET", f"{ONE_DS}manifest/", SEE),
    Row("GET", f"{ONE_DS}manifest/addresses/", SEE),
    Row("GET", f"{ONE_DS}columns/", SEE),
    Row("GET", f"{ONE_DS}profile/", SEE, query="?column=__time&from=2030-01-01"),
    Row("GET", f"{ONE_DS}publishes/", SEE),
    Row("GET", f"{ONE_DS}rows/", SEE, query="?from=2030-01-01"),
    Row("POST", f"{ONE_DS}transfer/", (404, 403, 403, 404, 401, 200), {"team": "beta"}),  # beta is not the owner's
    Row("GET", f"{ONE_DS}masks/", SEE),
    Row("PUT", f"{ONE_DS}masks/", ADMINISTER, {"columns": [{"column": "email"}]}),
    Row("GET", f"{ONE_DS}quarantine/", SEE),
    Row("GET", f"{ONE_DS}quarantine/<int:number>/", SEE),
    Row("GET", f"{ONE_DS}quarantine/export/", SEE),
    Row("POST", f"{ONE_DS}quarantine/replay/", instead(OPERATE, success=202), {"mode": "ingest", "filter": {}}),
    Row("POST", f"{ONE_DS}quarantine/try/", (400, 400, 403, 404, 401, 400), {"cause": CAUSE_OF_CAST, "spec": {}}),
    Row("POST", f"{ONE_DS}quarantine/purge/", ADMINISTER, {"filter": {}}),
    Row("GET", f"{V1}quarantine/causes/", LOGGED_IN),
    Row("GET", f"{ONE_DS}events/", SEE),
    Row("POST", f"{ONE_DS}events/<int:number>/acknowledge/", OPERATE),
    Row("GET", f"{ONE_DS}progress/", SEE),
    Row("GET", SV, LOGGED_IN),
    Row("POST", SV, (200, 403, 403, 409, 401, 200), KNOWN_DATASOURCE),
    # An outsider is an admin elsewhere, and told in the answer that the name is taken.
    Row(
        "POST",
        f"{V1}druid/import/",
        (200, 403, 403, 200, 401, 200),
        [{"id": "flights", "spec": KNOWN_DATASOURCE}],
        query="?dry_run=false",
    ),
    Row("GET", ONE_SV, SEE),
    Row("GET", f"{ONE_SV}versions/", SEE),
    Row("GET", f"{ONE_SV}stats/", SEE),
    Row("GET", f"{ONE_SV}lag/", SEE),
    Row("GET", f"{ONE_SV}lag/series/", SEE),
    Row("POST", f"{SV}-/plan/", (200, 403, 403, 409, 401, 200), KNOWN_DATASOURCE),
    Row("POST", f"{SV}-/suspend/", LOGGED_IN),
    Row("POST", f"{SV}-/resume/", LOGGED_IN),
    Row("POST", f"{SV}-/terminate/", LOGGED_IN),
    Row("POST", f"{ONE_SV}suspend/", OPERATE),
    Row("POST", f"{ONE_SV}resume/", instead(OPERATE, success=409)),
    Row("POST", f"{ONE_SV}terminate/", ADMINISTER),
    Row("GET", f"{ONE_SV}reset/", (400, 403, 403, 404, 401, 400), query="?position=latest"),
    Row("POST", f"{ONE_SV}reset/", (400, 403, 403, 404, 401, 400), {}),
    Row("GET", f"{ONE_SV}backfills/", SEE),
    Row("POST", f"{ONE_SV}backfills/", (400, 403, 403, 404, 401, 400), {"skip": True}),
    Row("GET", f"{ONE_SV}rewinds/", SEE),
    Row("POST", f"{ONE_SV}rewinds/", (400, 403, 403, 404, 401, 400), {"spec_version": 1, "read_with": 999}),
    Row("POST", f"{ONE_SV}rewinds/undo/", (404, 403, 403, 404, 401, 404), {"rewind": 999}),
    Row("POST", f"{ONE_SV}rewinds/cancel/", (404, 403, 403, 404, 401, 404), {"rewind": 999}),
    Row("POST", f"{ONE_SV}handoff/", OPERATE),
    Row("POST", f"{ONE_SV}scale/", ADMINISTER, {"taskCount": 2}),
    Row("GET", f"{ONE_SV}scale-actions/", SEE),
    Row("GET", f"{ONE_SV}share-group/", SEE),
    # Nobody answers at the cast's broker.
    Row("GET", f"{ONE_SV}share-group/config/", (503, 503, 503, 404, 401, 503)),
    Row("POST", f"{ONE_SV}share-group/config/", (503, 503, 403, 404, 401, 503)),
    Row("GET", f"{ONE_SV}dead-letters/", SEE),
    Row("POST", f"{ONE_SV}dead-letters/", (503, 503, 403, 404, 401, 503), {"topic": "dlq"}),
    Row("GET", TASK, LOGGED_IN),
    Row("POST", TASK, SUBMIT, KNOWN_DATASOURCE),
    Row("GET", ONE_TASK, SEE),
    Row("GET", f"{ONE_TASK}report/", SEE),
    Row("GET", f"{ONE_TASK}log/", SEE),
    Row("POST", f"{ONE_TASK}stop/", OPERATE, {"finish": True}),
    Row("GET", f"{V1}capacity/", LOGGED_IN),
    Row("GET", f"{ONE_DS}compaction/", SEE),
    Row("PUT", f"{ONE_DS}compaction/", OPERATE, {"config": {}}),
    Row("GET", f"{ONE_DS}compaction/jobs/", SEE),
    Row("POST", f"{ONE_DS}segments/mark-unused/", ADMINISTER, ONE_DAY),
    Row("POST", f"{ONE_DS}segments/mark-used/", ADMINISTER, ONE_DAY),
    Row("POST", f"{ONE_DS}segments/kill/", ADMINISTER, {**ONE_DAY, "dry_run": True}),
    Row("POST", f"{ONE_DS}delete/", instead(ADMINISTER, success=409), {"name": "flights"}),  # it is read into
    Row("GET", f"{ONE_DS}segments/unused/", SEE),
    Row("GET", f"{ONE_DS}removals/", SEE),
    Row("GET", f"{ONE_DS}rules/", SEE),
    Row("PUT", f"{ONE_DS}rules/", ADMINISTER, {"rules": []}),
    Row("POST", f"{ONE_DS}rules/preview/", SEE, {"rules": [{"type": "dropForever"}]}),
    Row("GET", f"{V1}overview/", LOGGED_IN),
    Row("GET", f"{V1}overview/", SEE, query="?team=alpha"),
    Row("GET", f"{V1}records/search/", SEE, query="?topic=flights-topic&partition=0&offset=0"),
    Row("GET", f"{V1}records/rows/", (503, 503, 403, 404, 401, 503), query="?topic=flights-topic&partition=0&offset=0"),
    Row("GET", f"{V1}records/", SEE, query="?topic=flights-topic&partition=0&offset=0"),
    Row("POST", f"{V1}sql/", SEE, {"query": "SELECT count(*) FROM flights WHERE __time > '2100-01-01'"}),
    Row("DELETE", f"{V1}sql/<str:query_id>/", (404, 404, 404, 404, 401, 404)),
    Row("GET", f"{V1}sql/history/", LOGGED_IN),
    Row("GET", SAVED_QUERIES, LOGGED_IN),
    Row("POST", SAVED_QUERIES, (201, 201, 201, 400, 401, 201), {**STATEMENT, "team": "alpha"}),
    Row("GET", f"{SAVED_QUERIES}<int:number>/", SEE),
    Row("PUT", f"{SAVED_QUERIES}<int:number>/", ADMINISTER, {**STATEMENT, "team": "alpha"}),
    Row("DELETE", f"{SAVED_QUERIES}<int:number>/", instead(ADMINISTER, success=204)),
    # Druid's status of a table that does not exist is 400.
    Row("POST", "druid/v2/sql", (200, 200, 200, 400, 401, 200), DRUID_COUNT),
    Row("POST", "druid/v2/sql/", (200, 200, 200, 400, 401, 200), DRUID_COUNT),
    Row("DELETE", "druid/v2/sql/<str:query_id>", (404, 404, 404, 404, 401, 404)),
    Row("POST", f"{V1}sampler/", SAMPLE, PASTED),
    Row("POST", "api/sampler/", SAMPLE, PASTED),
    Row("GET", DRAFTS, LOGGED_IN),
    Row("POST", DRAFTS, (201, 201, 403, 201, 401, 201), {}),
    Row("GET", DRAFT, OPERATE),
    Row("PUT", DRAFT, OPERATE, {"document": {"type": "kafka"}}),
    Row("DELETE", DRAFT, (204, 403, 403, 404, 401, 204)),  # the owner's
    Row("POST", f"{DRAFT}records/", instead(OPERATE, success=400)),
    *(Row("GET", f"{DRAFT}{part}/", instead(OPERATE, success=400)) for part in ("formats", "times", "rows", "outlook")),
    Row("GET", f"{DRAFT}dry-run/", instead(OPERATE, success=409)),
    Row("POST", f"{DRAFT}submit/", instead(OPERATE, success=400), {}),
    Row("POST", f"{V1}validate/", LOGGED_IN, {"kind": "task", "spec": KNOWN_DATASOURCE}),
]

D = "druid/indexer/v1/"
C = "druid/coordinator/v1/"
COMPACTION = {"dataSource": "flights", "skipOffsetFromLatest": "PT1H"}
C_DS, M_DS = f"{C}datasources/<str:name>", f"{C}metadata/datasources/<str:name>"
RESET = {"type": "kafka", "partitions": {"type": "end", "stream": "flights-topic", "partitionOffsetMap": {"0": 1}}}
D_OC = f"{D}compaction/"
D_AC = f"{D}supervisor/autocompact__<str:name>"
D_TASK, D_SV = f"{D}task/<str:task_id>", f"{D}supervisor/<str:supervisor_id>"
D_DS = f"{D}datasources/<str:name>"
DRUID = [
    Row("POST", f"{D}task", (200, 200, 403, 409, 401, 200), KNOWN_DATASOURCE),
    Row("GET", f"{D}tasks", LOGGED_IN),
    Row("GET", D_TASK, SEE),
    Row("GET", f"{D_TASK}/status", SEE),
    Row("GET", f"{D_TASK}/reports", SEE),
    Row("GET", f"{D_TASK}/log", SEE),
    Row("POST", f"{D_TASK}/shutdown", OPERATE),
    Row("GET", f"{D}totalWorkerCapacity", LOGGED_IN),
    Row("GET", f"{D}isLeader", EVERYBODY),
    *(Row("GET", f"{D}{part}", LOGGED_IN) for part in ("leader", "workers", "worker", "scaling")),
    *(
        Row("GET", f"{C}{part}", LOGGED_IN)
        for part in ("servers", "tiers", "loadqueue", "config", "cluster", "intervals")
    ),
    *(
        Row("GET", f"{D_OC}{part}", LOGGED_IN)
        for part in ("isSupervisorEnabled", "status/datasources", "config/datasources")
    ),
    Row("GET", f"{D_OC}status/datasources/<str:name>", SEE),
    Row("GET", f"{D_OC}config/datasources/<str:name>", instead(SEE, success=404)),  # in tests it is off
    Row("DELETE", f"{D_OC}config/datasources/<str:name>", instead(OPERATE, success=404)),
    Row("GET", f"{D_OC}config/datasources/<str:name>/history", SEE),
    *(Row("GET", f"{D}{state}Tasks", LOGGED_IN) for state in ("running", "pending", "waiting", "complete")),
    Row("POST", f"{D}taskStatus", LOGGED_IN, ["a-task"]),
    *(Row("POST", f"{D}lockedIntervals{form}", LOGGED_IN, {}) for form in ("", "/v2")),
    *(Row("GET", f"status{part}", LOGGED_IN) for part in ("", "/properties")),
    Row("GET", "status/health", EVERYBODY),
    Row("POST", f"{D}sampler", SAMPLE, PASTED),
    Row("GET", f"{D}supervisor", LOGGED_IN, query="?full"),
    Row("POST", f"{D}supervisor", (200, 403, 403, 409, 401, 200), KNOWN_DATASOURCE),
    Row("GET", D_SV, SEE),
    Row("GET", f"{D_SV}/status", SEE),
    Row("GET", f"{D_SV}/health", SEE),
    Row("GET", f"{D_SV}/stats", SEE),
    Row("GET", f"{D_SV}/parseErrors", SEE),
    Row("GET", f"{D_SV}/history", SEE),
    Row("GET", f"{D}supervisor/history", LOGGED_IN),
    Row("POST", f"{D}supervisor/suspendAll", LOGGED_IN),
    Row("POST", f"{D}supervisor/resumeAll", LOGGED_IN),
    Row("POST", f"{D}supervisor/terminateAll", LOGGED_IN),
    Row("POST", f"{D_SV}/reset", (400, 403, 403, 404, 401, 400)),
    Row("POST", f"{D_SV}/resetOffsets", (400, 403, 403, 404, 401, 400), RESET),
    Row("POST", f"{D_SV}/resetToLatestAndBackfill", (400, 403, 403, 404, 401, 400)),
    Row("POST", f"{D_SV}/taskGroups/handoff", OPERATE, {"taskGroupIds": [0]}),
    Row("POST", f"{D_SV}/suspend", OPERATE),
    Row("POST", f"{D_SV}/resume", instead(OPERATE, success=400)),
    *(Row("POST", f"{D_SV}/{action}", ADMINISTER) for action in ("terminate", "shutdown")),
    # Nobody has set a config of the datasource: there is no supervisor that merges.
    *(Row("GET", f"{D_AC}{part}", instead(SEE, success=404)) for part in ("", "/status", "/health", "/stats")),
    Row("GET", f"{D_AC}/history", SEE),
    *(Row("POST", f"{D_AC}/{action}", instead(SEE, success=404)) for action in ("suspend", "resume", "terminate")),
    Row("GET", f"{D}compaction/config/cluster", LOGGED_IN),
    Row("POST", f"{D}compaction/config/cluster", SITE, {"compactionTaskSlotRatio": 0.25}),
    Row("GET", f"{C}leader", LOGGED_IN),
    Row("GET", f"{C}isLeader", EVERYBODY),
    Row("GET", f"{C}config/compaction", LOGGED_IN),
    Row("POST", f"{C}config/compaction", OPERATE, COMPACTION),
    Row("POST", f"{C}config/compaction/taskslots", SITE, query="?ratio=0.25"),
    Row("GET", f"{C}config/compaction/<str:name>", instead(SEE, success=404)),  # in tests it is off
    Row("DELETE", f"{C}config/compaction/<str:name>", instead(OPERATE, success=404)),
    Row("GET", f"{C}config/compaction/<str:name>/history", SEE),
    Row("GET", f"{C}compaction/status", SEE, query="?dataSource=flights"),
    Row("GET", f"{C}compaction/progress", SEE, query="?dataSource=flights"),
    Row("GET", f"{C}datasources", LOGGED_IN),
    Row("GET", C_DS, SEE),
    Row("POST", C_DS, ADMINISTER),
    Row("DELETE", C_DS, ADMINISTER),
    Row("POST", f"{C_DS}/markUnused", ADMINISTER, ONE_DAY),
    Row("POST", f"{C_DS}/markUsed", ADMINISTER, ONE_DAY),
    Row("GET", f"{C_DS}/intervals", SEE),
    Row("GET", f"{C_DS}/intervals/<str:interval>", SEE),
    Row("DELETE", f"{C_DS}/intervals/<str:interval>", ADMINISTER),
    Row("GET", f"{C_DS}/segments", SEE),
    Row("GET", f"{C_DS}/segments/<str:segment_id>", SEE),
    Row("POST", f"{C_DS}/segments/<str:segment_id>", ADMINISTER),
    Row("DELETE", f"{C_DS}/segments/<str:segment_id>", ADMINISTER),
    Row("GET", f"{C_DS}/tiers", SEE),
    Row("GET", f"{C_DS}/loadstatus", SEE, query="?forceMetadataRefresh=true"),
    Row("GET", f"{C}loadstatus", LOGGED_IN),
    Row("GET", f"{C}metadata/datasources", LOGGED_IN),
    Row("GET", M_DS, SEE),
    Row("GET", f"{M_DS}/segments", SEE),
    Row("POST", f"{M_DS}/segments", SEE, [ONE_DAY["interval"]]),
    Row("GET", f"{M_DS}/segments/<str:segment_id>", SEE),
    Row("GET", f"{M_DS}/unusedSegments", SEE),
    Row("GET", f"{C}metadata/segments", LOGGED_IN),
    Row("GET", f"{C}rules", LOGGED_IN),
    Row("GET", f"{C}rules/<str:name>", SEE),
    Row("POST", f"{C}rules/<str:name>", ADMINISTER, [{"type": "loadForever"}]),
    Row("GET", f"{C}rules/<str:name>/history", SEE),
    Row("POST", D_DS, ADMINISTER),
    Row("DELETE", D_DS, ADMINISTER),
    Row("POST", f"{D_DS}/markUnused", ADMINISTER, ONE_DAY),
    Row("POST", f"{D_DS}/markUsed", ADMINISTER, ONE_DAY),
    Row("POST", f"{D_DS}/segments/<str:segment_id>", ADMINISTER),
    Row("DELETE", f"{D_DS}/segments/<str:segment_id>", ADMINISTER),
]

# Only the task's own token opens these: no user's does.
COMPACTOR = "internal/compaction/<str:application>/"
INDEXER = "internal/tasks/<str:task_id>/indexers/<int:number>/"
INTERNAL = [
    Row("GET", "internal/tasks/<str:task_id>/assignment", NOBODY),
    Row("POST", "internal/tasks/<str:task_id>/heartbeat", NOBODY, {}),
    Row("POST", "internal/tasks/<str:task_id>/end", NOBODY, {}),
    Row("GET", "internal/tasks/<str:task_id>/quarantined", NOBODY),
    Row("POST", "internal/tasks/<str:task_id>/produced", NOBODY, {}),
    Row("POST", "internal/tasks/<str:task_id>/columns", NOBODY, {}),
    Row("POST", "internal/tasks/<str:task_id>/batch/start", NOBODY),
    Row("POST", "internal/tasks/<str:task_id>/batch/publish", NOBODY, {}),
    Row("POST", "internal/tasks/<str:task_id>/kept/publish", NOBODY, {}),
    Row("POST", f"{INDEXER}start", NOBODY, {}),
    Row("POST", f"{INDEXER}claim", NOBODY, {}),
    Row("POST", f"{INDEXER}settled", NOBODY, {}),
    Row("POST", f"{INDEXER}publish", NOBODY, {}),
    Row("POST", f"{INDEXER}abandon", NOBODY, {}),
    Row("POST", f"{COMPACTOR}work", NOBODY),
    Row("POST", f"{COMPACTOR}jobs/<str:job_id>/columns", NOBODY),
    Row("POST", f"{COMPACTOR}jobs/<str:job_id>/replace", NOBODY),
    Row("POST", f"{COMPACTOR}jobs/<str:job_id>/failed", NOBODY),
    Row("POST", f"{COMPACTOR}end", NOBODY),
]

METRICS = ("metrics", "metrics/store", "metrics/process")  # a token shows its own team's: see test_metrics
OPEN = [
    Row("GET", "healthz", EVERYBODY),
    Row("GET", "readyz", EVERYBODY),
    *(Row("GET", path, NOBODY) for path in METRICS),
    Row("GET", "api/schema/", EVERYBODY),
    Row("GET", "api/docs/", EVERYBODY),
    Row("GET", r"^(?:api|druid|status)(?:/(?P<rest>[\s\S]*))?\Z", (404, 404, 404, 404, 404, 404)),
]

P_DS, P_SV, P_TASK = "datasources/<str:name>/", "supervisors/<str:supervisor_id>/", "tasks/<str:task_id>/"
PAGE_SITE: Statuses = (403, 403, 403, 403, 302, 200)
P_TEAM, P_ACCOUNTS = "teams/<str:name>/", "teams/<str:name>/service-accounts/"
P_CONNECTION = "connections/<str:team>/<str:name>/"
CONNECTION_FORM = {"team": "alpha", "name": "another", "servers": "127.0.0.1:1", "protocol": "PLAINTEXT"}
NO_CLUSTER_PAGE: Statuses = (400, 400, 400, 404, 302, 400)
SPEC_FORM = {"document": json.dumps(KNOWN_DATASOURCE), "team": "alpha"}
IMPORTED = {"document": json.dumps([{"id": "flights", "spec": KNOWN_DATASOURCE}]), "team": "alpha"}
NO_PROVIDER: Statuses = (404, 404, 404, 404, 404, 404)
REDIRECT: Statuses = (302, 302, 302, 302, 302, 302)
OF_THE_CAUSE = f"?cause={CAUSE_OF_CAST}"
P_RULE, P_RECEIVER = "alerts/rules/<int:number>/", "alerts/receivers/<int:number>/"
NEW_PAGE: Statuses = (200, 403, 403, 200, 302, 200)
ADMIN_PAGE: Statuses = (200, 403, 403, 404, 302, 200)
RULE_FORM = {"name": "another", "hold_s": "0", "clear_s": "0", "enabled": "on"}
MAIL_FORM = {"name": "another", "addresses": "one@example.com"}
QUIET = {"length": "3600", "reason": "we know"}
P_SAVED = "query/saved/<int:number>/"
OF_FLIGHTS = "?datasource=flights"
PAGES = [
    *(Row("GET", f"query/{part}", PAGE) for part in ("", "words.json", "saved/", "saved/-/new/", "history/")),
    Row("POST", "query/saved/-/new/", (302, 302, 302, 400, 302, 302), {**STATEMENT, "team": "alpha"}),
    Row("GET", P_SAVED, (200, 302, 302, 404, 302, 200)),
    Row("POST", P_SAVED, (302, 302, 302, 404, 302, 302), {**STATEMENT, "team": "alpha"}),
    Row("GET", f"{P_SAVED}delete/", ADMIN_PAGE),
    Row("POST", f"{P_SAVED}delete/", PAGE_ADMINISTER),
    *(Row("GET", f"alerts/{part}", PAGE) for part in ("", "rules/", "receivers/", "history/", "silences/")),
    Row("POST", "alerts/<int:number>/acknowledge/", PAGE_OPERATE),
    Row("GET", "alerts/rules/-/new/", NEW_PAGE),
    # Alpha is not the outsider's.
    Row("POST", "alerts/rules/-/new/", (302, 403, 403, 400, 302, 302), {**RULE_FORM, "team": "alpha"}),
    Row("GET", P_RULE, PAGE_SEE),
    Row("POST", P_RULE, PAGE_ADMINISTER, RULE_FORM),
    Row("GET", f"{P_RULE}delete/", ADMIN_PAGE),
    Row("POST", f"{P_RULE}delete/", PAGE_ADMINISTER),
    Row("GET", "alerts/receivers/-/new/", NEW_PAGE),
    Row("POST", "alerts/receivers/-/new/", (302, 403, 403, 400, 302, 302), {**MAIL_FORM, "team": "alpha"}),
    Row("GET", P_RECEIVER, ADMIN_PAGE),
    Row("POST", P_RECEIVER, PAGE_ADMINISTER, {"name": "renamed"}),
    Row("GET", f"{P_RECEIVER}delete/", ADMIN_PAGE),
    Row("POST", f"{P_RECEIVER}delete/", PAGE_ADMINISTER),
    Row("POST", f"{P_RECEIVER}test/", PAGE_ADMINISTER),
    Row("GET", "alerts/silences/-/new/", (200, 200, 403, 404, 302, 200), query=OF_FLIGHTS),
    Row("POST", "alerts/silences/-/new/", PAGE_OPERATE, QUIET, OF_FLIGHTS),
    Row("POST", "alerts/silences/<int:number>/end/", PAGE_OPERATE),
    Row("GET", "", PAGE),
    Row("GET", "favicon.ico", (301, 301, 301, 301, 301, 301)),
    Row("GET", "login/", (302, 302, 302, 302, 200, 302)),
    Row("POST", "login/", (302, 302, 302, 302, 200, 302), {"username": "nobody", "password": "x"}),
    Row("GET", "login/second-factor/", REDIRECT),  # without a password before it
    Row("POST", "login/second-factor/", REDIRECT, {"code": "000000"}),
    Row("GET", "login/by/<str:provider_id>/", NO_PROVIDER),
    Row("GET", "login/by/<str:provider_id>/callback/", NO_PROVIDER),
    Row("GET", "login/passkey/", REDIRECT),  # without the header for JSON
    Row("POST", "login/passkey/", REDIRECT, {"credential": "[1]"}),
    Row("PUT", "login/passkey/", REDIRECT),
    Row("GET", "login/forgotten/", EVERYBODY),
    *(
        Row(method, "login/forgotten/<str:uidb64>/<str:token>/", EVERYBODY)  # the link is worth nothing, which it says
        for method in ("GET", "POST", "PUT")
    ),
    Row("PUT", "login/", (302, 302, 302, 302, 200, 302)),
    Row("POST", "logout/", REDIRECT),
    Row("GET", "connections/", PAGE),
    Row("GET", "connections/-/new/", (200, 403, 403, 200, 302, 200)),
    Row("POST", "connections/-/new/", (302, 403, 403, 400, 302, 302), CONNECTION_FORM),  # alpha is not the outsider's
    Row("GET", P_CONNECTION, PAGE_SEE),
    Row("GET", f"{P_CONNECTION}change/", (200, 403, 403, 404, 302, 200)),
    Row("POST", f"{P_CONNECTION}change/", PAGE_ADMINISTER, {"urls": "http://127.0.0.1:1"}),
    Row("GET", f"{P_CONNECTION}transfer/", (200, 403, 403, 404, 302, 200)),
    Row("POST", f"{P_CONNECTION}transfer/", (400, 403, 403, 404, 302, 302), {"team": "beta"}),
    Row("POST", f"{P_CONNECTION}test/", (200, 200, 403, 404, 302, 200)),
    Row("GET", f"{P_CONNECTION}confirm/<str:action>/", PAGE_MAY_OPERATE),
    Row("POST", f"{P_CONNECTION}restart/", PAGE_OPERATE),
    Row("POST", f"{P_CONNECTION}delete/", PAGE_ADMINISTER),
    *(Row("GET", f"{P_CONNECTION}{part}/", NO_CLUSTER_PAGE) for part in ("topics", "topics/<str:topic>", "groups")),
    Row("GET", f"{P_CONNECTION}topics/<str:topic>/records/", NO_CLUSTER_PAGE),
    Row("GET", f"{P_CONNECTION}groups/<path:group>/", NO_CLUSTER_PAGE),
    Row("GET", "datasources/", PAGE),
    Row("GET", P_DS, PAGE_SEE),
    Row("GET", f"{P_DS}totals/", PAGE_SEE),
    Row("GET", f"{P_DS}timeline.json", PAGE_SEE),
    Row("GET", f"{P_DS}intervals/", PAGE_SEE),
    Row("GET", f"{P_DS}rows/", PAGE_SEE),
    Row("GET", f"{P_DS}rows/table/", PAGE_SEE, query="?from=2030-01-01"),
    Row("GET", f"{P_DS}segments/", PAGE_SEE),
    Row("GET", f"{P_DS}segments/<str:segment_id>/", PAGE_SEE),
    Row("GET", f"{P_DS}segments/<str:segment_id>/file/", PAGE_SEE),
    Row("GET", "quarantine/", PAGE),
    Row("GET", f"{P_DS}quarantine/", PAGE_SEE),
    Row("GET", f"{P_DS}quarantine/export/", PAGE_SEE),
    Row("POST", f"{P_DS}quarantine/confirm/", (200, 403, 403, 404, 302, 200), {"action": "purge", "scope": "matching"}),
    Row("POST", f"{P_DS}quarantine/replay/", PAGE_OPERATE, {"action": "ingest", "scope": "matching"}),
    Row("POST", f"{P_DS}quarantine/purge/", PAGE_ADMINISTER, {"action": "purge", "scope": "matching"}),
    Row("GET", f"{P_DS}quarantine/fix/", PAGE_SEE, query=OF_THE_CAUSE),
    Row("POST", f"{P_DS}quarantine/fix/", (400, 400, 403, 404, 302, 400), {"document": "{}"}, OF_THE_CAUSE),
    Row("POST", f"{P_DS}quarantine/fix/submit/", (400, 403, 403, 404, 302, 400), {"document": "{}"}, OF_THE_CAUSE),
    Row("GET", f"{P_DS}quarantine/<int:number>/", PAGE_SEE),
    Row("GET", f"{P_DS}quarantine/<int:number>/payload", PAGE_SEE),
    Row("GET", f"{P_DS}transfer/", (200, 403, 403, 404, 302, 200)),
    Row("POST", f"{P_DS}transfer/", (400, 403, 403, 404, 302, 302), {"team": "beta"}),
    Row("GET", f"{P_DS}columns/", PAGE_SEE),
    Row("GET", f"{P_DS}columns/profile/", PAGE_SEE, query="?column=__time&from=2030-01-01&read=1"),
    Row("POST", f"{P_DS}columns/mask/", PAGE_ADMINISTER, {"column": "email", "role": "admin"}),
    Row("GET", f"{P_DS}progress/", PAGE_SEE),
    Row("GET", f"{P_DS}events/", PAGE_SEE),
    Row("GET", f"{P_DS}events/<int:number>/acknowledge/", (200, 200, 403, 404, 302, 200)),
    Row("POST", f"{P_DS}events/<int:number>/acknowledge/", PAGE_OPERATE),
    Row("GET", f"{P_DS}compaction/", PAGE_SEE),
    Row("POST", f"{P_DS}compaction/apply/", PAGE_OPERATE, {"rows": "1000", "skip": "P1D"}),
    Row("GET", f"{P_DS}retention/", PAGE_SEE),
    Row("GET", f"{P_DS}retention/rules/", ADMIN_PAGE),
    Row("POST", f"{P_DS}retention/rules/", ADMIN_PAGE, {"rows": "0", "do": "save"}),  # not looked at before
    Row("GET", f"{P_DS}retention/mark/", ADMIN_PAGE),
    Row("POST", f"{P_DS}retention/mark/", PAGE_ADMINISTER, {"step": "kill", "scope": "everything", "sure": "1"}),
    Row("GET", f"{P_DS}delete/", ADMIN_PAGE),
    Row("POST", f"{P_DS}delete/", (409, 403, 403, 404, 302, 409), {"name": "flights"}),  # it is read into
    Row("GET", "retention/", PAGE_SITE),
    Row("POST", "retention/", PAGE_SITE, {"rows": "0", "do": "preview"}),
    Row("GET", "supervisors/", PAGE),
    Row("GET", "supervisors/-/new/", PAGE),
    Row("GET", "supervisors/-/new/", PAGE_SEE, query="?from=flights"),
    Row("POST", "supervisors/-/new/", (302, 403, 403, 409, 302, 302), SPEC_FORM),
    Row("GET", "supervisors/-/import/", PAGE),
    # An outsider is told on the page that the name is taken.
    Row(
        "POST", "supervisors/-/import/", (200, 403, 403, 200, 302, 200), {**IMPORTED, "ticked": "flights", "sure": "1"}
    ),
    Row("GET", "supervisors/-/schema.json", PAGE),
    Row("GET", P_SV, PAGE_SEE),
    Row("GET", f"{P_SV}live/", PAGE_SEE),
    Row("GET", f"{P_SV}lag/", PAGE_SEE),
    Row("GET", f"{P_SV}lag.json", PAGE_SEE),
    Row("GET", f"{P_SV}spec/", PAGE_SEE),
    Row("GET", f"{P_SV}spec/<int:number>/confirm/", (404, 403, 403, 404, 302, 404)),  # there is no such version
    Row("POST", f"{P_SV}spec/<int:number>/", (404, 403, 403, 404, 302, 404)),
    Row("GET", f"{P_SV}autoscaler/", PAGE_SEE),
    Row("GET", f"{P_SV}share-group/", PAGE_SEE),
    Row("GET", f"{P_SV}share-group/config/", PAGE_SEE),
    Row("POST", f"{P_SV}share-group/apply/", PAGE_OPERATE),
    Row("POST", f"{P_SV}dead-letters/import/", PAGE_OPERATE),
    Row("GET", f"{P_SV}confirm/<str:action>/", PAGE_MAY_OPERATE),
    Row("POST", f"{P_SV}suspend/", PAGE_OPERATE),
    Row("POST", f"{P_SV}resume/", PAGE_OPERATE),
    Row("POST", f"{P_SV}terminate/", PAGE_ADMINISTER),
    Row("POST", f"{P_SV}scale/", PAGE_ADMINISTER, {"task_count": 2}),
    Row("POST", f"{P_SV}handoff/", PAGE_OPERATE),
    Row("POST", f"{P_SV}reset/", PAGE_ADMINISTER, {"offsets": "0: 1"}),
    Row("GET", f"{P_SV}backfills/", PAGE_SEE),
    Row("POST", f"{P_SV}backfills/", PAGE_ADMINISTER),
    Row("GET", f"{P_SV}rewinds/", PAGE_SEE),
    Row("POST", f"{P_SV}rewinds/", PAGE_ADMINISTER),
    Row("GET", "tasks/", PAGE),
    Row("GET", "tasks/-/capacity/", PAGE),
    Row("GET", "tasks/-/new/", PAGE),
    Row("POST", "tasks/-/new/", (302, 302, 403, 409, 302, 302), SPEC_FORM),
    Row("GET", P_TASK, PAGE_SEE),
    Row("GET", f"{P_TASK}live/", PAGE_SEE),
    Row("GET", f"{P_TASK}errors/", PAGE_SEE),
    Row("GET", f"{P_TASK}log/", PAGE_SEE),
    Row("GET", f"{P_TASK}confirm/<str:action>/", PAGE_MAY_OPERATE),
    Row("POST", f"{P_TASK}stop/", PAGE_OPERATE),
    Row("POST", f"{P_TASK}finish/", PAGE_OPERATE),
    Row("GET", "load/", PAGE),
    Row("POST", "load/", (302, 302, 403, 302, 302, 302), {}),
    Row("GET", "load/<uuid:draft_id>/<slug:step_name>/", (200, 200, 403, 404, 302, 200)),
    Row("POST", "load/<uuid:draft_id>/<slug:step_name>/", PAGE_OPERATE, {"servers": "kafka-broker:9092"}),
    Row("POST", "load/<uuid:draft_id>/delete/", PAGE_ADMINISTER),
    Row("GET", "login/again/", PAGE),
    Row("POST", "login/again/", (400, 400, 400, 400, 302, 400), {"secret": "wrong"}),
    Row("GET", "account/", PAGE),
    Row("POST", "account/name/", REDIRECT, {"first_name": "Ann", "last_name": "Oldman"}),
    Row("POST", "account/email/", REDIRECT, {"email": "new@example.org"}),  # the login is not fresh
    Row("GET", "account/email/<str:secret>/", (404, 404, 404, 404, 302, 404)),
    Row("POST", "account/email/<str:secret>/", (404, 404, 404, 404, 302, 404)),
    Row("POST", "account/password/", (400, 400, 400, 400, 302, 400), {"old_password": "wrong"}),
    *(
        Row(method, f"account/{page}/", REDIRECT)  # the login is not fresh
        for page in ("app", "passkey", "codes")
        for method in ("GET", "POST", "PUT")
    ),
    Row("POST", "account/factors/<int:number>/remove/", REDIRECT),
    Row("POST", "account/sessions/<str:session_id>/end/", (404, 404, 404, 404, 302, 404)),
    Row("POST", "account/tokens/", instead(PAGE, success=201), {"name": "ci", "days": "7"}),
    Row("POST", "account/tokens/<str:token_id>/revoke/", (404, 404, 404, 404, 302, 404)),
    Row("GET", "teams/", PAGE),
    Row("GET", "teams/-/new/", (403, 403, 403, 403, 302, 200)),
    Row("POST", "teams/-/new/", (403, 403, 403, 403, 302, 302), {"name": "gamma"}),
    Row("GET", P_TEAM, PAGE_SEE),
    Row("POST", f"{P_TEAM}invite/", PAGE_ADMINISTER, {"username": "new", "role": "viewer"}),
    Row("POST", f"{P_TEAM}invite-by-link/", (200, 403, 403, 404, 302, 200), LINK),
    Row("POST", f"{P_TEAM}links/<int:number>/withdraw/", (404, 403, 403, 404, 302, 404)),
    Row("POST", f"{P_TEAM}members/<str:username>/role/", PAGE_ADMINISTER, {"role": "operator"}),
    Row("GET", f"{P_TEAM}members/<str:username>/remove/", (200, 403, 403, 404, 302, 200)),
    Row("POST", f"{P_TEAM}members/<str:username>/remove/", PAGE_ADMINISTER),
    Row("POST", f"{P_TEAM}members/<str:username>/withdraw/", (404, 403, 403, 404, 302, 404)),
    Row("GET", "people/", PAGE_SITE),
    Row("GET", "people/-/new/", PAGE_SITE),
    Row("POST", "people/-/new/", (403, 403, 403, 403, 302, 302), {"username": "new"}),
    Row("GET", "people/<str:username>/", PAGE_SITE),
    Row("GET", "people/<str:username>/switch/", PAGE_SITE),
    Row("POST", "people/<str:username>/switch/", (403, 403, 403, 403, 302, 302)),
    Row("GET", "people/<str:username>/second-factors/", PAGE_SITE),
    Row("POST", "people/<str:username>/second-factors/", (403, 403, 403, 403, 302, 302)),
    Row("POST", "people/<str:username>/password-link/", PAGE_SITE),
    Row("GET", "password/<str:secret>/", (404, 404, 404, 404, 404, 404)),
    Row("POST", "password/<str:secret>/", (404, 404, 404, 404, 404, 404), {"password": "x"}),
    Row("GET", "join/<str:secret>/", (404, 404, 404, 404, 404, 404)),  # there is no such secret
    Row("POST", "join/<str:secret>/", (404, 404, 404, 404, 404, 404), {"username": "new"}),
    Row("GET", f"{P_TEAM}about/", (200, 403, 403, 404, 302, 200)),
    Row("POST", f"{P_TEAM}about/", (302, 403, 403, 404, 302, 302), {"description": "x", "name": "alpha"}),
    Row("GET", f"{P_TEAM}limits/", (200, 403, 403, 404, 302, 200)),
    Row("POST", f"{P_TEAM}limits/", (403, 403, 403, 404, 302, 302), {"indexers": 4}),
    Row("GET", f"{P_TEAM}tokens/", (200, 403, 403, 404, 302, 200)),
    Row("POST", f"{P_TEAM}tokens/<str:username>/<str:token_id>/", (404, 403, 403, 404, 302, 404)),
    Row("GET", P_ACCOUNTS, (200, 403, 403, 404, 302, 200)),
    Row("POST", P_ACCOUNTS, PAGE_ADMINISTER, {"name": "another"}),
    Row("GET", f"{P_ACCOUNTS}<str:account>/", (200, 403, 403, 404, 302, 200)),
    Row("POST", f"{P_ACCOUNTS}<str:account>/", (200, 403, 403, 404, 302, 200), {"scope": "read", "days": 1}),
    Row("GET", f"{P_ACCOUNTS}<str:account>/delete/", (200, 403, 403, 404, 302, 200)),
    Row("POST", f"{P_ACCOUNTS}<str:account>/delete/", PAGE_ADMINISTER),
    Row("POST", f"{P_ACCOUNTS}<str:account>/revoke/<str:token_id>/", (404, 403, 403, 404, 302, 404)),
    Row("GET", f"{P_TEAM}leave/confirm/", (200, 200, 200, 404, 302, 404)),  # a site's administrator is no member
    Row("GET", f"{P_TEAM}delete/confirm/", (404, 404, 404, 404, 302, 404)),  # it owns things: nothing to confirm
    Row("POST", f"{P_TEAM}delete/", (403, 403, 403, 404, 302, 302)),
    Row("POST", "teams/<str:name>/<str:action>/", (302, 302, 302, 404, 302, 404)),  # the owner is told to stay
    Row("GET", "-/go.json", PAGE, query="?q=fli"),
    Row("POST", "-/team/", (302, 302, 302, 400, 302, 302), {"team": "alpha"}),
    *(Row("GET", f"-/styleguide/{part}", (403, 403, 403, 403, 302, 200)) for part in ("", "timeline.json", "lag.json")),
    # The tests' client is no stream's: it is let in, and gets nothing.
    Row("GET", "-/live/", (204, 204, 204, 404, 401, 204), query="?t=supervisor:flights&t=team"),
    Row("GET", "-/live/", (204, 204, 204, 204, 401, 204), query="?t=team"),
    Row("GET", "audit/", (200, 403, 403, 200, 302, 200)),
    Row("GET", "audit/export/", (200, 403, 403, 200, 302, 200)),
    Row("GET", "records/", PAGE),
    Row("GET", "records/", PAGE_SEE, query="?topic=flights-topic&partition=0&offset=0"),
]

TABLE = [*REST, *DRUID, *INTERNAL, *OPEN, *PAGES]


class Everybody:
    """A client of each role, made once: what one answer sets in its cookies the next request does not bring."""

    def __init__(self, cast: Cast) -> None:
        self._cast = cast
        self._pages = {role: browsing_as(cast, role) for role in ROLES}
        self._api = {role: speaking_as(cast, role) for role in ROLES}
        self._cookies = {role: client.cookies.output(header="") for role, client in self._pages.items()}

    def ask(self, row: Row, role: str) -> HttpResponseBase:
        """The answer to a row, asked by somebody of the cast."""
        client = (self._pages if row.is_page else self._api)[role]
        client.cookies = SimpleCookie(self._cookies[role] if row.is_page else "")
        return ask_by(client, row, self._cast)


def ask_by(client: Client, row: Row, cast: Cast) -> HttpResponseBase:
    """The answer to a row, asked by a client."""
    path = Route(row.pattern, frozenset(), None).path(**arguments(cast, row.pattern)) + row.query
    if row.is_page and row.method == "POST":
        return client.post(path, row.body or {})
    body = "" if row.body is None else json.dumps(row.body)
    return client.generic(row.method, path, body, content_type="application/json")
