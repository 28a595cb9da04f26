"""A schema registry's client for the decoder: two questions of Confluent's REST API.

Written for hostile answers: the registry's name is resolved once for a request, its addresses are checked, and one of
them is connected to; no redirect is followed, no proxy asked; time and size are bounded, whatever trickles in.
"""

from __future__ import annotations

import json
import socket
import time
from base64 import b64encode
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, urlsplit

from ingestion.decode.errors import RegistryUnreachable
from ingestion.decode.formats.registry import RegisteredSchema, SchemaRefused, UnknownSchema
from ingestion.specs.formats.input_format import RegistryDecoder
from ingestion.specs.kafka.addresses import AddressPolicy, AddressProblem
from ingestion.task.http_connections import open_http, port_of

# With four addresses and a schema's references still less than what a child process may take for a batch.
TIMEOUT_S = 3.0
MAX_BYTES = 8 * 1024 * 1024
_DENIED = (401, 403)
_UNAVAILABLE = (429, 502, 503, 504)  # too busy, or what stands before the registry does not reach it
_NOT_FOUND = range(40401, 40500)  # subject, version, schema, and those that were deleted
_TYPES_PATH = "/schemas/types"  # what every registry answers, whatever it holds
_MAX_REFERENCES = 100
_ACCEPTED = "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json"


class ConfluentRegistry:
    """See ``decode.formats.registry.Registry``. ``spec``: its secrets in it; ``policy``: where it may connect to."""

    def __init__(self, spec: RegistryDecoder, policy: AddressPolicy) -> None:
        self._addresses = spec.addresses
        self._policy = policy
        self._types_path = _TYPES_PATH
        self._headers = {"Accept": _ACCEPTED, **_auth_headers(spec.config), **_texts(spec.headers)}

    def schema(self, schema_id: int, kind: str) -> RegisteredSchema:
        query = "?format=serialized" if kind == "PROTOBUF" else ""
        schema = self._request(f"/schemas/ids/{schema_id}{query}")
        references: dict[str, str] = {}
        self._collect(schema, query, references)
        return RegisteredSchema(
            _text(schema, "schemaType") or "AVRO", _text(schema, "schema"), list(references.items())
        )

    def _collect(self, schema: Mapping[str, Any], query: str, references: dict[str, str]) -> None:
        """Everything that the schema refers to, each after what it refers to itself."""
        for reference in schema.get("references") or []:
            name, subject, version = (str(reference[part]) for part in ("name", "subject", "version"))
            if name in references or len(references) >= _MAX_REFERENCES:
                continue
            path = f"/subjects/{quote(subject, safe='')}/versions/{quote(version, safe='')}{query}"
            inner = self._request(path)
            self._collect(inner, query, references)
            references[name] = _text(inner, "schema")

    def _request(self, path: str) -> dict[str, Any]:
        """The first good answer of the addresses. Raises ``UnknownSchema``, ``RegistryUnreachable``."""
        problems = []
        for address in self._addresses:
            try:
                return self._answer(address, path)
            except RegistryUnreachable as error:
                problems.append(error)
        # One that is only away may have taken the login, or given the schema.
        away = (p for p in problems if not p.permanent and not isinstance(p, SchemaRefused))
        raise next(away, next((p for p in problems if not p.permanent), problems[0]))

    def _answer(self, address: str, path: str) -> dict[str, Any]:
        try:
            status, body = _fetch(address, path, self._headers, self._policy)
            answer = json.loads(body) if status in (200, 404) else None
        except AddressProblem as refused:
            raise RegistryUnreachable(str(refused)) from None
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            raise RegistryUnreachable(f"{address} does not answer ({type(error).__name__})") from None
        if status == 200 and isinstance(answer, dict):
            self._types_path = path
            return answer
        code = answer.get("error_code") if isinstance(answer, dict) else None
        if status == 404 and code in _NOT_FOUND:
            raise UnknownSchema(address)
        message = f"{address} answers with status {status}"
        if status in _DENIED or status in _UNAVAILABLE or not self._answers_otherwise(address):
            raise RegistryUnreachable(message, permanent=status in _DENIED)
        if code == 404:  # Apicurio's code, and that of whatever is no registry
            raise UnknownSchema(address)
        raise SchemaRefused(message)

    def _answers_otherwise(self, address: str) -> bool:
        """Whether what is asked there for something else is given: what it has given before, if anything."""
        try:
            return _fetch(address, self._types_path, self._headers, self._policy)[0] == 200
        except (AddressProblem, OSError, HTTPException, ValueError):
            return False


def _fetch(address: str, path: str, headers: Mapping[str, str], policy: AddressPolicy) -> tuple[int, bytes]:
    """Status and body. Raises ``AddressProblem``, ``OSError``, ``HTTPException``, ``ValueError``."""
    end = time.monotonic() + TIMEOUT_S
    parts = urlsplit(address)
    port = port_of(parts)
    line = _connect(policy.resolve(parts.hostname or "", port), port, end)
    with open_http(line, parts, end) as connection:
        connection.request("GET", parts.path.rstrip("/") + path, headers={**headers, "Accept-Encoding": "identity"})
        response = connection.getresponse()
        body = response.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise ValueError("the answer is too large")
    return response.status, body


def _connect(addresses: list[str], port: int, end: float) -> socket.socket:
    problem = OSError("no address")
    for address in addresses:
        try:
            return socket.create_connection((address, port), timeout=max(0.1, end - time.monotonic()))
        except OSError as error:
            problem = error
    raise problem


def _auth_headers(config: Mapping[str, Any]) -> dict[str, str]:
    user = _texts(config).get("basic.auth.user.info")
    token = _texts(config).get("bearer.auth.token")
    if user is not None:
        return {"Authorization": f"Basic {b64encode(user.encode()).decode()}"}
    return {"Authorization": f"Bearer {token}"} if token is not None else {}


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """The values; an assignment has no references."""
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    return value if isinstance(value, str) else ""
