"""Expressions were SQL alone; now a spec has to say so. Those that are stored mean what they meant."""

from collections.abc import Iterator
from typing import Any

from django.db import migrations


def _expressions(part: Any) -> Iterator[dict[str, Any]]:
    """Transforms and conditions of the type expression, wherever they stand in a transformSpec."""
    if isinstance(part, dict):
        if part.get("type") == "expression":
            yield part
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from _expressions(inner)


def say_sql(apps: Any, schema_editor: Any) -> None:
    for model in (apps.get_model("supervisors", "SpecVersion"), apps.get_model("tasks", "Task")):
        found = model.objects.filter(spec__spec__dataSchema__transformSpec__isnull=False)
        for row in found.iterator():
            silent = [e for e in _expressions(row.spec["spec"]["dataSchema"]["transformSpec"]) if "language" not in e]
            for expression in silent:
                expression["language"] = "sql"
            if silent:
                model.objects.filter(pk=row.pk).update(spec=row.spec)


class Migration(migrations.Migration):
    dependencies = [("supervisors", "0005_autoscaler"), ("tasks", "0006_indexer_leases")]

    operations = [migrations.RunPython(say_sql, migrations.RunPython.noop)]
