"""Applications that wait for a task: handed over once, ended in time, never in the way of a start without them.

The process that waits is a real one, with the data plane's own waiting; only Spark is left out.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.utils import timezone

from controlplane.common import applications
from controlplane.sources.spec_sources import FILL_MARK
from controlplane.tasks import host_rounds, launcher, lifecycle, spare_rounds, spares
from controlplane.tasks.models import Status, Task
from ingestion.specs.messages.spare import ORDERS, RECORD, SpareOrder
from tests.integration.test_supervisor_services import side_by_side
from tests.support.django_cast import Cast
from tests.support.house import lives
from tests.support.waiting import wait_for

# What an application does that was started for one task, and what a spare does, both without Spark.
PROGRAM = """
import json, os, pathlib, sys, time
from ingestion.spark.spare import wait_for_order
from ingestion.task.shutdown import Ending
place = os.environ.get("HEADGATE_SPARE")
print("started", "to wait" if place else "for a task", flush=True)
task = os.environ.get("HEADGATE_TASK_ID")
if place:
    order = wait_for_order(pathlib.Path(place), Ending.from_environment().install())
    if order is None:
        sys.exit(0)
    task = order.task_id
    (pathlib.Path(os.environ["HEADGATE_SCRATCH"]) / "token").write_text(order.token)
    print("with", order.module or "the streaming application", flush=True)
print("serves", task, flush=True)
time.sleep(600)
"""
NOW_S = 1_000.0


def batch_spec(**io_config: Any) -> dict[str, Any]:
    return {
        "type": "index_parallel",
        "spec": {
            "dataSchema": {
                "dataSource": "wiki",
                "timestampSpec": {"column": "t", "format": "auto"},
                "dimensionsSpec": {"dimensions": ["page"]},
                "granularitySpec": {"rollup": False},
            },
            "ioConfig": {
                "type": "index_parallel",
                "inputSource": {"type": "inline", "data": '{"t": "2025-01-01", "page": "main"}'},
                "inputFormat": {"type": "json"},
                **io_config,
            },
        },
    }


@pytest.fixture(autouse=True)
def here(cast: Cast, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    settings.HOST_NAME, settings.TASK_DIR, settings.SPARE_APPLICATIONS = "ingest-2", tmp_path / "tasks", 1
    monkeypatch.setenv("HEADGATE_HOST_NAME", "ingest-2")
    monkeypatch.setattr(launcher, "_submit_command", lambda *_: [sys.executable, "-c", PROGRAM])
    monkeypatch.setattr(spare_rounds, "_not_before", 0.0)
    monkeypatch.setattr(spare_rounds, "_ending_since", {})
    monkeypatch.setattr(spare_rounds, "_report_at", 0.0)
    Task.objects.update(launched_at=timezone.now() - timedelta(minutes=5), last_heartbeat_at=timezone.now())
    yield settings
    for _, identity in applications.running_applications(settings.TASK_DIR):
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.killpg(identity.pid, signal.SIGKILL)


def ready_spare() -> Path:
    spare_rounds.run(NOW_S)
    [folder] = wait_for("a spare waits", spares.waiting)
    return folder


def process_of(folder: Path) -> psutil.Process:
    identity = applications.process_in(folder)
    assert identity is not None
    process = identity.find()
    assert process is not None
    return process


def pending(cast: Cast, name: str = "index_one", **fields: Any) -> str:
    values = {"kind": cast.task.kind, "spec": cast.task.spec, "slots": cast.task.slots or 32, **fields}
    Task.objects.create(pk=name, datasource=cast.datasource, created_at=timezone.now(), **values)
    return name


def says(task: str, text: str) -> None:
    wait_for(text, lambda: text in launcher.log_of(task).read_text(), explain=lambda: launcher.log_of(task).read_text())


def gone(process: psutil.Process) -> None:
    wait_for("the process has ended", lambda: not lives(process))


def test_a_spare_becomes_the_tasks_application(cast: Cast) -> None:
    folder = ready_spare()
    process, task = process_of(folder), pending(cast)
    assert launcher.launch(task)
    served_by = launcher.process_of(task)
    assert served_by is not None and served_by.pid == process.pid
    says(task, f"serves {task}")
    assert launcher.log_of(task).read_text().startswith("started to wait")  # from its beginning
    token = (launcher.scratch_of(task) / "token").read_text()  # it was written by the spare's old path
    assert lifecycle.token_hash(token) == lifecycle.token_and_status(task)[0]
    assert token not in " ".join(process.cmdline()) and token not in process.environ().values()
    assert spares.waiting() == []  # it serves one task
    other = pending(cast, "index_two")
    assert launcher.launch(other)
    says(other, "started for a task")


def test_nobody_else_may_read_an_order(cast: Cast) -> None:
    folder = ready_spare()
    assert [path.stat().st_mode & 0o777 for path in (folder.parent, folder / ORDERS, folder / RECORD)] == [
        0o700,
        0o600,
        0o600,
    ]


def test_a_task_whose_spare_was_killed_just_before_starts_without_it(cast: Cast) -> None:
    process = process_of(ready_spare())
    process.kill()
    gone(process)
    task = pending(cast)
    assert launcher.launch(task)
    says(task, "started for a task")


def test_a_spare_that_does_not_read_any_more_is_left_out(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """It dies between the look at its process and the order: its folder has moved, and the task starts in it."""
    process, task = process_of(ready_spare()), pending(cast)
    rename = Path.rename

    def die_then(self: Path, target: Path) -> Path:
        if self.parent.name == spares.SPARES:
            process.kill()
            gone(process)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", die_then)
    assert launcher.launch(task)
    says(task, "started for a task")
    served_by = launcher.process_of(task)
    assert served_by is not None and served_by.pid != process.pid


def test_two_launchers_never_give_two_tasks_to_one(cast: Cast) -> None:
    folder = ready_spare()
    version, root = launcher.spare_version(), folder.parent.parent
    orders = [SpareOrder(task_id=f"t{n}", token="t") for n in range(6)]
    taken = [False] * len(orders)

    def take(order: SpareOrder) -> None:
        taken[int(order.task_id[1:])] = spares.hand_over(version, root / order.task_id, order)

    names = iter(orders)
    side_by_side(lambda: take(next(names)), len(orders))
    assert sum(taken) == 1
    [task] = [order.task_id for order, is_taken in zip(orders, taken, strict=True) if is_taken]
    says(task, f"serves {task}")


def test_one_that_is_handed_over_while_another_launcher_looks_is_not_given_away_again(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one has seen a folder, and not yet locked it; the spare has not yet read its order."""
    folder, original = ready_spare(), spares.record_of
    process = process_of(folder)
    version, root = launcher.spare_version(), folder.parent.parent
    first, second = (SpareOrder(task_id=name, token="t") for name in ("first", "second"))

    def record_of(folder: Path) -> tuple[str, float]:
        monkeypatch.setattr(spares, "record_of", original)
        record = original(folder)
        assert spares.hand_over(version, root / "first", first)
        return record

    monkeypatch.setattr(spares, "record_of", record_of)
    process.suspend()
    assert not spares.hand_over(version, root / "second", second)
    assert not (root / "second").exists()
    process.resume()
    says("first", "serves first")


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": Task.Kind.REWIND},
        {"kind": Task.Kind.BOUNDED},
        {"kind": Task.Kind.INDEX_PARALLEL, "spec": batch_spec(inputSource={"type": "http", "uris": ["http://a.b/c"]})},
        {"supervisor_id": f"orders{FILL_MARK}1"},
        {"slots": 7},
    ],
    ids=str,
)
def test_other_tasks_start_without_it(cast: Cast, fields: dict[str, Any]) -> None:
    folder, task = ready_spare(), pending(cast, **fields)
    assert launcher.launch(task)
    assert spares.waiting() == [folder]


def test_neither_does_a_task_that_is_launched_again_nor_one_on_a_cluster(cast: Cast, here: Any) -> None:
    folder, task = ready_spare(), pending(cast)
    launcher.folder_of(task).mkdir()
    assert launcher.launch(task)
    here.SPARK_MASTER = "spark://elsewhere:7077"
    assert not launcher.has_spares()
    assert spares.waiting() == [folder]


def test_a_launcher_that_dies_after_the_move_loses_no_task(cast: Cast, here: Any) -> None:
    """The spare sees that it was moved and that nobody is about to write; the host then lets the task wait again."""
    folder = ready_spare()
    process = process_of(folder)
    long_ago = timezone.now() - timedelta(minutes=1)
    task = pending(cast, launched_at=long_ago, host="ingest-2")
    folder.rename(launcher.folder_of(task))
    gone(process)
    assert not launcher.has_process(task)
    host_rounds.fail_dead()
    assert Task.objects.get(pk=task).status == Status.PENDING
    assert lifecycle.requeue_unstarted(long_ago, host_rounds.Q(pk=task)) == 1
    assert launcher.launch(task)
    says(task, "started for a task")


def test_a_launcher_that_is_slow_after_the_move_is_waited_for(cast: Cast) -> None:
    folder = ready_spare()
    process, target = process_of(folder), launcher.folder_of("slow")
    with spares.lock(folder) as is_free:
        assert is_free
        orders = os.open(folder / ORDERS, os.O_WRONLY | os.O_NONBLOCK)
        folder.rename(target)
        folder.symlink_to(target)
        time.sleep(2.5)  # the spare looks every second
        assert process.is_running()
        os.write(orders, SpareOrder(task_id="slow", token="t").model_dump_json().encode())
        os.close(orders)
    says("slow", "serves slow")


def test_one_that_is_told_to_end_ends_at_once(cast: Cast, here: Any) -> None:
    folder = ready_spare()
    process, began = process_of(folder), time.monotonic()
    name = f"{spares.SPARES}/{folder.name}"
    assert applications.stop_applications(here.TASK_DIR, 25) == [name]  # `make down`, and a worker's end
    gone(process)
    assert time.monotonic() - began < 20
    spare_rounds.run(NOW_S)
    assert folder not in spares.folders()
    assert wait_for("the next one waits", spares.waiting) != [folder]  # a stop is no failure


@pytest.mark.parametrize("change", ["setting", "code", "age", "too many", "none wanted"])
def test_one_that_does_not_fit_any_more_is_replaced(
    cast: Cast, here: Any, change: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = ready_spare()
    process = process_of(folder)
    if change == "setting":
        here.INTERNAL_URL = "http://127.0.0.1:9000"
    elif change == "code":  # an update was installed in its place
        (tmp_path / "ingestion").mkdir()
        (tmp_path / "ingestion" / "new.py").write_text("")
        monkeypatch.setattr(spares.settings, "BASE_DIR", tmp_path)
    elif change == "age":
        record = json.loads((folder / RECORD).read_text())
        (folder / RECORD).write_text(json.dumps({**record, "since": record["since"] - spare_rounds.LIFETIME_S}))
    elif change == "too many":
        launcher.start_spare()
        wait_for("two wait", lambda: len(spares.waiting()) == 2)
        process = process_of(max(spares.waiting()))
    else:
        here.SPARE_APPLICATIONS = 0
    task = pending(cast)
    if change in ("setting", "none wanted"):
        assert launcher.launch(task)
        says(task, "started for a task")
        Task.objects.filter(pk=task).update(
            launched_at=timezone.now() - timedelta(minutes=1), last_heartbeat_at=timezone.now()
        )
    spare_rounds.run(NOW_S)
    gone(process)
    spare_rounds.run(NOW_S + 2)
    if change == "none wanted":
        assert spares.folders() == []
    elif change != "code":
        [other] = wait_for("one waits", spares.waiting)
        assert process_of(other).pid != process.pid


def test_one_that_hangs_at_its_end_is_killed(cast: Cast, here: Any) -> None:
    process = process_of(ready_spare())
    process.suspend()
    wait_for("it stands still", lambda: process.status() == psutil.STATUS_STOPPED)  # once it is its turn
    here.SPARE_APPLICATIONS = 0
    spare_rounds.run(NOW_S)
    spare_rounds.run(NOW_S + 9)
    assert process.status() == psutil.STATUS_STOPPED
    spare_rounds.run(NOW_S + 11)
    gone(process)
    spare_rounds.run(NOW_S + 13)
    assert spares.folders() == []


def test_one_whose_worker_is_gone_ends_by_itself(cast: Cast) -> None:
    folder = ready_spare()
    process = process_of(folder)
    long_ago = time.time() - 61
    os.utime(folder / RECORD, (long_ago, long_ago))
    gone(process)


def test_a_worker_keeps_its_own(cast: Cast) -> None:
    folder = ready_spare()
    long_ago = time.time() - 50
    os.utime(folder / RECORD, (long_ago, long_ago))
    spare_rounds.run(NOW_S)
    assert time.time() - (folder / RECORD).stat().st_mtime < 40
    assert spares.waiting() == [folder]


def test_those_of_another_host_are_left_alone(cast: Cast, here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ready_spare()
    here.HOST_NAME, here.SPARE_APPLICATIONS = "ingest-1", 0
    spare_rounds.run(NOW_S)
    assert process_of(folder).is_running() and spares.is_ready(folder)


def test_one_that_can_not_start_is_not_tried_all_the_time(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        launcher, "_submit_command", lambda *_: [sys.executable, "-c", "raise SystemExit('no Java here')"]
    )
    spare_rounds.run(NOW_S)
    [folder] = spares.folders()
    wait_for("it has ended", lambda: spare_rounds._process(folder) is None)
    spare_rounds.run(NOW_S + 2)
    assert "no Java here" in caplog.text
    spare_rounds.run(NOW_S + 200)
    assert spares.folders() == []
    spare_rounds.run(NOW_S + 303)
    assert len(spares.folders()) == 1


def test_none_starts_while_a_task_does(cast: Cast) -> None:
    task = pending(cast, launched_at=timezone.now() - timedelta(seconds=20), host="ingest-2")
    spare_rounds.run(NOW_S)
    assert spares.folders() == []
    Task.objects.filter(pk=task).update(last_heartbeat_at=timezone.now())
    spare_rounds.run(NOW_S)
    assert len(spares.folders()) == 1


def test_the_link_goes_when_the_task_has_ended(cast: Cast, here: Any) -> None:
    ready_spare()
    here.SPARE_APPLICATIONS, task = 1, pending(cast)
    assert launcher.launch(task)
    [link] = spares.folders()
    here.SPARE_APPLICATIONS = 0
    spare_rounds.run(NOW_S)
    assert link.is_symlink()  # Spark knows its folder by this name
    process = launcher.process_of(task)
    assert process is not None
    launcher.kill(task)
    gone(process)
    spare_rounds.run(NOW_S)
    assert not link.is_symlink() and launcher.log_of(task).exists()
