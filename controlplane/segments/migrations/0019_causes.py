"""Causes of quarantined and faulty records, and how many records each has by the hour, which triggers count.

A trigger adds rows and changes none, so that no publish waits for another. The triggers stand before the next
migration gives the records that are there their causes: that counts them.
"""

import django.db.models.deletion
from django.db import migrations, models

SUMMED = """
    INSERT INTO segments_causesum (datasource_id, cause, reason, hour, records, kept, first_at, last_at)
    SELECT datasource_id, cause, reason, date_trunc('hour', created_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' AS hour,
           sum(n), sum(n) FILTER (WHERE state = 'kept'),
           min(created_at) FILTER (WHERE n > 0), max(created_at) FILTER (WHERE n > 0)
    FROM ({changed}) changed WHERE cause <> ''
    GROUP BY datasource_id, cause, reason, hour
    HAVING sum(n) <> 0 OR sum(n) FILTER (WHERE state = 'kept') <> 0
"""
COLUMNS = "datasource_id, cause, reason, created_at, state"
ADDED = f"SELECT {COLUMNS}, 1 AS n FROM added"
TAKEN = f"SELECT {COLUMNS}, -1 AS n FROM taken"
# Name, event, its rows as the function sees them, and which of them count how.
TRIGGERS = (
    ("insert", "INSERT", "NEW TABLE AS added", ADDED),
    ("delete", "DELETE", "OLD TABLE AS taken", TAKEN),
    ("update", "UPDATE", "OLD TABLE AS taken NEW TABLE AS added", f"{ADDED} UNION ALL {TAKEN}"),
)


def trigger(name: str, event: str, rows: str, changed: str) -> migrations.RunSQL:
    summed = SUMMED.format(changed=changed).replace("sum(n) FILTER", "coalesce(sum(n) FILTER")
    summed = summed.replace("(WHERE state = 'kept')", "(WHERE state = 'kept'), 0)")
    function = f"segments_count_causes_on_{name}"
    return migrations.RunSQL(
        f"""
        CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN {summed}; RETURN NULL; END $$;
        CREATE TRIGGER count_causes_on_{name} AFTER {event} ON segments_quarantinedrecord
        REFERENCING {rows} FOR EACH STATEMENT EXECUTE FUNCTION {function}();
        """,
        f"DROP TRIGGER count_causes_on_{name} ON segments_quarantinedrecord; DROP FUNCTION {function}();",
    )


class Migration(migrations.Migration):

    dependencies = [
        ('datasources', '0002_initial'),
        ('segments', '0018_kinds_by_traits'),
    ]

    operations = [
        migrations.AddField(
            model_name='faultyrecord',
            name='cause',
            field=models.CharField(db_default='', default='', max_length=16),
        ),
        migrations.AddField(
            model_name='quarantinedrecord',
            name='cause',
            field=models.CharField(db_default='', default='', max_length=16),
        ),
        migrations.AddIndex(
            model_name='faultyrecord',
            index=models.Index(fields=['task_id', 'cause', '-id'], name='faulty_by_cause'),
        ),
        migrations.AddIndex(
            model_name='quarantinedrecord',
            index=models.Index(fields=['datasource', 'cause', '-id'], name='quarantine_by_cause'),
        ),
        migrations.CreateModel(
            name='CauseSum',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cause', models.CharField(max_length=16)),
                ('reason', models.CharField(max_length=20)),
                ('hour', models.DateTimeField()),
                ('records', models.BigIntegerField()),
                ('kept', models.BigIntegerField()),
                ('first_at', models.DateTimeField(null=True)),
                ('last_at', models.DateTimeField(null=True)),
                ('datasource', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='datasources.datasource')),
            ],
            options={
                'indexes': [models.Index(fields=['datasource', 'cause'], name='cause_sum')],
            },
        ),
        *(trigger(*given) for given in TRIGGERS),
        migrations.RunSQL(
            """
            CREATE VIEW segments_quarantinecause AS
            SELECT min(id) AS id, datasource_id, cause, reason, sum(records)::int8 AS records, sum(kept)::int8 AS kept,
                   min(first_at) AS first_at, max(last_at) AS last_at
            FROM segments_causesum GROUP BY datasource_id, cause, reason
            HAVING sum(records) > 0 AND max(last_at) IS NOT NULL
            """,
            "DROP VIEW segments_quarantinecause",
        ),
        migrations.CreateModel(
            name='QuarantineCause',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cause', models.CharField(max_length=16)),
                ('reason', models.CharField(max_length=20)),
                ('records', models.BigIntegerField()),
                ('kept', models.BigIntegerField()),
                ('first_at', models.DateTimeField()),
                ('last_at', models.DateTimeField()),
            ],
            options={'db_table': 'segments_quarantinecause', 'managed': False},
        ),
    ]
