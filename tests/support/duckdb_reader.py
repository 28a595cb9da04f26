"""DuckDB with its extension for Iceberg, in an environment of its own: Headgate's DuckDB has no such extension yet."""

from __future__ import annotations

from pathlib import Path

from tests.support.own_environment import python_with

VERSION = "1.5.5"
# Connects to the catalog at ``sys.argv[1]`` as ``headgate``, and prints the rows of each line of its input as JSON.
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
for query in sys.stdin:
    print(json.dumps(db.sql(query).fetchall(), default=str), flush=True)
"""


def duckdb_reader() -> Path:
    """Its Python."""
    return python_with(f"duckdb-reader-{VERSION}", Path(__file__).with_suffix(".txt"))


def environment(secret: str) -> dict[str, str]:
    """What the program needs besides its arguments. ``secret``: an API token."""
    return {"HEADGATE_TOKEN": secret, "NO_PROXY": "*"}


def query_program(catalog: str) -> list[str]:
    """The command that runs the queries of its input."""
    return [str(duckdb_reader()), "-c", _PROGRAM, catalog]
