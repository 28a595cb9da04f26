"""Real programs, built once from Go's modules and kept in the cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

import pytest

from controlplane.embedded.home import default_cache
from controlplane.embedded.waiting import file_lock
from tests.support.low_priority import give_way

PROMETHEUS = "v0.316.0"  # of the module; the program calls itself 3.16.0
HELM = "v3.22.0"
LONGEST_BUILD_S = 2400.0
# They run for seconds: better code would take longer to make than it saves, and nobody debugs them.
_QUICKLY = ("-ldflags=-s -w", "-gcflags=all=-N -l -dwarf=false")


def prometheus_programs() -> Path:
    """The folder of promtool and Prometheus, which finds targets by DNS alone: clients of all clouds are most of it."""
    module = "github.com/prometheus/prometheus/cmd"
    modules = [f"{module}/{name}@{PROMETHEUS}" for name in ("promtool", "prometheus")]
    return _built(f"prometheus-{PROMETHEUS}", modules, tags="remove_all_sd,enable_dns_sd")


def helm_program() -> Path:
    return _built(f"helm-{HELM}", [f"helm.sh/helm/v3/cmd/helm@{HELM}"]) / "helm"


def _built(name: str, modules: Collection[str], tags: str = "") -> Path:
    """The folder of these programs. Skips the test where there is no Go."""
    go = shutil.which("go")
    folder = default_cache() / name
    if folder.is_dir():
        return folder
    if go is None:
        pytest.skip(f"Go is not installed, so {name} can't be built, and what it checks is unchecked.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(folder.with_name(folder.name + ".lock"), LONGEST_BUILD_S, None):
        if not folder.is_dir():
            _build(go, folder, modules, tags)
    return folder


def _build(go: str, folder: Path, modules: Collection[str], tags: str) -> None:
    """Go keeps what it compiled in a cache of its own: a second build takes seconds. Tests beside it go first."""
    made = folder.with_name(folder.name + ".new")
    environment = {**os.environ, "GOBIN": str(made), "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"}
    command = [go, "install", "-tags", tags, *_QUICKLY, *modules]
    subprocess.run(command, check=True, env=environment, timeout=LONGEST_BUILD_S, preexec_fn=give_way)
    made.rename(folder)
