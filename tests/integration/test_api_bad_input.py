"""Every REST endpoint answers bad ids, bodies, specs and headers with a clear 4xx in the right form; nothing changes.

Since nothing changes, one test sends many: the message of a failure says which.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from controlplane.common.strict_json import MAX_BYTES
from tests.support.bad_input import check_problem, everything, rows_before
from tests.support.django_cast import SEED, Cast, spec_for
from tests.support.routes import all_routes

V1, SHORT, DRUID = "api/v1/", "api/sampler/", "druid/indexer/v1/"
ROUTES = [r for r in all_routes() if r.pattern.startswith((V1, SHORT, DRUID, "druid/v2/"))]
GOOD = {
    "supervisor_id": "flights",
    "number": 1,
    "username": "viewer",
    "token_id": "x",
    "account": "loader",
    "session_id": "x",
    "segment_id": "flights_2013-01-01T00:00:00.000Z_2013-01-02T00:00:00.000Z_v",
    "interval": "2013-01-01_2013-01-02",
}
GOOD |= {
    "query_id": "x",
    "team": "alpha",
    "topic": "t",
    "group": "g",
    "draft_id": "00000000-0000-4000-8000-000000000000",
}


@pytest.fixture(autouse=True)
def nothing_changes(cast: Cast, clients: dict[str, Client], empty_cache: None) -> Iterator[None]:
    before = rows_before()
    yield
    assert everything() == before


def good_path(route: Any, cast: Cast, **odd: str) -> str:
    """The route's address with what exists, but for ``odd``."""
    name = "alpha" if "teams/" in route.pattern else "flights"
    name = cast.connection.name if "connections/" in route.pattern else name
    return str(route.path(**{**GOOD, "name": name, "task_id": cast.task.pk, **odd}))


ODD_IDS = [
    "%00",
    "a%00b",
    "%ED%A0%80",
    "no-such",
    "..",
    "%2e%2e",
    "x" * 2000,
    "'; DROP TABLE x; --",
    "%F0%9F%92%A9",
    "-1",
]

# Of these a user might be called so: whoever it is can be invited, and the answer does not tell whether there is one.
USER_NAMES = {"no-such", "..", "%2e%2e", "-1"}


def areas() -> dict[str, list[Any]]:
    """Routes with parameters by the beginning of their addresses: what changes nothing is looked at once for many."""
    found = defaultdict(list)
    for route in ROUTES:
        if route.parameters:
            found["/".join(route.pattern.split("/")[:3])].append(route)
    return found


@pytest.mark.parametrize("routes", areas().values(), ids=areas())
def test_an_odd_id_is_not_found(owner: Client, cast: Cast, routes: list[Any]) -> None:
    for route in routes:
        check_odd_ids(owner, cast, route)


def check_odd_ids(owner: Client, cast: Cast, route: Any) -> None:
    for_the_site = route.pattern.startswith(("api/v1/people/", "api/v1/users/"))  # the owner is not told who there is
    for parameter, odd in itertools.product(route.parameters, ODD_IDS):
        path = good_path(route, cast, **{parameter: odd})
        for method in route.methods:
            if (method, parameter) == ("PUT", "username") and odd in USER_NAMES:
                continue
            # A body that is right, so that the id alone is at fault.
            link = {"email": "new@example.org", "role": "viewer"}
            body = {"scale/": {"taskCount": 2}, "members": {"role": "viewer"}, "invitation-links": link}
            document = next((b for part, b in body.items() if part in route.pattern), {})
            answer = owner.generic(method, path, json.dumps(document), content_type="application/json")
            statuses = (400, 403, 404, 405) if for_the_site else (400, 404, 405)
            check_problem(answer, path, statuses, method)


BODIES: dict[str, tuple[bytes, str, int]] = {
    "malformed": (b'{"type": ', "application/json", 400),
    "empty": (b"", "application/json", 400),
    "blank": (b"  ", "application/json", 400),
    "list": (b"[]", "application/json", 400),
    "null": (b"null", "application/json", 400),
    "text": (b'"a"', "application/json", 400),
    "number": (b"17", "application/json", 400),
    "NaN": (b'{"a": NaN}', "application/json", 400),
    "infinite": (b'{"a": 1e999}', "application/json", 400),
    "huge number": (b'{"a": ' + b"9" * 5000 + b"}", "application/json", 400),
    "large number": (b'{"a": 99999999999999999999}', "application/json", 400),
    "NUL": (b'{"a": "\\u0000"}', "application/json", 400),
    "NUL in a name": (b'{"a\\u0000": 1}', "application/json", 400),
    "half a pair": (b'{"a": "\\ud800"}', "application/json", 400),
    "not UTF-8": (b'{"a": "\xff"}', "application/json", 400),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "application/json; charset=utf-16", 400),
    "deep": (b"[" * 30_000 + b"]" * 30_000, "application/json", 400),
    "rather deep": (b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}", "application/json", 400),
    "a name twice": (b'{"type": "a", "type": "b"}', "application/json", 400),
    "unknown field": (b'{"surprise": 1}', "application/json", 400),
    "too large": (b'{"a": "' + b"x" * MAX_BYTES + b'"}', "application/json", 413),
    "form": (b"a=1", "application/x-www-form-urlencoded", 415),
    "multipart": (b"--x--", "multipart/form-data; boundary=x", 415),
    "odd type": (b"{}", "application/octet-stream", 415),
    "no type": (b"{}", "", 415),
}
WITH_BODY = {
    ("PUT", "api/v1/teams/<str:name>/quotas/"),
    ("PUT", "api/v1/datasources/<str:name>/masks/"),
    ("POST", "api/v1/datasources/<str:name>/transfer/"),
    ("POST", "api/v1/connections/<str:team>/<str:name>/transfer/"),
    ("POST", "api/v1/teams/"),
    ("POST", "api/v1/alerts/rules/"),
    ("PUT", "api/v1/alerts/rules/<int:number>/"),
    ("POST", "api/v1/alerts/receivers/"),
    ("PUT", "api/v1/alerts/receivers/<int:number>/"),
    ("POST", "api/v1/alerts/silences/"),
    ("POST", "api/v1/teams/<str:name>/invitation-links/"),
    ("POST", "api/v1/people/"),
    ("POST", "api/v1/teams/<str:name>/service-accounts/"),
    ("POST", "api/v1/teams/<str:name>/service-accounts/<str:account>/tokens/"),
    ("PUT", "api/v1/teams/<str:name>/connection-rule/"),
    ("POST", "api/v1/connections/"),
    ("POST", "api/v1/connections/-/test/"),
    ("PUT", "api/v1/connections/<str:team>/<str:name>/"),
    ("POST", "api/v1/load/drafts/"),
    ("PUT", "api/v1/load/drafts/<uuid:draft_id>/"),
    ("POST", "api/v1/load/drafts/<uuid:draft_id>/submit/"),
    ("PUT", "api/v1/account/email/"),
    ("PUT", "api/v1/teams/<str:name>/"),
    ("POST", "api/v1/auth/login/"),
    ("POST", "api/v1/tokens/"),
    ("PUT", "api/v1/teams/<str:name>/members/<str:username>/"),
    ("POST", "api/v1/datasources/<str:name>/quarantine/replay/"),
    ("POST", "api/v1/datasources/<str:name>/quarantine/try/"),
    ("POST", "api/v1/datasources/<str:name>/quarantine/purge/"),
    ("POST", "api/v1/supervisors/<str:supervisor_id>/dead-letters/"),
    ("POST", "api/v1/supervisors/"),
    ("POST", "api/v1/supervisors/-/plan/"),
    ("POST", "api/v1/druid/import/"),
    ("POST", "api/v1/supervisors/<str:supervisor_id>/reset/"),
    ("POST", "api/v1/supervisors/<str:supervisor_id>/backfills/"),
    ("POST", "api/v1/supervisors/<str:supervisor_id>/rewinds/"),
    ("POST", "api/v1/supervisors/<str:supervisor_id>/rewinds/undo/"),
    ("POST", "api/v1/supervisors/<str:supervisor_id>/rewinds/cancel/"),
    ("POST", "api/v1/supervisors/<str:supervisor_id>/scale/"),
    ("POST", "api/v1/sql/"),
    ("POST", "api/v1/sql/saved/"),
    ("PUT", "api/v1/sql/saved/<int:number>/"),
    ("POST", "api/v1/tasks/"),
    ("POST", "api/v1/tasks/<str:task_id>/stop/"),
    ("POST", "api/v1/sampler/"),
    ("POST", "api/sampler/"),
    ("POST", "api/v1/validate/"),
    ("POST", "api/v1/datasources/<str:name>/segments/mark-unused/"),
    ("POST", "api/v1/datasources/<str:name>/segments/mark-used/"),
    ("POST", "api/v1/datasources/<str:name>/segments/kill/"),
    ("POST", "api/v1/datasources/<str:name>/delete/"),
    ("PUT", "api/v1/datasources/<str:name>/rules/"),
    ("PUT", "api/v1/datasources/<str:name>/compaction/"),
    ("POST", "api/v1/datasources/<str:name>/rules/preview/"),
    ("POST", "druid/indexer/v1/datasources/<str:name>/markUnused"),
    ("POST", "druid/indexer/v1/datasources/<str:name>/markUsed"),
    ("POST", "druid/v2/sql"),
    ("POST", "druid/v2/sql/"),
    ("POST", "druid/indexer/v1/sampler"),
    ("POST", "druid/indexer/v1/task"),
    ("POST", "druid/indexer/v1/supervisor"),
    ("POST", "druid/indexer/v1/supervisor/<str:supervisor_id>/resetOffsets"),
    ("POST", "druid/indexer/v1/supervisor/<str:supervisor_id>/taskGroups/handoff"),
    ("POST", "druid/indexer/v1/taskStatus"),
    ("POST", "druid/indexer/v1/compaction/config/cluster"),
}
# An empty object is a good body there: all its fields have defaults.
DEFAULTS = {
    "api/v1/teams/<str:name>/quotas/",
    "api/v1/load/drafts/",
    "api/v1/tokens/",
    "api/v1/tasks/<str:task_id>/stop/",
    "druid/indexer/v1/compaction/config/cluster",
}


@pytest.mark.parametrize(("method", "pattern"), sorted(WITH_BODY))
def test_a_bad_body_is_refused(owner: Client, cast: Cast, method: str, pattern: str) -> None:
    [route] = [r for r in ROUTES if r.pattern == pattern]
    path = good_path(route, cast)
    for kind, (body, content_type, status) in BODIES.items():
        if kind == "empty" and pattern in DEFAULTS:
            continue
        cache.clear()  # these are more logins than a minute has
        answer = owner.generic(method, path, body, content_type=content_type)
        check_problem(answer, path, (status, 404) if "draft_id" in pattern else (status,), kind)


def test_every_endpoint_that_reads_a_body_is_in_the_table() -> None:
    """Those that are not take no body at all."""
    without = {"logout/", "suspend", "resume", "terminate", "shutdown", "suspendAll", "resumeAll"}
    without |= {"lockedIntervals", "lockedIntervals/v2"}
    without |= {
        "terminateAll",
        "supervisor/<str:supervisor_id>/reset",
        "resetToLatestAndBackfill",
        "share-group/config",
    }
    without |= {"datasources/<str:name>", "segments/<str:segment_id>"}  # Druid's: that one is marked used
    without |= {"<int:number>/acknowledge/", "<int:number>/test/"}
    without |= {"<str:username>/deactivate/", "<str:username>/activate/", "<str:username>/password-link/"}
    without |= {"<str:name>/test/", "<str:name>/restart/", "<uuid:draft_id>/records/"}
    without |= {"supervisors/<str:supervisor_id>/handoff/", "invitations/<str:name>/"}
    changing = {(m, r.pattern) for r in ROUTES for m in r.methods & {"POST", "PUT", "PATCH"}}
    assert {
        (m, p) for m, p in changing if not p.rstrip("/").endswith(tuple(w.rstrip("/") for w in without))
    } == WITH_BODY


@pytest.mark.parametrize("header", ["no-such-team", "beta", "a\x00b", "x" * 5000])
def test_a_wrong_team_is_refused(owner: Client, header: str) -> None:
    for path in ("/api/v1/tasks/", "/api/v1/supervisors/", "/druid/indexer/v1/task", "/druid/indexer/v1/supervisor"):
        answer = owner.post(path, SEED, content_type="application/json", headers={"X-Headgate-Team": header})
        check_problem(answer, path, (400,))


SPEC_FAULTS: list[dict[str, Any]] = [
    {"type": "kafka"},
    {"type": None},
    {"id": ""},
    {"id": "x" * 201},
    {"id": 5},
    {"id": "../../etc/passwd"},
    {"id": "a/b"},
    {"id": " "},
    {"context": []},
    {"dataSchema": None},
    {"ioConfig": "x"},
    {"tuningConfig": {"maxRowsInMemory": 0}},
    {"tuningConfig": {"maxRowsInMemory": 2**62, "maxBytesInMemory": -2}},
    {"spec": {}},
]


@pytest.mark.parametrize(
    "path",
    ["/api/v1/tasks/", "/api/v1/supervisors/", "/druid/indexer/v1/task", "/druid/indexer/v1/supervisor"],
)
def test_a_bad_spec_makes_nothing(owner: Client, path: str) -> None:
    for fault in SPEC_FAULTS:
        answer = owner.post(path, {**spec_for("fresh"), **fault}, content_type="application/json")
        check_problem(answer, path, (400,), str(fault))


def test_a_method_that_a_view_lacks_is_405(owner: Client, cast: Cast) -> None:
    for route in ROUTES:
        path = good_path(route, cast)
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} - route.methods:
            check_problem(owner.generic(method, path), path, (405,), method)


def test_an_odd_accept_header_is_no_reason_to_refuse(owner: Client) -> None:
    for accept in ("text/html", "application/xml", "", "*/*;q=nonsense", "\x00"):
        assert owner.get("/api/v1/teams/", headers={"Accept": accept}).status_code == 200
