"""Fields that a spec did not name were always discovered with types; now a spec has to say so, else they are strings.

Those that are stored mean what they meant.
"""

from typing import Any

from django.db import migrations


def say_types(apps: Any, schema_editor: Any) -> None:
    for model in (apps.get_model("supervisors", "SpecVersion"), apps.get_model("tasks", "Task")):
        for row in model.objects.filter(spec__spec__dataSchema__isnull=False).iterator():
            schema = row.spec["spec"]["dataSchema"]
            written = schema.get("dimensionsSpec") or {}
            if written.get("useSchemaDiscovery") or (written.get("dimensions") and not written.get("includeAllDimensions")):
                continue
            schema["dimensionsSpec"] = {**written, "useSchemaDiscovery": True}
            model.objects.filter(pk=row.pk).update(spec=row.spec)


class Migration(migrations.Migration):
    dependencies = [("supervisors", "0010_switch"), ("tasks", "0012_residents")]

    operations = [migrations.RunPython(say_types, migrations.RunPython.noop)]
