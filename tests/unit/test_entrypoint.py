"""docker/entrypoint.sh on a machine without a container: a beat without its folder, and pods of Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "docker" / "entrypoint.sh"
FOLDER = "/var/lib/headgate/beat"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """They stand before the machine's own: a celery that says how it is called, and a mkdir that may do nothing."""
    shown = 'for word; do echo "$word"; done'
    scripts = {
        "celery": 'echo "celery $*"',
        "java": shown,
        "python": f'exec {sys.executable} "$@"',
        "spark-submit": shown,
        "mkdir": 'echo "mkdir: no rights to $*" >&2; exit 1',
    }
    for name, body in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def run(programs: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", **variables}
    command = ["sh", str(SCRIPT), *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)


def test_beat_does_not_start_without_its_folder(programs: Path) -> None:
    done = run(programs, "beat")
    assert done.returncode == 1 and "celery" not in done.stdout
    assert FOLDER in done.stderr


def test_beat_with_a_schedule_elsewhere_needs_no_folder(programs: Path) -> None:
    done = run(programs, "beat", "-s", "/elsewhere/schedule")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("-s /elsewhere/schedule\n")


def test_a_driver_is_what_spark_has_written_down_for_it(programs: Path) -> None:
    """Spark 4.2 calls it so in the pod that it makes: see tests/integration/deep/test_kubernetes_submission.py."""
    given = (
        "--properties-file",
        "/opt/spark/conf/spark.properties",
        "--class",
        "a.Runner",
        "local:///opt/headgate/a.py",
    )
    done = run(programs, "driver", *given, SPARK_DRIVER_BIND_ADDRESS="10.0.0.7")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        *("--conf", "spark.driver.bindAddress=10.0.0.7", "--deploy-mode", "client"),
        *given,
    ]


def test_an_executor_finds_its_driver_and_takes_javas_options_whole(programs: Path) -> None:
    variables = {
        "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver-svc:7078",
        "SPARK_EXECUTOR_ID": "3",
        "SPARK_EXECUTOR_CORES": "1",
        "SPARK_EXECUTOR_MEMORY": "832m",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.8",
        "SPARK_EXECUTOR_POD_NAME": "task-exec-3",
        "SPARK_APPLICATION_ID": "spark-1f",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_CONF_DIR": "/opt/spark/conf",
        "SPARK_JAVA_OPT_0": "-XX:+UseSerialGC",
        "SPARK_JAVA_OPT_1": "-Da=two words; $HOME",
    }
    done = run(programs, "executor", **variables)
    assert done.returncode == 0, done.stderr
    words = done.stdout.splitlines()
    java, program = words[: words.index("-cp")], words[words.index("-cp") + 2 :]
    assert java == ["-XX:+UseSerialGC", "-Da=two words; $HOME", "-Xms832m", "-Xmx832m"]
    configuration, _, jars = words[words.index("-cp") + 1].partition(":")
    assert configuration == "/opt/spark/conf"
    assert list(Path(jars.removesuffix("/*")).glob("spark-kubernetes_*.jar"))
    assert program[0].endswith(".KubernetesExecutorBackend")
    assert dict(zip(program[1::2], program[2::2], strict=True)) == {
        "--driver-url": "spark://CoarseGrainedScheduler@driver-svc:7078",
        "--executor-id": "3",
        "--cores": "1",
        "--app-id": "spark-1f",
        "--hostname": "10.0.0.8",
        "--resourceProfileId": "0",
        "--podName": "task-exec-3",
    }
