"""Python environments of their own for programs whose packages differ from Headgate's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from controlplane.embedded.home import default_cache
from controlplane.embedded.waiting import file_lock

_LONGEST_INSTALL_S = 900.0


def python_with(name: str, requirements: Path) -> Path:
    """The Python of the environment ``name``. The first time, packages are installed into the cache folder.

    ``requirements``: a file with the hashes of all packages.
    """
    folder = default_cache() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(folder.with_name(folder.name + ".lock"), _LONGEST_INSTALL_S, None):
        if not (folder / "complete").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            install = [*("-m", "pip", "install", "--quiet", "--require-hashes", "-r"), str(requirements)]
            subprocess.run([str(folder / "bin" / "python"), *install], check=True, timeout=_LONGEST_INSTALL_S)
            (folder / "complete").touch()
    return folder / "bin" / "python"
