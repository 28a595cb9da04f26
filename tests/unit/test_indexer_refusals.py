"""The circuit breaker in the loop: deep storage or a schema registry that is away, for a while or for good."""

from __future__ import annotations

import json
import random
import resource
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ingestion.client.memory import MemoryControlPlane
from ingestion.decode.formats import registry as formats_registry
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.segments.errors import DeepStorageError
from ingestion.segments.reader import read_segment
from ingestion.sources.base import ACCEPT, RELEASE
from ingestion.sources.memory import MemoryLeasedSource
from ingestion.task import breaker, decoding
from ingestion.task.breaker import Breaker
from ingestion.task.control import Control
from ingestion.task.errors import RegistryRefused, StorageRefused
from ingestion.task.log import logger_for
from tests.support.indexer import OneLog, assignment, record, stored, total
from tests.support.registry import framed, running
from tests.support.s3 import CREDENTIALS, s3_server


def test_a_refusal_for_good_ends_the_task_with_nothing_published(run_indexer: Any, tmp_path: Path) -> None:
    """Row 26 of the failure matrix: nothing is acknowledged either."""
    (tmp_path / "no-folder").write_bytes(b"")
    plane = MemoryControlPlane(assignment(tmp_path))
    source = MemoryLeasedSource([(0, n, record(n)) for n in range(200)])
    with pytest.raises(StorageRefused, match=r"deep storage refuses: can't store d/.*: Not a directory"):
        run_indexer(source, plane, deep_storage=str(tmp_path / "no-folder" / "deep"))
    assert plane.published == []
    assert set(source.acknowledgements.values()) == {RELEASE}
    assert not any((tmp_path / "scratch").iterdir())


def test_a_bucket_that_is_not_there_ends_the_task(
    run_indexer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    plane = MemoryControlPlane(assignment(tmp_path))
    source = MemoryLeasedSource([(0, n, record(n)) for n in range(10)])
    with s3_server(tmp_path) as server, pytest.raises(StorageRefused, match="there is no such bucket"):
        run_indexer(source, plane, deep_storage=server.location(bucket="another-bucket"))
    assert plane.published == []
    assert set(source.acknowledgements.values()) == {RELEASE}


@contextmanager
def heard(control: Control) -> Iterator[None]:
    """Heartbeats that are answered."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(0.05):
            control.update("continue")

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        yield
    finally:
        over.set()
        beating.join()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_while_deep_storage_is_away_nothing_is_polled_and_then_all_is_stored(
    run_indexer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer than a lock: the batch in hand is given up once, and not polled again before the storage is back."""
    monkeypatch.setattr(breaker, "STORE_WAIT_S", 0.2)
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with s3_server(tmp_path) as server:
        location, port = server.location("deep"), int(server.endpoint.rpartition(":")[2])
    plane, control = MemoryControlPlane(assignment(tmp_path)), Control(0, 1)
    source = MemoryLeasedSource([(0, n, record(n)) for n in range(300)], lock_s=1.0)
    with heard(control), ThreadPoolExecutor() as pool:
        running = pool.submit(run_indexer, source, plane, None, location, control)
        wait_for(lambda: control.status.unpublished.released == 100)
        wait_for(lambda: control.status.state == "paused")
        assert "The deep storage refuses: can't store d/" in control.status.message
        assert control.status.redelivery_counts == {1: 100}
        assert plane.published == []
        source.lock_s = 30.0
        with s3_server(tmp_path, port):
            running.result(60)
            storage = open_deep_storage(location)
            files = [s.path for p in plane.published for s in p.segments]
            rows = sorted(n for f in files for n in read_segment(storage, f)["n"].to_pylist())
            assert rows == list(range(300))
            assert len(set(storage.files())) == len(files) + 1  # and what was given up, to be cleaned up
    assert control.status.redelivery_counts == {1: 300, 2: 100}
    assert control.status.message == ""
    assert set(source.acknowledgements.values()) == {ACCEPT}


def test_a_full_disk_pauses_and_publishes_nothing(run_indexer: Any, tmp_path: Path) -> None:
    """Row 26 of the failure matrix: a limit on the size of files stands for the full disk."""
    plane, control = MemoryControlPlane(assignment(tmp_path)), Control(0, 1)
    large: list[dict[str, Any]] = [
        {"time": "2025-06-01", "n": n, "text": random.Random(n).randbytes(2000).hex()} for n in range(100)
    ]
    source = MemoryLeasedSource([(0, r["n"], json.dumps(r).encode()) for r in large])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with heard(control), ThreadPoolExecutor() as pool:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
        try:
            running = pool.submit(run_indexer, source, plane, None, None, control)
            wait_for(lambda: "File too large" in control.status.message)
            assert control.status.state == "paused"
            assert plane.published == []
            assert source.acknowledgements == {}
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        running.result(60)
    assert stored(plane, tmp_path) == list(range(100))


def test_a_refusal_that_does_not_pass_ends_the_task() -> None:
    breaker = Breaker(Control(0, 1), MemoryLeasedSource([]), logger_for(), patience_s=0.5)
    asked = []

    def refuse() -> None:
        asked.append(time.monotonic())
        raise DeepStorageError("can't store d/file: No space left on device", permanent=False)

    with pytest.raises(StorageRefused, match=r"has refused for 0\.5 s: can't store d/file: No space left"):
        breaker.retry_until_answered(refuse, time.monotonic() + 60)
    assert len(asked) > 2


AVRO = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "time", "type": "string"}, {"name": "n", "type": "long"}],
}


def in_avro(records: int, lock_s: float = 30.0) -> MemoryLeasedSource:
    """Records of the registry's schema 1."""
    return MemoryLeasedSource(
        [(0, n, framed(1, b"\x14" + b"2025-06-01" + bytes([2 * n]))) for n in range(records)], lock_s=lock_s
    )


def test_a_registry_that_is_away_pauses_and_marks_nothing(run_indexer: Any, tmp_path: Path) -> None:
    """Row 20 of the failure matrix: nothing is rejected, nothing delivered again."""
    with running() as registry:
        registry.schemas[1] = {"schema": json.dumps(AVRO)}
        registry.stop()
        back = threading.Timer(1.0, registry.start)
        back.start()
        decoder = {"type": "schema_registry", "url": registry.url}
        source = in_avro(50)
        plane = run_indexer(source, input_format={"type": "avro_stream", "avroBytesDecoder": decoder})
        back.join()
    assert stored(plane, tmp_path) == list(range(50))
    assert (total(plane).unparseable, total(plane).polled) == (0, 50)
    assert set(source.acknowledgements.values()) == {ACCEPT}


def test_a_schema_that_the_registry_refuses_stops_the_source_for_a_while_only(
    run_indexer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 20 of the failure matrix: its records go to quarantine then."""
    monkeypatch.setattr(formats_registry, "REFUSED_FOR_S", 0.5)
    with running() as registry:
        registry.schemas[1] = {"schema": json.dumps(AVRO)}
        registry.statuses[9] = 500
        decoder = {"type": "schema_registry", "url": registry.url}
        good = [(0, n, framed(1, b"\x14" + b"2025-06-01" + bytes([2 * n]))) for n in range(50)]
        source = MemoryLeasedSource([*good, (0, 50, framed(9, b""))], lock_s=30.0)
        plane = run_indexer(source, input_format={"type": "avro_stream", "avroBytesDecoder": decoder})
    assert stored(plane, tmp_path) == list(range(50))
    (bad,) = [record for request in plane.published for record in request.quarantined]
    assert bad.error.startswith("the schema registry has refused schema 9, and no other, for 0.5 s: http://127.0.0.1:")


@pytest.mark.parametrize(("kind", "late"), [("share_group", 3), ("kafka", 3), ("kafka", 1)])
def test_a_registry_that_does_not_take_the_login_ends_the_task(
    run_indexer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, late: int
) -> None:
    """Row 20 of the failure matrix: after a while, here and in a child process, and nothing is quarantined."""
    monkeypatch.setattr(breaker, "DENIED_S", 1.0)
    monkeypatch.setattr(breaker, "STORE_WAIT_S", 0.2)
    monkeypatch.setattr(decoding, "LATE_DELIVERY", late)
    control = Control(0, 1)
    with running() as registry, heard(control):
        registry.status = 403
        decoder = {"type": "schema_registry", "url": registry.url}
        written = {"type": "avro_stream", "avroBytesDecoder": decoder}
        plane = MemoryControlPlane(assignment(tmp_path))
        leased = in_avro(3, lock_s=0.5)  # so that it waits without them, too
        source = leased if kind == "share_group" else OneLog([framed(1, b"")] * 3, control)
        with pytest.raises(RegistryRefused, match=r"has refused for 1 s: http.* answers with status 403\. Correct"):
            run_indexer(source, plane, control=control, input_format=written, kafka=kind == "kafka")
    assert plane.published == [] and set(leased.acknowledgements.values()) <= {RELEASE}


def test_a_registry_that_is_away_for_longer_than_locks_uses_up_one_delivery(
    run_indexer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 20 of the failure matrix: what was given up is not polled again before the registry answers."""
    monkeypatch.setattr(breaker, "STORE_WAIT_S", 0.1)
    control = Control(0, 1)
    source = in_avro(50, lock_s=0.3)
    with running() as registry, heard(control), ThreadPoolExecutor() as pool:
        registry.schemas[1] = {"schema": json.dumps(AVRO)}
        registry.status = 500
        decoder = {"type": "schema_registry", "url": registry.url}
        given = {"type": "avro_stream", "avroBytesDecoder": decoder}
        running_one = pool.submit(run_indexer, source, None, None, None, control, input_format=given)
        try:
            wait_for(lambda: control.status.unpublished.released == 50)
            asked = len(registry.asked)
            wait_for(lambda: len(registry.asked) > asked + 5)
            assert control.status.state == "paused"
            assert control.status.message.startswith("The schema registry gives no schema: http://127.0.0.1:")
            assert control.status.redelivery_counts == {1: 50}
        finally:
            source.lock_s = 30.0
            registry.status = 200
        plane = running_one.result(60)
    assert stored(plane, tmp_path) == list(range(50))
    assert control.status.redelivery_counts == {1: 50, 2: 50}
    assert set(source.acknowledgements.values()) == {ACCEPT}
