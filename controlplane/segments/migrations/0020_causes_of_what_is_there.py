"""Records that were quarantined, or faulty, before causes were told get theirs, some at a time."""

from django.db import migrations, transaction

from ingestion.specs.causes import cause_of

AT_ONCE = 2000
FILL = "UPDATE {table} SET cause = w.cause FROM unnest(%s::int8[], %s::text[]) AS w(id, cause) WHERE {table}.id = w.id"


def fill(apps, schema_editor):
    _fill(schema_editor.connection, apps.get_model("segments", "QuarantinedRecord"), None)
    _fill(schema_editor.connection, apps.get_model("segments", "FaultyRecord"), "processed_with_error")


def _fill(connection, model, reason):
    fields, after = ("id", "error") if reason else ("id", "error", "reason"), 0
    while rows := list(model.objects.filter(pk__gt=after).order_by("pk").values_list(*fields)[:AT_ONCE]):
        causes = [cause_of(*(given or [reason]), error).fingerprint for _, error, *given in rows]
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(FILL.format(table=model._meta.db_table), [[row[0] for row in rows], causes])
        after = rows[-1][0]


class Migration(migrations.Migration):

    atomic = False
    dependencies = [('segments', '0019_causes')]
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
