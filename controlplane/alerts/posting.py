"""One message to one address of the web: judged by the address policy, within a time, and no further than there."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, urlsplit

from controlplane.connections import transport
from controlplane.connections.probe_report import Clock, Failed

TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 16 * 1024
LONGEST_RETRY_S = 6 * 3600
_RETRY_STATUSES = (408, 425, 429)


@dataclass(frozen=True)
class Outcome:
    """What came of a try."""

    ok: bool
    text: str
    permanent: bool = False  # the answer is no, and would be again
    retry_after_s: float | None = None  # what the receiver asks for


def post(url: str, body: bytes, headers: Mapping[str, str], within_s: float = TIMEOUT_S) -> Outcome:
    """POST JSON. No redirect is followed, and of the answer only its status is looked at."""
    parts, clock = urlsplit(url), Clock(within_s)
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    sock: socket.socket | None = None
    try:
        sock = transport.connect(host, transport.resolve(host, port, clock), port, clock)
        if secure:
            sock = transport.start_tls(sock, host, {}, clock)
        return _send_request(sock, parts, body, headers, clock)
    except Failed as failed:
        return Outcome(False, failed.message, permanent=failed.cause == "address")
    finally:
        if sock is not None:
            transport.close(sock)


def _send_request(
    sock: socket.socket, parts: SplitResult, body: bytes, headers: Mapping[str, str], clock: Clock
) -> Outcome:
    sock.settimeout(clock.seconds_left)
    # A server that sends a byte now and then is not waited for any longer.
    timer = threading.Timer(clock.seconds_left, _shut_down, [sock])
    timer.daemon = True
    timer.start()
    client = http.client.HTTPConnection(parts.hostname or "")
    client.sock = sock
    path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    defaults = {
        "Host": parts.netloc,
        "Content-Type": "application/json",
        "User-Agent": "Headgate",
        "Connection": "close",
    }
    try:
        client.request("POST", path, body=body, headers={**defaults, **headers})
        answer = client.getresponse()
        return outcome_of(answer.status, answer.reason or "", answer.getheader("Retry-After"), datetime.now(UTC))
    except TimeoutError:
        return Outcome(False, "It accepts the connection but does not answer in time.")
    except (OSError, http.client.HTTPException, ValueError) as error:
        late = clock.is_over
        text = "It does not answer in time." if late else f"It does not speak HTTP: {type(error).__name__}."
        return Outcome(False, text)
    finally:
        timer.cancel()


def _shut_down(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def outcome_of(status: int, reason: str, retry_after: str | None, now: datetime) -> Outcome:
    """What a status means."""
    text = f"It answered {status} {reason[:60]}".strip()
    if 200 <= status < 300:
        return Outcome(True, f"{text}.")
    if status >= 500 or status in _RETRY_STATUSES:
        return Outcome(False, f"{text}.", retry_after_s=_retry_after_s(retry_after, now))
    if 300 <= status < 400:
        return Outcome(False, f"{text}, a redirect. Use the address that it redirects to.", True)
    return Outcome(False, f"{text}. Headgate does not retry.", True)


def _retry_after_s(text: str | None, now: datetime) -> float | None:
    """What ``Retry-After`` asks for, bounded."""
    if not text:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(min(int(text[:9]), LONGEST_RETRY_S))
    try:
        time_ = parsedate_to_datetime(text)
        time_ = time_.replace(tzinfo=UTC) if time_.tzinfo is None else time_
        return min(max(0.0, (time_ - now).total_seconds()), LONGEST_RETRY_S)
    except (ValueError, OverflowError):
        return None


def unix_time() -> int:
    """Now, in seconds."""
    return int(time.time())
