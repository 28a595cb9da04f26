"""Spark ships the package ``headgate`` to executors, and nothing else of the project's."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / "headgate"
PAGE = PROJECT / "docs" / "reference" / "spark-connector.md"
_COLUMNS = """
import headgate
from headgate.publishes.columns import struct_of
print(struct_of([{"name": "s", "type": "COMPLEX<thetaSketch>"}, {"name": "n", "type": "long"}]).simpleString())
"""
_ON_THE_DRIVER = """
import sys
import headgate, headgate.sharegroup.session
headgate.read, headgate.register  # what is loaded when it is used
print(*(m.__file__ for n, m in sys.modules.items() if n.partition(".")[0] in ("headgate", "ingestion")), sep="\\n")
"""


def test_it_is_imported_where_there_is_no_other_package(tmp_path: Path) -> None:
    (tmp_path / "headgate").symlink_to(PACKAGE, target_is_directory=True)
    command = [sys.executable, "-c", _COLUMNS]
    told = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert (told.stdout.strip(), told.returncode) == ("struct<s:binary,n:bigint>", 0), told.stderr


def test_what_the_driver_imports_is_what_the_page_has_installed() -> None:
    command = [sys.executable, "-c", _ON_THE_DRIVER]
    told = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    imported = {name for file in told.stdout.split() for name in _imported(Path(file))} - sys.stdlib_module_names
    packages = packages_distributions()
    needed = {packages[name][0] for name in imported - {"headgate", "ingestion"}}
    (line,) = re.findall(r"^pip install (.*)$", PAGE.read_text(), re.MULTILINE)
    installed = {name.partition("==")[0] for name in line.split()}
    brought = {re.split(r"[^\w-]", one)[0].replace("-", "_") for name in installed for one in requires(name) or ()}
    assert installed <= needed <= installed | brought


def test_the_client_and_the_command_line_load_no_spark() -> None:
    code = "import sys, headgate.client, headgate.cli.main; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert not {"pyspark", "pyarrow", "django", "ingestion", "controlplane"} & set(loaded.stdout.split())
    code = "import sys, headgate.client; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert not {"typer", "yaml", "rich"} & set(loaded.stdout.split())


def _imported(file: Path) -> set[str]:
    """First names of what is imported when a file is."""
    nodes = ast.parse(file.read_text()).body
    names = [alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names]
    names += [n.module for n in nodes if isinstance(n, ast.ImportFrom) and n.module and not n.level]
    return {name.partition(".")[0] for name in names}
