"""Does a connection to a schema registry work, and if not, why? As ``probe`` does for Kafka."""

from __future__ import annotations

import base64
import http.client
import json
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from controlplane.connections import transport
from controlplane.connections.client_properties import PropertyProblem, resolve_registry
from controlplane.connections.probe import Steps
from controlplane.connections.probe_report import Clock, ConnectionReport, Failed

MAX_BYTES = 1024 * 1024


def try_registry(properties: Mapping[str, Any]) -> ConnectionReport:
    """Of a registry by its properties with their secrets, not yet resolved: of the first address that answers."""
    return Steps().report(lambda steps: _test_registry(steps, properties))


def _test_registry(steps: Steps, properties: Mapping[str, Any]) -> str:
    headers = steps.run("Properties", lambda: _headers(properties))
    failure: Failed | None = None
    for address in properties.get("urls") or [properties["url"]]:
        try:
            count = _test_address(steps, address, headers)
        except Failed as failed:
            failure = failure or failed
            continue
        remark = "" if failure is None else f"One of the addresses does not work: {failure.message} "
        return remark + ("" if count else "The registry has no subjects yet.")
    raise failure or Failed("properties", "There is no address.", "Set url.")


def _headers(properties: Mapping[str, Any]) -> dict[str, str]:
    try:
        config = resolve_registry(properties.get("config", {}))
        headers = resolve_registry(properties.get("headers", {}))
    except PropertyProblem as problem:
        raise Failed("properties", f"{problem}.", "Correct this property.") from None
    if "basic.auth.user.info" in config:
        login = base64.b64encode(config["basic.auth.user.info"].encode()).decode()
        return {"Authorization": f"Basic {login}", **headers}
    if "bearer.auth.token" in config:
        return {"Authorization": f"Bearer {config['bearer.auth.token']}", **headers}
    return headers


def _test_address(steps: Steps, address: str, headers: Mapping[str, str]) -> int:
    """How many subjects it tells. Raises ``Failed``."""
    parts, clock = urlsplit(address), steps.clock
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    addresses = steps.run(f"DNS {host}", lambda: transport.resolve(host, port, clock), ", ".join)
    sock = steps.run(f"TCP {host}:{port}", lambda: transport.connect(host, addresses, port, clock))
    try:
        if secure:
            plain = sock
            sock = steps.run(f"TLS {host}:{port}", lambda: transport.start_tls(plain, host, {}, clock))
        path = f"{parts.path.rstrip('/')}/subjects"
        return steps.run(
            f"GET {path}", lambda: _count_subjects(sock, parts.netloc, path, headers, clock), _count_detail
        )
    finally:
        transport.close(sock)


def _count_detail(count: int) -> str:
    return f"{count} subjects"


def _count_subjects(sock: socket.socket, host: str, path: str, headers: Mapping[str, str], clock: Clock) -> int:
    sock.settimeout(clock.cap(4.0))
    client = http.client.HTTPConnection(host)
    client.sock = sock
    try:
        client.request("GET", path, headers={"Accept": "application/json", **headers})
        answer = client.getresponse()
        status, body = answer.status, answer.read(MAX_BYTES)
    except TimeoutError:
        raise Failed("protocol", f"{host} accepts the connection but sends no answer.", "Check the port.") from None
    except (OSError, http.client.HTTPException):
        advice = "Check the port, and whether it requires https."
        raise Failed("protocol", f"{host} does not speak HTTP on this port.", advice) from None
    return _parse_count(host, status, body)


def _parse_count(host: str, status: int, body: bytes) -> int:
    if status == 401:
        advice = "Enter basic.auth.user.info (or bearer.auth.token) again."
        raise Failed("login", f"{host} refuses the login.", advice)
    if status == 403:
        advice = "Grant this login the right to read subjects and schemas."
        raise Failed("authorisation", f"{host} does not let this login read subjects.", advice)
    if 300 <= status < 400:
        raise Failed(
            "protocol", f"{host} redirects to another address ({status}).", "Use the address that it redirects to."
        )
    try:
        subjects = json.loads(body) if status == 200 else None
    except ValueError:
        subjects = None
    if not isinstance(subjects, list):
        message = f"{host} answers {status}, but not like a schema registry."
        raise Failed("protocol", message, "Check the address and its path.")
    return len(subjects)
