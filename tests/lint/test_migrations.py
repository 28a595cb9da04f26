"""A released schema is fixed: migrations are added, never edited, and are safe beside the version before."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import models
from django.db.migrations import Migration, operations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState, ProjectState

from tests.lint.sources import PROJECT, no_faults
from tests.support.safe_migrations import faults

DECISION = "docs/decisions/0050-a-released-schema-is-only-added-to.md"
_LINES = (PROJECT / "tests/lint/released_migrations.txt").read_text().splitlines()
RELEASED = {path: digest for digest, path in map(str.split, _LINES)}
# Migrations with an operation that is refused but is safe here, each with its reason: "app.name": "reason".
EXCEPTIONS: dict[str, str] = {}


def test_a_released_migration_is_not_edited() -> None:
    paths = {path: PROJECT / path for path in RELEASED}
    assert len(paths) > 15
    changed = [
        path
        for path, file in paths.items()
        if not file.exists() or hashlib.sha256(file.read_bytes()).hexdigest() != RELEASED[path]
    ]
    no_faults(changed, f"these are released: add a migration instead of editing one ({DECISION})")


def test_a_new_migration_is_safe_beside_the_version_before() -> None:
    loader = MigrationLoader(None)
    new = {
        key: migration
        for key, migration in loader.disk_migrations.items()
        if migration.__module__.startswith("controlplane.") and f"{_path(migration)}" not in RELEASED
    }
    found = (
        fault
        for key, migration in sorted(new.items())
        if ".".join(key) not in EXCEPTIONS
        for fault in faults(migration, loader.project_state(key, at_end=False))
    )
    no_faults(found, f"the version before runs beside these ({DECISION})")
    assert EXCEPTIONS.keys() <= {".".join(key) for key in new}, "an exception whose migration is gone"


def _path(migration: Migration) -> str:
    return f"{migration.__module__.replace('.', '/')}.py"


INDEX = models.Index(fields=["size"], name="by_size")
SIZE = models.IntegerField()
SAFE = [
    operations.AddField("box", "note", models.TextField(null=True)),
    operations.AddField("box", "state", models.TextField(db_default="")),
    operations.AlterField("box", "name", models.CharField(max_length=20)),
    operations.AlterField("box", "size", models.IntegerField(null=True)),
    operations.CreateModel("Lid", [("id", models.BigAutoField(primary_key=True)), ("size", SIZE)]),
    operations.SeparateDatabaseAndState(state_operations=[operations.RemoveField("box", "spare")]),
]
UNSAFE = [
    (operations.AddField("box", "note", models.TextField(default="")), "Give it null=True or a db_default"),
    (operations.AddField("box", "code", models.TextField(null=True, unique=True)), "its index blocks writes"),
    (operations.AlterField("box", "name", models.CharField(max_length=5)), "rewrites or narrows"),
    (operations.AlterField("box", "size", models.TextField()), "rewrites or narrows"),
    (operations.AlterField("box", "spare", models.TextField()), "stores NULL"),
    (operations.RemoveField("box", "size"), "one release later"),
    (operations.DeleteModel("Box"), "one release later"),
    (operations.RenameField("box", "size", "width"), "the old name"),
    (operations.AddIndex("box", INDEX), "AddIndexConcurrently"),
    (AddIndexConcurrently("box", INDEX), "atomic = False"),
    (operations.RunPython(print), "in small steps"),
    (operations.RunSQL("SELECT 1"), "EXCEPTIONS"),
    (
        operations.SeparateDatabaseAndState(state_operations=[operations.RemoveField("box", "size")]),
        "neither null nor db_default",
    ),
]


def found_in(*done: operations.base.Operation, atomic: bool = True) -> list[str]:
    before = ProjectState()
    fields: dict[str, models.Field[Any, Any]] = {
        "id": models.BigAutoField(primary_key=True),
        "name": models.CharField(max_length=10),
        "size": models.IntegerField(),
        "spare": models.TextField(null=True),
    }
    before.add_model(ModelState("shop", "Box", list(fields.items())))
    kind = type("Change", (Migration,), {"operations": list(done), "atomic": atomic})
    return list(faults(kind("0002_change", "shop"), before))


@pytest.mark.parametrize("operation", SAFE, ids=lambda o: o.describe())
def test_safe_operations(operation: operations.base.Operation) -> None:
    assert found_in(operation) == []


def test_an_index_of_a_new_table_and_one_that_is_made_beside_writers() -> None:
    table = operations.CreateModel("Lid", [("id", models.BigAutoField(primary_key=True)), ("size", SIZE)])
    assert found_in(table, operations.AddIndex("lid", INDEX)) == []
    assert found_in(AddIndexConcurrently("box", INDEX), atomic=False) == []


@pytest.mark.parametrize(("operation", "reason"), UNSAFE, ids=lambda o: o if isinstance(o, str) else o.describe())
def test_unsafe_operations(operation: operations.base.Operation, reason: str) -> None:
    [fault] = found_in(operation)
    assert fault.startswith("shop.0002_change: ") and reason in fault
