"""Python environments of their own for programs whose packages differ from Headgate's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from controlplane.embedded.home import PROJECT, default_cache
from controlplane.embedded.waiting import file_lock
from tests.support.low_priority import give_way

SPARK = "4.1.4"
_LONGEST_INSTALL_S = 1800.0  # at the lowest priority, beside tests that leave little


def spark_reader() -> Path:
    """The Python of ``spark_reader.py``. The first time, PySpark is built (430 MB, some minutes)."""
    return python_with(f"spark-reader-{SPARK}", Path(__file__).with_name("spark_reader.txt"))


def python_with(name: str, requirements: Path) -> Path:
    """The Python of the environment ``name``. The first time, packages are installed into the cache folder.

    ``requirements``: a file with the hashes of all packages.
    """
    folder = default_cache() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(folder.with_name(folder.name + ".lock"), _LONGEST_INSTALL_S, None):
        if not (folder / "complete").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)], check=True)
            # By this environment's pip. Modules are compiled when they are imported: few are.
            pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
            install = [*pip, "--no-deps", "--no-compile", "--require-hashes", "-r", str(requirements)]
            environment = {**os.environ, "DIST_EXTRA_CONFIG": str(PROJECT / "tools" / "wheels.cfg")}
            subprocess.run(install, check=True, env=environment, timeout=_LONGEST_INSTALL_S, preexec_fn=give_way)
            (folder / "complete").touch()
    return folder / "bin" / "python"
