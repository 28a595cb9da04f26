"""What the control plane's queue may hold: plain values for the tasks that there are."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import kombu
import pytest
from redis import Redis

from tests.support.house import House
from tests.support.waiting import wait_for

WATCH = "controlplane.tasks.tasks.watch"


class Bomb:
    """Touches a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._file,)


def send(house: House, name: str, arguments: Any, serializer: str) -> str:
    """A message as Celery would send it; returns its id."""
    message = uuid.uuid4().hex
    headers = {"lang": "py", "task": name, "id": message, "root_id": message, "retries": 0}
    with kombu.Connection(house.valkey.url) as connection:
        producer = connection.Producer(serializer=serializer)
        producer.publish((arguments, {}, {}), headers=headers, correlation_id=message, routing_key="celery")
    return message


def log_says(house: House, *words: str) -> bool:
    """Whether a line of the worker's log holds all of them."""
    lines = house.worker.log.read_text(errors="replace").splitlines()
    return any(all(word in line for word in words) for line in lines)


def is_done(house: House, message: str) -> bool:
    """Whether it neither waits for a worker nor is at work."""
    with Redis.from_url(house.valkey.url) as queue:
        open_messages = [*queue.lrange("celery", 0, -1), *queue.hvals("unacked")]
    return not any(message.encode() in text for text in open_messages)


@pytest.mark.parametrize("serializer", ["pickle", "yaml"])
def test_a_message_that_makes_objects_is_refused(house: House, serializer: str) -> None:
    """Row 15 of the security checklist: it is thrown away unread, and the worker goes on with the next."""
    file = house.home.path / f"{uuid.uuid4().hex}.touched"
    arguments = [Bomb(file)] if serializer == "pickle" else [f"!!python/object/apply:os.mknod [{file}]"]
    kombu.serialization.enable_insecure_serializers([serializer])  # here, on the attacker's side
    try:
        send(house, WATCH, arguments, serializer)
    finally:
        kombu.serialization.disable_insecure_serializers()
    kind = {"pickle": "application/x-python-serialize", "yaml": "application/x-yaml"}[serializer]
    wait_for("it is refused", lambda: log_says(house, "Refusing to deserialize", kind), 30)
    good = send(house, WATCH, [], "json")
    wait_for("the next one is done", lambda: is_done(house, good), 30)
    assert not file.exists()


def test_a_task_that_there_is_not_is_not_looked_for(house: House) -> None:
    """Row 15 of the security checklist: a name chooses among the tasks that are registered, and imports nothing."""
    name = "antigravity.fly"  # a module of Python's own that opens a browser when it is imported
    send(house, name, [], "json")
    wait_for("it is thrown away", lambda: log_says(house, "unregistered task", name), 30)
    good = send(house, WATCH, [], "json")
    wait_for("the next one is done", lambda: is_done(house, good), 30)
