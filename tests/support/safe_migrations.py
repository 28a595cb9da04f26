"""Whether a migration may run while the version before reads and writes: see decision 0050."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.postgres import operations as postgres
from django.db import connection
from django.db.migrations import Migration, operations
from django.db.migrations.state import ProjectState
from django.db.models import NOT_PROVIDED, Field

# Why each is refused, and what to do instead.
REFUSED = {
    operations.RemoveField: "the version before reads the column. Remove it from the state only, and drop it "
    "one release later by RunSQL",
    operations.DeleteModel: "the version before reads the table. Remove it from the state only, and drop it "
    "one release later by RunSQL",
    operations.RenameField: "the version before knows the old name. Add a column, and fill it in small steps",
    operations.RenameModel: "the version before knows the old name. Keep it by db_table",
    operations.AlterModelTable: "the version before knows the old name. Keep it",
    operations.AddIndex: "this blocks writes. Use AddIndexConcurrently, with atomic = False",
    operations.RemoveIndex: "this blocks reads. Use RemoveIndexConcurrently, with atomic = False",
    operations.AddConstraint: "this blocks writes while it checks all rows. Use AddConstraintNotValid, and "
    "ValidateConstraint in a migration after it",
    operations.RunPython: "rows that are changed stay locked until the migration ends. Change them in small steps by a "
    "job of the new version",
    operations.RunSQL: "nobody can tell what it locks. Name it in EXCEPTIONS with the reason why it is safe",
}
_FREE = (
    operations.AlterModelOptions,
    operations.AlterModelManagers,
    operations.RemoveConstraint,
    postgres.AddConstraintNotValid,
    postgres.ValidateConstraint,
)


def faults(migration: Migration, before: ProjectState) -> Iterator[str]:
    """Each operation that is not safe, with what to do. ``before``: all models as they are without it."""
    state, created = before.clone(), set[str]()
    for operation in migration.operations:
        for reason in _faults_of(operation, state, migration, created):
            yield f"{migration.app_label}.{migration.name}: {operation.describe()}: {reason}"
        operation.state_forwards(migration.app_label, state)


def _faults_of(operation: Any, state: ProjectState, migration: Migration, created: set[str]) -> Iterator[str]:
    model = str(getattr(operation, "model_name", getattr(operation, "name", "")) or "").lower()
    if isinstance(operation, operations.CreateModel):
        created.add(model)
    elif model in created or isinstance(operation, _FREE):  # nobody uses the table yet
        return
    elif isinstance(operation, operations.SeparateDatabaseAndState):
        yield from _faults_of_parts(operation, state, migration, created)
    elif isinstance(operation, postgres.AddIndexConcurrently | postgres.RemoveIndexConcurrently):
        if migration.atomic:
            yield "it needs atomic = False"
    elif isinstance(operation, operations.AddField):
        yield from _faults_of_new(operation.field)
    elif isinstance(operation, operations.AlterField):
        old = state.models[migration.app_label, model].fields[operation.name]
        yield from _faults_of_change(old, operation.field)
    else:
        yield REFUSED.get(type(operation), "this kind of operation is not known to be safe")


def _faults_of_parts(operation: Any, state: ProjectState, migration: Migration, created: set[str]) -> Iterator[str]:
    for part in operation.database_operations:
        yield from _faults_of(part, state, migration, created)
    for part in operation.state_operations:
        if isinstance(part, operations.RemoveField):
            old = state.models[migration.app_label, part.model_name_lower].fields[part.name]
            if not _may_be_left_out(old):
                yield f"the new version leaves {part.name} out, but it has neither null nor db_default"


def _faults_of_new(field: Any) -> Iterator[str]:  # the stubs of Field lack db_index
    if not (field.many_to_many or _may_be_left_out(field)):
        yield "the version before leaves it out. Give it null=True or a db_default"
    if field.unique or (field.db_index and not field.many_to_many):
        yield "its index blocks writes. Set db_index=False, and use AddIndexConcurrently"
    if field.get_internal_type() == "ForeignKey" and field.db_constraint:
        yield "its constraint locks both tables. Set db_constraint=False"


def _faults_of_change(old: Any, new: Any) -> Iterator[str]:
    lengths = [f.max_length or 0 for f in (old, new)]
    same_kind = old.get_internal_type() == new.get_internal_type() and lengths[0] <= lengths[1]
    if old.db_type(connection) != new.db_type(connection) and not (same_kind and lengths[0]):
        yield "another type rewrites or narrows the column. Add a column"
    if old.null and not new.null:
        yield "the version before stores NULL. Wait for the next release"
    elif _may_be_left_out(old) and not _may_be_left_out(new):
        yield "the version before may leave it out. Keep its db_default"
    if (new.unique and not old.unique) or (new.db_index and not old.db_index):
        yield "its index blocks writes. Use AddIndexConcurrently"


def _may_be_left_out(field: Field[Any, Any]) -> bool:
    return bool(field.null) or field.db_default is not NOT_PROVIDED or field.primary_key
