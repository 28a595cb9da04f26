"""Who may do what, for every address of the site: the table that ``test_permissions`` walks.

Each row gives the status for owner (role admin), operator, viewer (all of team alpha), outsider (admin of team beta),
anonymous, and the site's administrator, in the order of ``django_cast.ROLES``. Everything named belongs to team alpha.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponseBase

from tests.support.django_cast import Cast, browsing_as, speaking_as, spec_for
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
        return not self.pattern.startswith(("api/v1/", "api/sampler/", "druid/", "internal/"))


ACTIONS = {"supervisors": "suspend", "teams": "leave"}
OF_TEAMS = ("api/v1/teams/", "api/v1/invitations/", "teams/")


def arguments(cast: Cast, pattern: str) -> dict[str, object]:
    """Values for the parameters of any address, all of them team alpha's."""
    return {
        "name": cast.alpha.name if pattern.startswith(OF_TEAMS) else cast.datasource.name,
        "username": "viewer",
        "supervisor_id": cast.supervisor.pk,
        "task_id": cast.task.pk,
        "number": 0 if pattern.startswith("internal/") else cast.quarantined.pk,
        "token_id": "an-id-of-a-token",
        "rest": "none",
        "action": ACTIONS.get(pattern.partition("/")[0], "stop"),
    }


V1, DS, SV, TASK = "api/v1/", "api/v1/datasources/", "api/v1/supervisors/", "api/v1/tasks/"
ONE_DS, ONE_SV, ONE_TASK = f"{DS}<str:name>/", f"{SV}<str:supervisor_id>/", f"{TASK}<str:task_id>/"
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

REST = [
    Row("POST", f"{V1}auth/login/", (401, 401, 401, 401, 401, 401), {"username": "nobody", "password": "x"}),
    Row("POST", f"{V1}auth/logout/", instead(LOGGED_IN, success=204)),
    Row("GET", f"{V1}tokens/", LOGGED_IN),
    Row("POST", f"{V1}tokens/", instead(LOGGED_IN, success=201), {"name": "t"}),
    Row("DELETE", f"{V1}tokens/<str:token_id>/", (404, 404, 404, 404, 401, 404)),
    Row("GET", f"{V1}teams/", LOGGED_IN),
    Row("GET", TEAM, SEE),
    Row("PUT", f"{TEAM}<str:username>/", ADMINISTER, {"role": "operator"}),
    Row("DELETE", f"{TEAM}<str:username>/", (204, 403, 204, 404, 401, 204)),  # it is the viewer, who may leave
    Row("GET", f"{V1}teams/<str:name>/tokens/", ADMINISTER),
    Row("DELETE", f"{TEAM}<str:username>/tokens/<str:token_id>/", (404, 403, 403, 404, 401, 404)),
    Row("GET", f"{V1}teams/<str:name>/invitations/", ADMINISTER),
    Row("GET", f"{V1}invitations/", LOGGED_IN),
    Row("POST", f"{V1}invitations/<str:name>/", (404, 404, 404, 404, 401, 404)),
    Row("DELETE", f"{V1}invitations/<str:name>/", (404, 404, 404, 404, 401, 404)),
    Row("GET", f"{V1}teams/<str:name>/audit/", ADMINISTER),
    Row("GET", DS, LOGGED_IN),
    Row("GET", ONE_DS, SEE),
    Row("GET", f"{ONE_DS}segments/", SEE),
    Row("GET", f"{ONE_DS}timeline/", SEE),
    Row("GET", f"{ONE_DS}quarantine/", SEE),
    Row("GET", f"{ONE_DS}quarantine/<int:number>/", SEE),
    Row("GET", f"{ONE_DS}quarantine/export/", SEE),
    Row("POST", f"{ONE_DS}quarantine/replay/", instead(OPERATE, success=202), {"mode": "ingest", "filter": {}}),
    Row("POST", f"{ONE_DS}quarantine/purge/", ADMINISTER, {"filter": {}}),
    Row("GET", f"{ONE_DS}events/", SEE),
    Row("GET", f"{ONE_DS}progress/", SEE),
    Row("GET", SV, LOGGED_IN),
    Row("POST", SV, (200, 403, 403, 409, 401, 200), KNOWN_DATASOURCE),
    Row("GET", ONE_SV, SEE),
    Row("GET", f"{ONE_SV}versions/", SEE),
    Row("GET", f"{ONE_SV}stats/", SEE),
    Row("GET", f"{ONE_SV}lag/", SEE),
    Row("GET", f"{ONE_SV}lag/series/", SEE),
    Row("POST", f"{SV}-/suspend/", LOGGED_IN),
    Row("POST", f"{SV}-/resume/", LOGGED_IN),
    Row("POST", f"{SV}-/terminate/", LOGGED_IN),
    Row("POST", f"{ONE_SV}suspend/", OPERATE),
    Row("POST", f"{ONE_SV}resume/", instead(OPERATE, success=409)),
    Row("POST", f"{ONE_SV}terminate/", ADMINISTER),
    Row("POST", f"{ONE_SV}reset/", (400, 403, 403, 404, 401, 400), {}),
    Row("POST", f"{ONE_SV}handoff/", OPERATE),
    Row("POST", f"{ONE_SV}scale/", ADMINISTER, {"taskCount": 2}),
    Row("GET", f"{ONE_SV}scale-actions/", SEE),
    Row("GET", f"{ONE_SV}share-group/", SEE),
    # Nobody answers at the cast's broker.
    Row("GET", f"{ONE_SV}share-group/config/", (503, 503, 503, 404, 401, 503)),
    Row("POST", f"{ONE_SV}share-group/config/", (503, 503, 403, 404, 401, 503)),
    Row("GET", TASK, LOGGED_IN),
    Row("POST", TASK, SUBMIT, KNOWN_DATASOURCE),
    Row("GET", ONE_TASK, SEE),
    Row("GET", f"{ONE_TASK}report/", SEE),
    Row("GET", f"{ONE_TASK}log/", SEE),
    Row("POST", f"{ONE_TASK}stop/", OPERATE, {"finish": True}),
    Row("GET", f"{V1}capacity/", LOGGED_IN),
    Row("GET", f"{V1}records/", SEE, query="?topic=flights-topic&partition=0&offset=0"),
    Row("POST", f"{V1}sampler/", SAMPLE, PASTED),
    Row("POST", "api/sampler/", SAMPLE, PASTED),
    Row("POST", f"{V1}validate/", LOGGED_IN, {"kind": "task", "spec": KNOWN_DATASOURCE}),
]

D = "druid/indexer/v1/"
RESET = {"type": "kafka", "partitions": {"type": "end", "stream": "flights-topic", "partitionOffsetMap": {"0": 1}}}
D_TASK, D_SV = f"{D}task/<str:task_id>", f"{D}supervisor/<str:supervisor_id>"
DRUID = [
    Row("POST", f"{D}task", (200, 200, 403, 409, 401, 200), KNOWN_DATASOURCE),
    Row("GET", f"{D}tasks", LOGGED_IN),
    Row("GET", D_TASK, SEE),
    Row("GET", f"{D_TASK}/status", SEE),
    Row("GET", f"{D_TASK}/reports", SEE),
    Row("GET", f"{D_TASK}/log", SEE),
    Row("POST", f"{D_TASK}/shutdown", OPERATE),
    Row("GET", f"{D}totalWorkerCapacity", LOGGED_IN),
    Row("POST", f"{D}sampler", SAMPLE, PASTED),
    Row("GET", f"{D}supervisor", LOGGED_IN, query="?full"),
    Row("POST", f"{D}supervisor", (200, 403, 403, 409, 401, 200), KNOWN_DATASOURCE),
    Row("GET", D_SV, SEE),
    Row("GET", f"{D_SV}/status", SEE),
    Row("GET", f"{D_SV}/health", SEE),
    Row("GET", f"{D_SV}/stats", SEE),
    Row("GET", f"{D_SV}/history", SEE),
    Row("GET", f"{D}supervisor/history", LOGGED_IN),
    Row("POST", f"{D}supervisor/suspendAll", LOGGED_IN),
    Row("POST", f"{D}supervisor/resumeAll", LOGGED_IN),
    Row("POST", f"{D}supervisor/terminateAll", LOGGED_IN),
    Row("POST", f"{D_SV}/reset", (400, 403, 403, 404, 401, 400)),
    Row("POST", f"{D_SV}/resetOffsets", (400, 403, 403, 404, 401, 400), RESET),
    Row("POST", f"{D_SV}/taskGroups/handoff", OPERATE, {"taskGroupIds": [0]}),
    Row("POST", f"{D_SV}/suspend", OPERATE),
    Row("POST", f"{D_SV}/resume", instead(OPERATE, success=400)),
    Row("POST", f"{D_SV}/terminate", ADMINISTER),
]

# Only the task's own token opens these: no user's does.
INDEXER = "internal/tasks/<str:task_id>/indexers/<int:number>/"
INTERNAL = [
    Row("GET", "internal/tasks/<str:task_id>/assignment", NOBODY),
    Row("POST", "internal/tasks/<str:task_id>/heartbeat", NOBODY, {}),
    Row("POST", "internal/tasks/<str:task_id>/end", NOBODY, {}),
    Row("GET", "internal/tasks/<str:task_id>/quarantined", NOBODY),
    Row("POST", "internal/tasks/<str:task_id>/produced", NOBODY, {}),
    Row("POST", f"{INDEXER}start", NOBODY, {}),
    Row("POST", f"{INDEXER}claim", NOBODY, {}),
    Row("POST", f"{INDEXER}settled", NOBODY, {}),
    Row("POST", f"{INDEXER}publish", NOBODY, {}),
    Row("POST", f"{INDEXER}abandon", NOBODY, {}),
]

OPEN = [
    Row("GET", "healthz", EVERYBODY),
    Row("GET", "readyz", EVERYBODY),
    Row("GET", "api/schema/", EVERYBODY),
    Row("GET", "api/docs/", EVERYBODY),
    Row("GET", r"^(?:api|druid)/(?P<rest>.*)$", (404, 404, 404, 404, 404, 404)),
]

P_DS, P_SV, P_TASK = "datasources/<str:name>/", "supervisors/<str:supervisor_id>/", "tasks/<str:task_id>/"
SPEC_FORM = {"document": json.dumps(KNOWN_DATASOURCE), "team": "alpha"}
REDIRECT: Statuses = (302, 302, 302, 302, 302, 302)
PAGES = [
    *(Row(method, "", REDIRECT) for method in ("GET", "POST", "PUT", "PATCH", "DELETE")),
    Row("GET", "favicon.ico", (301, 301, 301, 301, 301, 301)),
    Row("GET", "login/", (302, 302, 302, 302, 200, 302)),
    Row("POST", "login/", (302, 302, 302, 302, 200, 302), {"username": "nobody", "password": "x"}),
    Row("PUT", "login/", (302, 302, 302, 302, 200, 302)),
    Row("POST", "logout/", REDIRECT),
    Row("GET", "datasources/", PAGE),
    Row("GET", P_DS, PAGE_SEE),
    Row("GET", f"{P_DS}totals/", PAGE_SEE),
    Row("GET", f"{P_DS}timeline.json", PAGE_SEE),
    Row("GET", f"{P_DS}intervals/", PAGE_SEE),
    Row("GET", f"{P_DS}segments/", PAGE_SEE),
    Row("GET", f"{P_DS}quarantine/", PAGE_SEE),
    Row("GET", f"{P_DS}quarantine/export/", PAGE_SEE),
    Row("POST", f"{P_DS}quarantine/confirm/", (200, 403, 403, 404, 302, 200), {"action": "purge", "scope": "matching"}),
    Row("POST", f"{P_DS}quarantine/replay/", PAGE_OPERATE, {"action": "ingest", "scope": "matching"}),
    Row("POST", f"{P_DS}quarantine/purge/", PAGE_ADMINISTER, {"action": "purge", "scope": "matching"}),
    Row("GET", f"{P_DS}quarantine/<int:number>/", PAGE_SEE),
    Row("GET", f"{P_DS}quarantine/<int:number>/payload", PAGE_SEE),
    Row("GET", f"{P_DS}columns/", PAGE_SEE),
    Row("GET", f"{P_DS}progress/", PAGE_SEE),
    Row("GET", f"{P_DS}events/", PAGE_SEE),
    Row("GET", "supervisors/", PAGE),
    Row("GET", "supervisors/-/new/", PAGE),
    Row("GET", "supervisors/-/new/", PAGE_SEE, query="?from=flights"),
    Row("POST", "supervisors/-/new/", (302, 403, 403, 409, 302, 302), SPEC_FORM),
    Row("GET", P_SV, PAGE_SEE),
    Row("GET", f"{P_SV}live/", PAGE_SEE),
    Row("GET", f"{P_SV}lag/", PAGE_SEE),
    Row("GET", f"{P_SV}lag.json", PAGE_SEE),
    Row("GET", f"{P_SV}spec/", PAGE_SEE),
    Row("GET", f"{P_SV}share-group/", PAGE_SEE),
    Row("GET", f"{P_SV}share-group/config/", PAGE_SEE),
    Row("POST", f"{P_SV}share-group/apply/", PAGE_OPERATE),
    Row("GET", f"{P_SV}confirm/<str:action>/", PAGE_MAY_OPERATE),
    Row("POST", f"{P_SV}suspend/", PAGE_OPERATE),
    Row("POST", f"{P_SV}resume/", PAGE_OPERATE),
    Row("POST", f"{P_SV}terminate/", PAGE_ADMINISTER),
    Row("POST", f"{P_SV}scale/", PAGE_ADMINISTER, {"task_count": 2}),
    Row("POST", f"{P_SV}handoff/", PAGE_OPERATE),
    Row("POST", f"{P_SV}reset/", PAGE_ADMINISTER, {"offsets": "0: 1"}),
    Row("GET", "tasks/", PAGE),
    Row("GET", "tasks/-/new/", PAGE),
    Row("POST", "tasks/-/new/", (302, 302, 403, 409, 302, 302), SPEC_FORM),
    Row("GET", P_TASK, PAGE_SEE),
    Row("GET", f"{P_TASK}live/", PAGE_SEE),
    Row("GET", f"{P_TASK}errors/", PAGE_SEE),
    Row("GET", f"{P_TASK}log/", PAGE_SEE),
    Row("GET", f"{P_TASK}confirm/<str:action>/", PAGE_MAY_OPERATE),
    Row("POST", f"{P_TASK}stop/", PAGE_OPERATE),
    Row("POST", f"{P_TASK}finish/", PAGE_OPERATE),
    Row("GET", "teams/", PAGE),
    Row("POST", "teams/<str:name>/<str:action>/", (302, 302, 302, 404, 302, 404)),  # the owner is told to stay
    Row("GET", "audit/", (200, 403, 403, 200, 302, 200)),
    Row("GET", "records/", PAGE),
    Row("GET", "records/", PAGE_SEE, query="?topic=flights-topic&partition=0&offset=0"),
]

TABLE = [*REST, *DRUID, *INTERNAL, *OPEN, *PAGES]


def ask(row: Row, role: str, cast: Cast) -> HttpResponseBase:
    """The answer to a row, asked by somebody of the cast."""
    client = browsing_as(cast, role) if row.is_page else speaking_as(cast, role)
    path = Route(row.pattern, frozenset(), None).path(**arguments(cast, row.pattern)) + row.query
    if row.is_page and row.method == "POST":
        return client.post(path, row.body or {})
    body = "" if row.body is None else json.dumps(row.body)
    return client.generic(row.method, path, body, content_type="application/json")
