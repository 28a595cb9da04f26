"""Tests send requests to the sampler over REST, at our own address or at Druid's."""

from __future__ import annotations

from typing import Any

from django.test import Client

PATHS = ("/api/v1/sampler/", "/druid/indexer/v1/sampler")


def pasted(*lines: str, schema: Any = None, **io_config: Any) -> dict[str, Any]:
    """A request with these records, read as JSON unless told otherwise."""
    io_config = {
        "inputSource": {"type": "inline", "data": "\n".join(lines)},
        "inputFormat": {"type": "json"},
    } | io_config
    return {"type": "inline", "spec": {"dataSchema": schema or {}, "ioConfig": io_config}}


def ask(client: Client, body: Any, path: str = PATHS[0]) -> Any:
    return client.post(path, body, content_type="application/json")


def sample(client: Client, body: Any, path: str = PATHS[0]) -> Any:
    answer = ask(client, body, path)
    assert answer.status_code == 200, answer.content
    return answer.json()
