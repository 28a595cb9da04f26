"""One door to each thing: the modules below open it, and all others call them."""

from __future__ import annotations

import ast

import pytest

from tests.lint.sources import files, name_of, no_faults, tree_of

HOUSE = ("controlplane", "frontend", "headgate", "ingestion")
STORAGE = {
    "headgate/folders.py",  # says why it is a second door
    "ingestion/segments/fsspec_storage.py",
    "ingestion/segments/numbered_files.py",  # a file system of ours, for DuckDB
    "ingestion/segments/remote.py",
}
DOORS = {
    "confluent_kafka.ShareConsumer": {"ingestion/share_consumer.py"},
    "pyarrow.fs": STORAGE,
    "fsspec": STORAGE,
    "s3fs": set(),
    "boto3": set(),
}


def imported(tree: ast.Module) -> set[str]:
    """Everything that a module imports, and the packages it is in, with dots."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names | {name.partition(".")[0] for name in names} | {name.rpartition(".")[0] for name in names}


@pytest.mark.parametrize("thing", DOORS)
def test_only_its_door_imports_it(thing: str) -> None:
    found = {name_of(path) for path in files("*.py", *HOUSE) if thing in imported(tree_of(path))}
    no_faults(found - DOORS[thing], f"{thing} has one door: {sorted(DOORS[thing])}")


@pytest.mark.parametrize("line", ["import fsspec", "import fsspec.core", "from fsspec.spec import AbstractFileSystem"])
def test_each_way_to_import_is_found(line: str) -> None:
    assert "fsspec" in imported(ast.parse(line))
    assert "pyarrow.fs" in imported(ast.parse("from pyarrow import fs"))
    assert "pyarrow.fs" in imported(ast.parse("from pyarrow.fs import S3FileSystem"))
