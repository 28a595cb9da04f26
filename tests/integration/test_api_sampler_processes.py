"""The sampler's processes: which one takes a sample, and what is left when one dies, hangs or is killed."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from django.test import Client

from controlplane.common.ready_process import ReadyProcess
from controlplane.datasources import sampling
from tests.support.django_cast import Cast
from tests.support.sampler import ask, pasted, sample
from tests.support.waiting import wait_for

CANARY = "canary-3f1c"


@pytest.fixture
def silent_kafka() -> Iterator[str]:
    """An address that takes connections and says nothing."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(16)
        yield f"127.0.0.1:{server.getsockname()[1]}"


def from_kafka(address: str, timeout_ms: int = 15_000) -> dict[str, Any]:
    properties = {"bootstrap.servers": address, "sasl.username": "u", "sasl.password": CANARY}
    io_config = {"topic": "orders", "consumerProperties": properties, "inputFormat": {"type": "json"}}
    return {"type": "kafka", "spec": {"ioConfig": io_config}, "samplerConfig": {"timeoutMs": timeout_ms}}


def samplers() -> list[psutil.Process]:
    """Those that take a sample just now: forks of the one that waits."""
    waiting = sampling.ready_sampler.pid
    return [] if waiting is None else psutil.Process(waiting).children()


def all_ended() -> bool:
    return samplers() == []


def test_a_kafka_that_does_not_answer_is_unavailable(owner: Client, silent_kafka: str) -> None:
    answer = ask(owner, from_kafka(silent_kafka, 500))
    assert answer.status_code == 503
    assert [e["pointer"] for e in answer.json()["errors"]] == ["/spec/ioConfig/consumerProperties"]
    assert CANARY.encode() not in answer.content


def test_a_process_that_dies_is_an_error_and_harms_nobody(cast: Cast, silent_kafka: str) -> None:
    """Row 8 of the security checklist.

    It is killed from outside while it waits; its order, with a secret in it, is nowhere to be seen.
    """
    caught: list[Exception] = []
    document = from_kafka(silent_kafka)
    order = sampling._admit_order(document, cast.alpha, sampling.parse_sampler_spec(document).order)

    def take() -> None:
        try:
            sampling._run_sampler(order)
        except sampling.Unavailable as error:
            caught.append(error)

    thread = threading.Thread(target=take)
    thread.start()
    [process] = wait_for("the sampler's process", samplers, 30)
    wait_for("its connection to Kafka", lambda: process.net_connections(), 30)
    assert CANARY not in " ".join(process.cmdline())
    assert CANARY not in json.dumps(process.environ())
    assert "AWS_SECRET_ACCESS_KEY" not in process.environ()
    process.kill()
    thread.join(30)
    assert [str(e) for e in caught] and "SIGKILL" in str(caught[0])
    wait_for("no process of it is left", all_ended, 30)


def test_a_process_that_does_not_end_is_killed(
    owner: Client, monkeypatch: pytest.MonkeyPatch, silent_kafka: str
) -> None:
    """Row 5 of the security checklist: a sample takes no longer than it may."""
    monkeypatch.setattr(sampling, "START_AND_DECODE_S", -0.05)  # before it gives up by itself
    answer = ask(owner, from_kafka(silent_kafka, 100))
    assert answer.status_code == 503
    assert "did not finish" in answer.json()["detail"]
    wait_for("it is killed", all_ended, 30)
    assert ask(owner, pasted("{}")).status_code == 200


def test_the_process_that_waits_stays_and_is_started_again_when_it_is_gone(owner: Client) -> None:
    assert ask(owner, pasted("{}")).status_code == 200
    waiting = sampling.ready_sampler.pid
    assert ask(owner, pasted("{}")).status_code == 200
    assert sampling.ready_sampler.pid == waiting is not None
    psutil.Process(waiting).kill()
    wait_for("its end", lambda: sampling.ready_sampler.pid is None, 30)
    assert ask(owner, pasted("{}")).status_code == 200
    assert sampling.ready_sampler.pid not in (None, waiting)


def test_without_one_that_waits_each_sample_has_a_process_of_its_own(
    owner: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "ready_sampler", ReadyProcess(sampling.READY_MODULE, {}))  # not yet started
    settings.SAMPLER_READY = False
    sampling.start_ready_sampler()
    assert sample(owner, pasted('{"a": 1}'))["outcomes"] == {"stored": 1}
    assert sampling.ready_sampler.pid is None


ASKS_AND_WAITS = """
import django
django.setup()
from controlplane.datasources.sampling import _admit_order, parse_sampler_spec, ready_sampler
document = {document!r}
order = _admit_order(document, None, parse_sampler_spec(document).order)
ready_sampler.start()
print(ready_sampler.pid, flush=True)
ready_sampler.request(order.model_dump_json(), 60)
"""


def test_who_is_killed_leaves_no_process(db: None, silent_kafka: str) -> None:
    """One that waits, and one that reads: both end with the process that asked."""
    asked = ASKS_AND_WAITS.format(document=from_kafka(silent_kafka))
    with subprocess.Popen([sys.executable, "-c", asked], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        waiting = psutil.Process(int(process.stdout.readline()))
        [fork] = wait_for("the fork that reads", waiting.children, 60)
        wait_for("its connection to Kafka", lambda: fork.net_connections(), 30)
        process.kill()
    wait_for("the end of both", lambda: not waiting.is_running() and not fork.is_running(), 30)
