"""A stand-in for Kubernetes' API server: it keeps what it is sent, answers as the real one does, and starts nothing.

It knows the requests that Headgate and Spark's Kubernetes client make, over TLS and with a token, and records them.
"""

from __future__ import annotations

import json
import ssl
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.certificates import authority

TOKEN = "the-account's-token"
NAMESPACE = "streams"
KINDS = {"pods": "Pod", "secrets": "Secret", "services": "Service", "configmaps": "ConfigMap"}
KINDS |= {"persistentvolumeclaims": "PersistentVolumeClaim", "networkpolicies": "NetworkPolicy"}
VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


class KubernetesApi(ThreadingHTTPServer):
    """``objects``: by kind and name, in ``NAMESPACE``; ``asked``: each request as a role names it."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.asked: list[tuple[str, str]] = []
        self.logs: dict[str, bytes] = {}  # by pod
        self.forbidden: set[tuple[str, str]] = set()
        self.queries: list[dict[str, str]] = []
        self.account = folder / "account"
        self._speak_tls()
        self.master = f"k8s://https://127.0.0.1:{self.server_port}"

    def _speak_tls(self) -> None:
        """``account``: the folder of files that a pod of the cluster would have."""
        self.account.mkdir()
        signer = authority()
        server, key = signer.signs("127.0.0.1"), self.account.with_name("key.pem")
        key.write_text(server.pem + server.key_pem())
        (self.account / "ca.crt").write_text(signer.pem)
        (self.account / "token").write_text(TOKEN)
        (self.account / "namespace").write_text(NAMESPACE)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(key)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [found for (of_kind, _), found in self.objects.items() if of_kind == kind]

    def put(self, kind: str, document: dict[str, Any]) -> dict[str, Any]:
        """Keep it as the server would: with what it adds."""
        metadata = document["metadata"]
        metadata.setdefault("uid", str(uuid.uuid4()))
        metadata.setdefault("creationTimestamp", "2026-11-29T12:00:00Z")
        metadata.update(namespace=NAMESPACE, resourceVersion="7")
        if kind == "pods":
            document.setdefault("status", {"phase": "Pending"})
        self.objects[kind, metadata["name"]] = document
        return document


class _Handler(BaseHTTPRequestHandler):
    server: KubernetesApi
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        kind, name, part = self._place()
        query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
        verb = "get" if name else "watch" if query.get("watch") == "true" else "list"
        if not self._may(verb, f"{kind}/{part}" if part else kind):
            return
        if verb == "list":
            self._list(kind, query)
        elif verb == "watch":
            self._answer(200, b"")
        elif (found := self.server.objects.get((kind, name))) is None:
            self._refuse(404, "NotFound", f'{kind} "{name}" not found')
        elif part == "log":
            self._log(found, query)
        else:
            self._send(found)

    def _log(self, pod: Mapping[str, Any], query: Mapping[str, str]) -> None:
        named = query.get("container")
        if named not in [container["name"] for container in pod["spec"]["containers"]]:
            self._refuse(400, "BadRequest", f"container {named} is not valid for pod {pod['metadata']['name']}")
            return
        self._answer(200, self.server.logs.get(pod["metadata"]["name"], b""), "text/plain")

    def _list(self, kind: str, query: dict[str, str]) -> None:
        self.server.queries.append(query)
        found = [o for o in self.server.all(kind) if _is_selected(o, query)]
        start, limit = int(query.get("continue", 0)), int(query.get("limit", len(found) or 1))
        metadata = {"resourceVersion": "7"}
        if start + limit < len(found):
            metadata["continue"] = str(start + limit)
        items = found[start : start + limit]
        self._send({"kind": f"{KINDS[kind]}List", "apiVersion": "v1", "metadata": metadata, "items": items})

    def do_POST(self) -> None:
        kind, _, _ = self._place()
        document = self._read()
        name = document["metadata"]["name"]
        if not self._may("create", kind):
            return
        if (kind, name) in self.server.objects:
            self._refuse(409, "AlreadyExists", f'{kind} "{name}" already exists')
        else:
            self._send(self.server.put(kind, document), 201)

    def do_PATCH(self) -> None:
        """Server-side apply, which may create it."""
        kind, _, _ = self._place()
        document = self._read()
        if self._may("patch", kind):
            self._send(self.server.put(kind, document))

    def do_DELETE(self) -> None:
        kind, name, _ = self._place()
        self._read()
        if not self._may("delete" if name else "deletecollection", kind):
            return
        if (found := self.server.objects.pop((kind, name), None)) is None:
            self._refuse(404, "NotFound", f'{kind} "{name}" not found')
        else:
            self._send(found)

    def _place(self) -> tuple[str, str, str]:
        """Kind, name and subresource; the last two may be empty."""
        group, _, rest = urlsplit(self.path).path.partition(f"/namespaces/{NAMESPACE}/")
        assert group in ("/api/v1", "/apis/networking.k8s.io/v1"), self.path
        kind, name, part = [*rest.split("/"), "", ""][:3]
        assert kind in KINDS, self.path
        return kind, name, part

    def _may(self, verb: str, resource: str) -> bool:
        self.server.asked.append((verb, resource))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._refuse(401, "Unauthorized", "Unauthorized")
        elif (verb, resource) in self.server.forbidden:
            self._refuse(403, "Forbidden", f'{resource} is forbidden: User "headgate" cannot {verb} resource')
        else:
            return True
        return False

    def _read(self) -> dict[str, Any]:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        document: dict[str, Any] = json.loads(content) if content else {}
        return document

    def _refuse(self, code: int, reason: str, message: str) -> None:
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        self._send({**status, "message": message, "reason": reason, "code": code}, code)

    def _send(self, document: Mapping[str, Any], status: int = 200) -> None:
        self._answer(status, json.dumps(document).encode())

    def _answer(self, status: int, content: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None: ...


def _is_selected(found: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    labels = found["metadata"].get("labels", {})
    for wanted in filter(None, query.get("labelSelector", "").split(",")):
        name, is_equal, value = wanted.partition("=")
        if name not in labels or (is_equal and labels[name] != value):
            return False
    return query.get("fieldSelector") != "spec.nodeName!=" or bool(found["spec"].get("nodeName"))


@contextmanager
def kubernetes_api(folder: Path) -> Iterator[KubernetesApi]:
    """One that runs. ``folder`` is its own."""
    server = KubernetesApi(folder)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
