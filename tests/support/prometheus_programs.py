"""The real promtool and Prometheus, built once from Go's modules and kept in the cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from controlplane.embedded.home import default_cache
from controlplane.embedded.waiting import file_lock

VERSION = "v0.316.0"  # of the module; the program calls itself 3.16.0
PROGRAMS = ("promtool", "prometheus")
LONGEST_BUILD_S = 2400.0


def prometheus_programs() -> Path:
    """The folder of both programs. Skips the test where there is no Go: the first build takes ten minutes or more."""
    go = shutil.which("go")
    folder = default_cache() / f"prometheus-{VERSION}"
    if folder.is_dir():
        return folder
    if go is None:
        pytest.skip(
            "Go is not installed, so promtool and Prometheus can't be built: rules and dashboards are unchecked."
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(folder.with_name(folder.name + ".lock"), LONGEST_BUILD_S, None):
        if not folder.is_dir():
            _build(go, folder)
    return folder


def _build(go: str, folder: Path) -> None:
    """Go keeps what it compiled in a cache of its own, so a second build takes seconds."""
    made = folder.with_name(folder.name + ".new")
    modules = [f"github.com/prometheus/prometheus/cmd/{program}@{VERSION}" for program in PROGRAMS]
    environment = {**os.environ, "GOBIN": str(made), "GOFLAGS": "-buildvcs=false"}
    subprocess.run([go, "install", *modules], check=True, env=environment, timeout=LONGEST_BUILD_S)
    made.rename(folder)
