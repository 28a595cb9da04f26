"""The demo speaks to Headgate as any client does: over REST, with a token."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import httpx2

from controlplane.embedded.apps import LOGIN_TEAM, LOGIN_USER
from controlplane.embedded.errors import DemoFailed

TIMEOUT_S = 30.0
PAGE = 500

Answer = dict[str, Any]


class Client:
    """Logged in as the demo's user, for its team."""

    def __init__(self, url: str, password: str) -> None:
        self._http = httpx2.Client(base_url=url, timeout=TIMEOUT_S, trust_env=False)
        answer = self._ask("POST", "/api/v1/auth/login/", auth=(LOGIN_USER, password))
        self._http.headers.update({"Authorization": f"Bearer {answer['token']}", "X-Headgate-Team": LOGIN_TEAM})

    def submit_supervisor(self, spec: Answer) -> str:
        return str(self._ask("POST", "/druid/indexer/v1/supervisor", json=spec)["id"])

    def submit_task(self, spec: Answer) -> str:
        return str(self._ask("POST", "/druid/indexer/v1/task", json=spec)["task"])

    def task_status(self, task: str) -> Answer:
        """`status` is RUNNING, SUCCESS or FAILED, with `errorMsg`."""
        status = self._ask("GET", f"/druid/indexer/v1/task/{task}/status")["status"]
        return dict(status)

    def datasource(self, name: str) -> Answer:
        """Rows, segments and the totals of all its tasks; empty when there is no such datasource yet."""
        return self._ask("GET", f"/api/v1/datasources/{name}/", missing_is_empty=True)

    def segments(self, name: str) -> Iterator[Answer]:
        """Every segment of a datasource that is in use: `rows`, and the `path` of its file."""
        address: str | None = f"/api/v1/datasources/{name}/segments/?limit={PAGE}"
        while address:
            page = self._ask("GET", address)
            yield from page["results"]
            address = page["next"]

    def _ask(self, method: str, path: str, *, missing_is_empty: bool = False, **parts: Any) -> Answer:
        try:
            response = self._http.request(method, path, **parts)
        except httpx2.HTTPError as error:
            raise DemoFailed(f"{method} {path} got no answer: {error}") from error
        if response.status_code == 404 and missing_is_empty:
            return {}
        if response.status_code >= 400:
            raise DemoFailed(f"{method} {path} was answered {response.status_code}: {response.text[:2000]}")
        return dict(response.json())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()
