"""DuckDB locked down: no file, no network, no extension, and no way to unlock it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from ingestion.decode import engine
from ingestion.decode.engine import RECORDS, Engine


@pytest.fixture(name="locked")
def locked_engine() -> Iterator[Engine]:
    made = Engine(100_000_000)
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Holds what an open DuckDB reads."""
    (tmp_path / "f.csv").write_text("a,b\n1,2\n")
    (tmp_path / "f.json").write_text('{"a": 1}')
    with duckdb.connect(str(tmp_path / "f.duckdb")) as open_one:
        open_one.execute("CREATE TABLE t(a INTEGER)")
        open_one.execute(f"COPY (SELECT 1 AS a) TO '{tmp_path}/f.parquet'")
    return tmp_path


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{folder}/f.csv')",
        "SELECT * FROM read_blob('{folder}/f.csv')",
        "SELECT * FROM read_csv('{folder}/f.csv')",
        "SELECT * FROM read_json('{folder}/f.json')",
        "SELECT * FROM read_parquet('{folder}/f.parquet')",
        "SELECT * FROM '{folder}/f.parquet'",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM read_text('http://127.0.0.1:1/f')",
        "COPY (SELECT 1) TO '{folder}/new.csv'",
        "EXPORT DATABASE '{folder}/new'",
        "ATTACH '{folder}/f.duckdb' AS other",
        "ATTACH '{folder}/new.duckdb' AS other",
        "INSTALL httpfs",
        "INSTALL '{folder}/f.duckdb_extension'",
        "LOAD httpfs",
        "LOAD '{folder}/f.duckdb_extension'",
    ],
)
def test_nothing_outside_is_reached(locked: Engine, folder: Path, sql: str) -> None:
    """Row 17 of the security checklist: should a grammar let something through, DuckDB refuses it."""
    before = sorted(folder.iterdir())
    with pytest.raises(duckdb.PermissionException, match="disabled"):
        locked.execute(sql.format(folder=folder))
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "sql",
    [
        "SET enable_external_access = true",
        "SET GLOBAL enable_external_access = true",
        "RESET enable_external_access",
        "SET lock_configuration = false",
        "RESET lock_configuration",
        "SET memory_limit = '1TB'",
        "SET threads = 8",
        "SET temp_directory = '/tmp'",
        "SET autoinstall_known_extensions = true",
        "SET allow_community_extensions = true",
        "SET TimeZone = 'Asia/Tokyo'",
    ],
)
def test_no_setting_can_be_changed(locked: Engine, sql: str) -> None:
    """Row 17 of the security checklist: what is locked stays so."""
    with pytest.raises(duckdb.InvalidInputException, match="the configuration has been locked"):
        locked.execute(sql)


def test_engines_of_one_limit_know_nothing_of_each_other() -> None:
    """They are connections to one instance: sources, prepared statements, interrupts and ends are each one's own."""
    one, other = Engine(100_000_000), Engine(100_000_000)
    doubled = f"SELECT j || j FROM {RECORDS}"
    said = [e.run(doubled, RECORDS, pa.table({"j": [text]})) for e, text in ((one, "a"), (other, "b"))]
    assert [table.column(0).to_pylist() for table in said] == [["aa"], ["bb"]]
    one.interrupt()
    assert other.run(doubled, RECORDS, pa.table({"j": ["c"]})).column(0).to_pylist() == ["cc"]
    one.close()
    assert other.run(doubled, RECORDS, pa.table({"j": ["d"]})).column(0).to_pylist() == ["dd"]
    other.close()


def test_after_an_error_that_ends_an_instance_the_next_engine_has_another() -> None:
    """DuckDB answers nobody any more after such an error, whichever connection met it."""
    before = engine._open_database(100_000_000, os.getpid())
    with pytest.raises(duckdb.FatalException), engine._readable_errors():
        raise duckdb.FatalException("database has been invalidated because of a previous fatal error")
    assert engine._open_database(100_000_000, os.getpid()) is not before
    with pytest.raises(duckdb.ConversionException), engine._readable_errors():
        raise duckdb.ConversionException("of one record")
    assert engine._open_database(100_000_000, os.getpid()) is engine._open_database(100_000_000, os.getpid())
