"""One site over HTTP: the token, retries, and answers as JSON or errors."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2

from headgate.client.errors import ClientError, InvalidRequest, ServerFailed, TryLater, Unreachable, error_of
from headgate.version import VERSION

LONGEST_WAIT_S = 30.0
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)


@dataclass(frozen=True)
class Request:
    """What is sent, apart from the token."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    key: str = ""  # an ``Idempotency-Key``, with which the site does the same thing only once

    @property
    def repeatable(self) -> bool:
        """Whether the site may get it twice."""
        return self.method == "GET" or bool(self.key)


def wait_before_retry(request: Request, error: ClientError, sent: bool, attempt: int) -> float | None:
    """Seconds until the next attempt; None when the request must not be sent again. ``attempt``: from 1."""
    refused = isinstance(error, TryLater) and error.status == 429
    passing = isinstance(error, Unreachable | TryLater) or error.status in (502, 504)
    if not (refused or not sent or (passing and request.repeatable)):
        return None
    told = error.retry_after_s if isinstance(error, TryLater) else None
    return min(told if told is not None else 0.5 * 2 ** (attempt - 1), LONGEST_WAIT_S)


class Session:
    """Keeps connections open, and follows no redirect: the token goes to this site only."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: httpx2.BaseTransport | None = None,
        timeout_s: float = 60.0,
        attempts: int = 3,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(url)
        if parts.username is not None:
            raise ClientError("The site's address holds a user name. Leave it out: the token says who you are.")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ClientError(f"{url!r} is not a site's address. Write it like https://headgate.example.")
        token = token.strip()  # a file or a secret of CI often ends with a newline
        if not _is_header(token):
            raise ClientError("The token has characters that no token has.")
        self.url = url.rstrip("/")
        self._attempts, self._sleep = attempts, sleep
        headers = {"Accept": "application/json", "User-Agent": f"headgate/{VERSION}"}
        self._http = httpx2.Client(
            headers={**headers, "Authorization": f"Bearer {token}"} if token else headers,
            timeout=timeout_s,
            transport=transport,
            verify=httpx2.create_ssl_context(),  # SSL_CERT_FILE counts for every host
            trust_env=parts.hostname not in ("127.0.0.1", "localhost", "::1"),  # a proxy is for other hosts
            follow_redirects=False,
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, request: Request) -> httpx2.Response:
        """A successful answer. Raises ``ClientError``."""
        for attempt in range(1, self._attempts + 1):
            try:
                return self._send_once(request)
            except ClientError as error:
                sent = not isinstance(error.__cause__, _NOT_SENT)
                wait_s = wait_before_retry(request, error, sent, attempt)
                if wait_s is None or attempt == self._attempts:
                    raise
                self._sleep(wait_s)
        raise AssertionError("there is at least one attempt")

    def json(self, request: Request) -> Any:
        """The answer's document; None for an empty answer. Raises ``ClientError``."""
        return document_of(self.send(request))

    def pages(self, request: Request) -> Iterator[dict[str, Any]]:
        """All rows of a list, page after page. Raises ``ClientError``."""
        while True:
            page = self.json(request)
            if not isinstance(page, dict) or "results" not in page:
                raise ServerFailed(f"{self.url}{request.path} is not a list of Headgate.")
            yield from page["results"]
            if not page.get("next"):
                return
            # Only its path: behind a proxy the site may have another address for itself.
            following = urlsplit(page["next"])
            request = Request("GET", f"{following.path}?{following.query}")

    def _send_once(self, request: Request) -> httpx2.Response:
        headers = {**request.headers, **({"Idempotency-Key": request.key} if request.key else {})}
        query = {name: _text(value) for name, value in request.query.items() if value is not None}
        odd = [name for name, value in headers.items() if not _is_header(value)]
        if odd:
            raise InvalidRequest(f"{', '.join(odd)} has characters that no header may have.")
        try:
            answer = self._http.request(
                request.method,
                self.url + request.path,
                params=query or None,
                content=_json(request.body),
                headers={**headers, "Content-Type": "application/json"},
            )
        except httpx2.TransportError as error:
            raise Unreachable(f"{self.url} does not answer: {error or type(error).__name__}") from error
        except httpx2.HTTPError as error:
            raise ServerFailed(f"{self.url} gave an answer that can't be read: {error}") from error
        if answer.is_success:
            return answer
        if answer.is_redirect:
            target = answer.headers.get("Location", "")
            raise ServerFailed(f"{self.url} redirects to {target}. Use that site's address.", answer.status_code)
        raise error_of(answer.status_code, answer.content, answer.headers)


def document_of(answer: httpx2.Response) -> Any:
    """The JSON of a successful answer; None for an empty one. Raises ``ServerFailed``."""
    if not answer.content:
        return None
    try:
        return answer.json()
    except ValueError:
        raise ServerFailed(f"{answer.url} answers no JSON. Is it the address of a Headgate site?") from None


def _is_header(value: str) -> bool:
    return value.isascii() and (value.isprintable() or not value)


def _json(body: Any) -> bytes | None:
    """Raises ``InvalidRequest`` for what JSON does not have, such as infinity."""
    if body is None:
        return None
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"The request can't be written as JSON: {error}") from None


def _text(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
