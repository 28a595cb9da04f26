"""The process of an ended application does not stay as a zombie with whoever launched it."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import psutil

from controlplane.tasks import launcher, services
from tests.support.django_cast import Cast
from tests.support.waiting import wait_for


def test_an_ended_process_is_gone_without_another_launch(cast: Cast, settings: Any, tmp_path: Path) -> None:
    settings.TASK_DIR = tmp_path
    repair = services.create_repair(like=cast.task, holes=[], topic_id="topic-id-1")
    assert launcher.launch(repair.pk)
    process = launcher.process_of(repair.pk)
    assert process is not None
    assert launcher.terminate(repair.pk, signal.SIGKILL)
    wait_for("the process is reaped", lambda: not psutil.pid_exists(process.pid))
