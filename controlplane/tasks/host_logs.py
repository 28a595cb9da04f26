"""Logs of tasks that another host has launched: its worker is asked for them over Valkey.

1. Who reads puts an ask into the host's list, and waits two seconds for the answer under a key of its own.
2. A thread of each worker answers, however busy the worker's processes are. An ask names a task and a part of its log.
3. Asks and answers are small, and end by themselves after some seconds: a host that is gone is not asked later.
"""

from __future__ import annotations

import json
import logging
import uuid
from functools import cache
from typing import Any

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from controlplane.common.database import release_connections
from controlplane.common.errors import Unavailable
from controlplane.tasks import drivers, hosts, log_files

logger = logging.getLogger(__name__)
ANSWER_S = 2  # so long who reads waits
MOST_BYTES = 4 * 1024 * 1024  # of one answer
_KEPT_S = 5
_MOST_ASKS = 100
_ANSWERS = "headgate:host-answer:"


def read(host: str, task_id: str, offset: int, max_bytes: int) -> tuple[int, bytes]:
    """``log_files.read`` on the host that launched the task, or of its driver's log on the Spark cluster.

    Raises ``Unavailable`` when it does not answer.
    """
    on_cluster = drivers.read_log(task_id, offset, max_bytes)
    if on_cluster is not None:
        return on_cluster
    if hosts.shares_folder(host):
        return log_files.read(task_id, offset, max_bytes)
    if host in hosts.gone():
        raise _silent(host)
    release_connections()
    key = f"{_ANSWERS}{uuid.uuid4().hex}"
    try:
        _ask(host, {"answer": key, "task": task_id, "offset": offset, "bytes": max_bytes})
        answer = _client().blpop([key], timeout=ANSWER_S)
    except redis.RedisError as error:
        raise Unavailable(f"The task's log is on host {host}, and Valkey does not answer: {error}.") from error
    if answer is None:
        raise _silent(host)
    size, _, content = answer[1].partition(b"\n")
    return int(size), content


def append(host: str, task_id: str, line: str) -> None:
    """Add a line to the log, wherever it is. Raises ``OSError`` and Valkey's errors."""
    if hosts.shares_folder(host):
        log_files.append(task_id, line)
    else:
        _ask(host, {"task": task_id, "line": line})


def answer_next(client: Any) -> None:
    """Wait a second for an ask to this host, and answer it. Raises Valkey's errors."""
    asked = client.blpop([_asks_of(settings.HOST_NAME)], timeout=1)
    if asked is None:
        return
    try:
        ask = json.loads(asked[1])
        _answer(client, ask)
    except (ValueError, TypeError, KeyError, OSError) as error:
        logger.warning("an ask for a task's log can't be answered: %r", error)


def _answer(client: Any, ask: dict[str, Any]) -> None:
    if "line" in ask:
        log_files.append(ask["task"], ask["line"])
    elif ask["answer"].startswith(_ANSWERS):
        size, content = log_files.read(ask["task"], ask["offset"], min(ask["bytes"], MOST_BYTES))
        _push(client, ask["answer"], b"%d\n%b" % (size, content))


def _ask(host: str, ask: dict[str, Any]) -> None:
    _push(_client(), _asks_of(host), json.dumps(ask).encode())


def _push(client: Any, key: str, value: bytes) -> None:
    with client.pipeline() as steps:
        steps.rpush(key, value).ltrim(key, -_MOST_ASKS, -1).expire(key, _KEPT_S)
        steps.execute()


def _asks_of(host: str) -> str:
    return f"headgate:host-asks:{host}"


def _silent(host: str) -> Unavailable:
    return Unavailable(
        f"The task's log is on host {host}, which does not answer. It can be read when a worker runs there."
    )


def new_client() -> Any:
    """A connection to Valkey that fails soon. Raises nothing: it is opened by its first use."""
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=ANSWER_S + 2, socket_connect_timeout=ANSWER_S, retry=Retry(NoBackoff(), 0)
    )


_client = cache(new_client)
