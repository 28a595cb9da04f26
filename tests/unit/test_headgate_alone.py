"""Spark ships the package ``headgate`` to executors, and nothing else of the project's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "headgate"
_COLUMNS = """
import headgate
from headgate.publishes.columns import struct_of
print(struct_of([{"name": "s", "type": "COMPLEX<thetaSketch>"}, {"name": "n", "type": "long"}]).simpleString())
"""


def test_it_is_imported_where_there_is_no_other_package(tmp_path: Path) -> None:
    (tmp_path / "headgate").symlink_to(PACKAGE, target_is_directory=True)
    command = [sys.executable, "-c", _COLUMNS]
    told = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert (told.stdout.strip(), told.returncode) == ("struct<s:binary,n:bigint>", 0), told.stderr
