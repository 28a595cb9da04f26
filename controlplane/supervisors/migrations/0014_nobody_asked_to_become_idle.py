"""Supervisors never became idle, and what they were to do then stood in every stored spec, asked for or not.

Those that are stored, and drafts of them, go on as they did; a task by hand ends when it is idle without being asked.
"""

from typing import Any

from django.db import migrations


def forget(apps: Any, schema_editor: Any) -> None:
    specs = ((apps.get_model("supervisors", "SpecVersion"), "spec"), (apps.get_model("tasks", "Task"), "spec"))
    for model, field in (*specs, (apps.get_model("loading", "Draft"), "document")):
        asked = {f"{field}__spec__ioConfig__idleConfig__enabled": True}
        for row in model.objects.filter(**asked).iterator():
            document = getattr(row, field)
            del document["spec"]["ioConfig"]["idleConfig"]["enabled"]
            model.objects.filter(pk=row.pk).update(**{field: document})


class Migration(migrations.Migration):
    dependencies = [("supervisors", "0013_idle"), ("tasks", "0012_residents"), ("loading", "0001_drafts")]

    operations = [migrations.RunPython(forget, migrations.RunPython.noop)]
