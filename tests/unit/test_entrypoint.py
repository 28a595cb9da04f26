"""docker/entrypoint.sh on a machine without a container: what its beat does about a missing folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "docker" / "entrypoint.sh"
FOLDER = "/var/lib/headgate/beat"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """They stand before the machine's own: a celery that says how it is called, and a mkdir that may do nothing."""
    scripts = {"celery": 'echo "celery $*"', "mkdir": 'echo "mkdir: no rights to $*" >&2; exit 1'}
    for name, body in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def run(programs: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
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
