"""Google's and Azure's object storages on a loopback port, as far as pyarrow's file systems ask them when they read.

Written after the vendors' references of the JSON API and the Blob service: lists, an object's state, and ranges of it.
Each runs in a process of its own (``python -m tests.support.object_servers KIND FOLDER``): pyarrow waits for Google's
answers without letting other threads go on. Objects are the files of a folder: ``FOLDER/BUCKET/KEY``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE = 2  # objects of a list at once
_WHEN = "Sun, 01 Jun 2025 00:00:00 GMT"
Query = dict[str, str]
Answer = tuple[int, dict[str, str], bytes]


@dataclass(frozen=True)
class ObjectServer:
    """One that runs. ``folder``: what it holds."""

    kind: str
    port: int
    folder: Path

    def location(self, bucket: str, folder: str) -> str:
        """How a site names it."""
        here = f"127.0.0.1%3A{self.port}"
        if self.kind == "google":
            return f"gs://anonymous@{bucket}/{folder}?endpoint_override={here}&scheme=http"
        authorities = f"blob_storage_authority={here}&dfs_storage_authority={here}"
        plain = f"enable_tls=false&credential_kind=anonymous&{authorities}"
        return f"abfs://account@127.0.0.1:{self.port}/{bucket}/{folder}?{plain}"

    def put(self, bucket: str, key: str, content: str) -> None:
        path = self.folder / bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


@contextmanager
def object_server(kind: str, folder: Path) -> Iterator[ObjectServer]:
    """``kind``: google or azure."""
    command = [sys.executable, "-m", "tests.support.object_servers", kind, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield ObjectServer(kind, int(process.stdout.readline()), folder)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class Held:
    """The objects of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def content(self, bucket: str, key: str) -> bytes | None:
        path = self._folder / bucket / key
        return path.read_bytes() if key and path.is_file() else None

    def listed(self, bucket: str, prefix: str, delimiter: str, after: str) -> tuple[list[str], str]:
        """A page of keys, and of prefixes that end with the delimiter, and where to go on; empty at the end."""
        root = self._folder / bucket
        keys = {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}
        found = sorted({_up_to(k, prefix, delimiter) for k in keys if k.startswith(prefix)})
        some = [k for k in found if k > after]
        return some[:PAGE], some[PAGE - 1] if len(some) > PAGE else ""


def _up_to(key: str, prefix: str, delimiter: str) -> str:
    rest = key[len(prefix) :]
    return prefix + rest.partition(delimiter)[0] + delimiter if delimiter and delimiter in rest else key


def google(held: Held, path: str, query: Query, wanted: str | None) -> Answer:
    """``/storage/v1/b/BUCKET/o`` and ``/storage/v1/b/BUCKET/o/OBJECT``, the latter with ``alt=media`` its content."""
    place = re.fullmatch(r"/storage/v1/b/([^/]+)/o(?:/(.+))?", path)
    if not place:
        return _as_json(404, {"error": {"code": 404, "message": "not found"}})
    bucket, key = place[1], unquote(place[2] or "")
    if not key:
        return _as_json(200, _googles_list(held, bucket, query))
    content = held.content(bucket, key)
    if content is None or query.get("generation", _generation(content)) != _generation(content):
        return _as_json(404, {"error": {"code": 404, "message": "no such object"}})
    return _ranged(content, wanted) if query.get("alt") == "media" else _as_json(200, _described(bucket, key, content))


def _googles_list(held: Held, bucket: str, query: Query) -> dict[str, Any]:
    delimiter = query.get("delimiter", "")
    keys, after = held.listed(bucket, query.get("prefix", ""), delimiter, query.get("pageToken", ""))
    items = [_described(bucket, k, c) for k in keys if (c := held.content(bucket, k)) is not None]
    prefixes = [k for k in keys if delimiter and k.endswith(delimiter)]
    return {"kind": "storage#objects", "items": items, "prefixes": prefixes} | (
        {"nextPageToken": after} if after else {}
    )


def _described(bucket: str, key: str, content: bytes) -> dict[str, str]:
    when = "2025-06-01T00:00:00Z"
    state = {"size": str(len(content)), "generation": _generation(content), "metageneration": "1"}
    times = {"updated": when, "timeCreated": when}
    return {"kind": "storage#object", "id": f"{bucket}/{key}", "bucket": bucket, "name": key, **state, **times}


def _generation(content: bytes) -> str:
    return str(1 + len(content))


def _as_json(status: int, content: dict[str, Any]) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(content).encode()


def azure(held: Held, path: str, query: Query, wanted: str | None) -> Answer:
    """``/ACCOUNT/CONTAINER?comp=list`` and ``/ACCOUNT/CONTAINER/BLOB``, without a hierarchical namespace."""
    _, _, container, *rest = unquote(path).split("/", 3)
    common = {"x-ms-request-id": "1", "x-ms-version": "2020-02-10", "Last-Modified": _WHEN, "ETag": '"0x1"'}
    if query.get("action") == "getAccessControl":
        return 400, {**common, "x-ms-error-code": "HierarchicalNamespaceNotEnabled"}, b""
    if query.get("comp") == "list":
        return 200, {**common, "Content-Type": "application/xml"}, _azures_list(held, container, query)
    content = held.content(container, "".join(rest))
    if content is None:
        told = b"<?xml version='1.0'?><Error><Code>BlobNotFound</Code><Message>no</Message></Error>"
        return 404, {**common, "x-ms-error-code": "BlobNotFound", "Content-Type": "application/xml"}, told
    status, more, body = _ranged(content, wanted)
    about = {"x-ms-blob-type": "BlockBlob", "x-ms-server-encrypted": "true", "x-ms-creation-time": _WHEN}
    return status, {**common, **about, **more}, body


def _azures_list(held: Held, container: str, query: Query) -> bytes:
    delimiter = query.get("delimiter", "")
    keys, after = held.listed(container, query.get("prefix", ""), delimiter, query.get("marker", ""))
    found = "".join(_azures_blob(k, held.content(container, k)) for k in keys)
    return (
        '<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://here/" '
        f'ContainerName="{container}"><Prefix>{escape(query.get("prefix", ""))}</Prefix><Blobs>{found}</Blobs>'
        f"<NextMarker>{escape(after)}</NextMarker></EnumerationResults>"
    ).encode()


def _azures_blob(key: str, content: bytes | None) -> str:
    if content is None:
        return f"<BlobPrefix><Name>{escape(key)}</Name></BlobPrefix>"
    times = f"<Creation-Time>{_WHEN}</Creation-Time><Last-Modified>{_WHEN}</Last-Modified><Etag>0x1</Etag>"
    size = f"<Content-Length>{len(content)}</Content-Length>"
    kind = "<BlobType>BlockBlob</BlobType><ServerEncrypted>true</ServerEncrypted>"
    return f"<Blob><Name>{escape(key)}</Name><Properties>{times}{size}{kind}</Properties></Blob>"


def _ranged(content: bytes, wanted: str | None) -> Answer:
    kind = {"Content-Type": "application/octet-stream"}
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted or "")
    if not found:
        return 200, kind, content
    start, last = int(found[1]), int(found[2] or len(content) - 1)
    part = content[start : last + 1]
    if not part:
        return 416, kind, b""
    return 206, {**kind, "Content-Range": f"bytes {start}-{start + len(part) - 1}/{len(content)}"}, part


def _handler(answer: Callable[[Held, str, Query, str | None], Answer], held: Held) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            wanted = self.headers.get("x-ms-range") or self.headers.get("Range")
            status, headers, body = answer(held, parts.path, query, wanted)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None: ...

    return Handler


def main(kind: str, folder: str) -> None:
    answer = {"google": google, "azure": azure}[kind]
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(answer, Held(Path(folder))))
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
