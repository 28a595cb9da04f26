"""The control plane over HTTP."""

from __future__ import annotations

import time
from typing import TypeVar

import httpx2
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from ingestion.client.errors import Invalid, PublishRefused, TaskOver, Unacceptable, Unreachable
from ingestion.specs.messages.column_ids import ColumnsAnswer, ColumnsRequest
from ingestion.specs.messages.protocol import (
    AbandonAnswer,
    AbandonRequest,
    Assignment,
    ClaimAnswer,
    ClaimRequest,
    EndAnswer,
    EndRequest,
    HeartbeatAnswer,
    HeartbeatRequest,
    PublishAnswer,
    PublishRequest,
    Refusal,
    SettledAnswer,
    SettledRequest,
    StartAnswer,
    StartRequest,
)
from ingestion.specs.messages.replays import KeptRecord, KeptRecords, ProducedAnswer, ProducedRequest

AnswerModel = TypeVar("AnswerModel", bound=BaseModel)
TIMEOUT_S = 10.0
ASSIGNMENT_RETRY_S = 60.0
RETRY_PAUSE_S = 0.5
UNANSWERED_LIMIT_S = 600.0  # an application whose heartbeats nobody answers for so long is over


class HttpClient:
    """Thread-safe; keeps connections open. ``token`` is sent in a header and never logged.

    ``base``: where the addresses of whoever speaks begin.
    """

    def __init__(self, url: str, base: str, token: str, timeout_s: float = TIMEOUT_S) -> None:
        self._base = base
        self._http = httpx2.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            timeout=timeout_s,
            verify=httpx2.create_ssl_context(),  # SSL_CERT_FILE counts, proxies do not
            trust_env=False,
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(self, method: str, path: str, body: BaseModel | None, answer: type[AnswerModel]) -> AnswerModel:
        """Send a message. Raises what ``ingestion.client.errors`` names."""
        try:
            content = body.model_dump_json().encode() if body is not None else None
        except PydanticSerializationError as error:
            raise Unacceptable(f"It can't be written as JSON: {error}") from None
        try:
            response = self._http.request(method, self._base + path, content=content)
        except httpx2.TransportError as error:
            raise Unreachable(f"{type(error).__name__}: {error}") from None
        if response.status_code == 200:
            return answer.model_validate_json(response.content)
        raise _to_error(response, path)


class HttpControlPlane(HttpClient):
    """What a task's application says, and hears.

    ``alone_s``: after so many seconds without an answer to a heartbeat, a heartbeat raises ``TaskOver``.
    """

    def __init__(
        self, url: str, task_id: str, token: str, timeout_s: float = TIMEOUT_S, alone_s: float = UNANSWERED_LIMIT_S
    ) -> None:
        super().__init__(url, f"/internal/tasks/{task_id}", token, timeout_s)
        self._unanswered_limit_s = alone_s
        self._answered_at = time.monotonic()

    def assignment(self) -> Assignment:
        """What to do. Asks for a minute while the control plane does not answer: its restart fails no task."""
        give_up = time.monotonic() + ASSIGNMENT_RETRY_S
        while True:
            try:
                return self.request("GET", "/assignment", None, Assignment)
            except Unreachable:
                if time.monotonic() > give_up:
                    raise
            time.sleep(RETRY_PAUSE_S)

    def start(self, number: int, request: StartRequest) -> StartAnswer:
        return self.request("POST", f"/indexers/{number}/start", request, StartAnswer)

    def claim(self, number: int, request: ClaimRequest) -> ClaimAnswer:
        return self.request("POST", f"/indexers/{number}/claim", request, ClaimAnswer)

    def settled(self, number: int, request: SettledRequest) -> SettledAnswer:
        return self.request("POST", f"/indexers/{number}/settled", request, SettledAnswer)

    def columns(self, request: ColumnsRequest) -> ColumnsAnswer:
        return self.request("POST", "/columns", request, ColumnsAnswer)

    def publish(self, number: int, request: PublishRequest) -> PublishAnswer:
        return self.request("POST", f"/indexers/{number}/publish", request, PublishAnswer)

    def abandon(self, number: int, request: AbandonRequest) -> AbandonAnswer:
        return self.request("POST", f"/indexers/{number}/abandon", request, AbandonAnswer)

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatAnswer:
        try:
            answer = self.request("POST", "/heartbeat", request, HeartbeatAnswer)
        except Unreachable as error:
            silence = time.monotonic() - self._answered_at
            if silence > self._unanswered_limit_s:
                raise TaskOver(f"the control plane has not answered for {silence:.0f} s: {error}") from None
            raise
        self._answered_at = time.monotonic()
        return answer

    def end(self, request: EndRequest) -> None:
        self.request("POST", "/end", request, EndAnswer)

    def quarantined(self, after: int) -> list[KeptRecord]:
        """Of a replay: some of the records it holds, with numbers above ``after``; none when there are no more."""
        return self.request("GET", f"/quarantined?after={after}", None, KeptRecords).records

    def produced(self, request: ProducedRequest) -> None:
        """Of a replay: the broker has confirmed these. Sent again, it changes nothing."""
        self.request("POST", "/produced", request, ProducedAnswer)


def _to_error(response: httpx2.Response, path: str) -> Exception:
    status = response.status_code
    if status >= 500 or status in (408, 429):
        return Unreachable(f"{path}: status {status}")
    problem = response.headers.get("Content-Type", "").startswith("application/problem+json")
    if status == 409 and not problem:
        return PublishRefused(Refusal.model_validate_json(response.content))
    # What somebody else on the way says, a proxy for example, is not about what a message says, but for its size.
    if status == 413 or (status == 400 and problem):
        return Unacceptable(
            _error_detail(response)
            if problem
            else "The message is too large for a proxy between the task and the control plane."
        )
    detail = f"{path}: status {status}: {response.text[:500]}"
    return TaskOver(detail) if status in (401, 404, 410) else Invalid(detail)


def _error_detail(response: httpx2.Response) -> str:
    problem = response.json()
    faults = [f"{fault['pointer']}: {fault['detail']}" for fault in problem.get("errors", [])[:3]]
    return " ".join([str(problem.get("detail", "")), *faults])[:1000]
