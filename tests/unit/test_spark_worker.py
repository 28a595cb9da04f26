"""How an indexer's Spark task tells why it ended."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingestion.spark.board import Board
from ingestion.spark.worker import WorkerConfig, indexer_runner
from ingestion.specs.messages.protocol import Assignment
from ingestion.specs.tasks.ingestion_spec import parse_task_spec


def orders(board: Board, deep_storage: str) -> WorkerConfig:
    document = {
        "type": "index_kafka_share_group",
        "dataSchema": {"dataSource": "d", "timestampSpec": {"column": "time"}},
        "ioConfig": {
            "topic": "t",
            "groupId": "g",
            "consumerProperties": {"bootstrap.servers": "127.0.0.1:1"},
            "inputFormat": {"type": "json"},
        },
    }
    assignment = Assignment(
        task_id="task",
        kind="share_group",
        spec=parse_task_spec(document).spec,
        consumer_properties={"bootstrap.servers": "127.0.0.1:1"},
        indexers=1,
        deep_storage=deep_storage,
        version="v1",
        created_at=datetime(2025, 6, 1, tzinfo=UTC),
    )
    return WorkerConfig(
        number=3,
        assignment=assignment.model_dump_json(),
        url="http://127.0.0.1:1",
        token="token",
        board=board.address,
        authkey=board.authkey,
        is_remote=False,
    )


@pytest.mark.parametrize("location", ["s3://AKIA:canary@bucket/x", "gopher://host/x", ""])
def test_a_deep_storage_that_can_not_be_is_told(location: str, tmp_path: Path) -> None:
    [ended] = indexer_runner(orders(Board("127.0.0.1"), location))([3])
    assert (ended.is_failure, ended.permanent, ended.directive_for_others) == (True, True, "stop")
    assert "deep storage" in ended.reason
    assert "canary" not in ended.reason


def run_with(niceness: int) -> None:
    """Ends with its priority as the exit code: a process can't raise it again, so this is one of its own."""
    list(indexer_runner(replace(orders(Board("127.0.0.1"), "gopher://host/x"), niceness=niceness))([3]))
    os._exit(os.getpriority(os.PRIO_PROCESS, 0))


@pytest.mark.parametrize("more", [0, 4])
def test_an_indexer_on_another_host_takes_the_drivers_priority(more: int) -> None:
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    process = multiprocessing.get_context("spawn").Process(target=run_with, args=(min(19, ours + more),))
    process.start()
    process.join(60)
    assert process.exitcode == min(19, ours + more)


def test_an_indexer_keeps_a_priority_that_is_lower_than_the_drivers() -> None:
    """Only a privileged process may raise it."""
    process = multiprocessing.get_context("spawn").Process(target=run_with, args=(-20,))
    process.start()
    process.join(60)
    assert process.exitcode == os.getpriority(os.PRIO_PROCESS, 0)


def test_libraries_that_few_indexers_need_are_not_loaded_by_all() -> None:
    """Every start would wait for them."""
    few = {"fastavro", "fsspec", "google.protobuf", "thriftpy2"}
    code = "import sys, ingestion.spark.daemon; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert few & set(loaded) == set()
