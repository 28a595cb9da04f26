"""DuckDB with its extension for Iceberg, in an environment of its own: Headgate's DuckDB has no such extension yet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from controlplane.embedded.home import default_cache
from controlplane.embedded.waiting import file_lock

VERSION = "1.5.5"
_REQUIREMENTS = Path(__file__).with_suffix(".txt")
_LONGEST_INSTALL_S = 600.0
# Connects to the catalog at ``sys.argv[1]`` as ``headgate``, and prints the rows of each further argument as JSON.
_PROGRAM = """
import glob, json, os, sys
import duckdb, duckdb_extension_avro, duckdb_extension_httpfs, duckdb_extension_iceberg

db = duckdb.connect()
for package in (duckdb_extension_avro, duckdb_extension_httpfs, duckdb_extension_iceberg):
    [file] = glob.glob(f"{package.__path__[0]}/extensions/*/*.duckdb_extension")
    db.load_extension(file)
db.execute("SET TimeZone = 'UTC'")
db.execute("SET enable_progress_bar = false")  # it prints between the rows when a query takes some seconds
db.execute(f"CREATE SECRET headgate_token (TYPE iceberg, TOKEN '{os.environ['HEADGATE_TOKEN']}')")
db.execute(f"ATTACH '' AS headgate (TYPE iceberg, ENDPOINT '{sys.argv[1]}', SECRET headgate_token)")
for query in sys.argv[2:]:
    print(json.dumps(db.sql(query).fetchall(), default=str))
"""


def duckdb_reader() -> Path:
    """Its Python. The first time, packages are installed into the cache folder."""
    folder = default_cache() / f"duckdb-reader-{VERSION}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(folder.with_name(folder.name + ".lock"), _LONGEST_INSTALL_S, None):
        if not (folder / "complete").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            install = [*("-m", "pip", "install", "--quiet", "--require-hashes", "-r"), str(_REQUIREMENTS)]
            subprocess.run([str(folder / "bin" / "python"), *install], check=True, timeout=_LONGEST_INSTALL_S)
            (folder / "complete").touch()
    return folder / "bin" / "python"


def query_program(catalog: str, queries: list[str]) -> list[str]:
    """The arguments for this Python that run these queries."""
    return ["-c", _PROGRAM, catalog, *queries]
