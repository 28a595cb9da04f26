"""Sums of intervals by day, and triggers that name the days whose intervals change.

The triggers stand before what is there is summed up, in one transaction: nothing is missed. A million intervals take some
seconds, in which no publish commits.
"""

import django.db.models.deletion
from django.db import migrations, models

import controlplane.segments.interval_models

DAY = "date_bin('24 hours', start, 'epoch'::timestamptz)"
# Name, event, its rows as the function sees them, and all of those.
TRIGGERS = (
    ("insert", "INSERT", "NEW TABLE AS added", "added"),
    ("delete", "DELETE", "OLD TABLE AS taken", "taken"),
    ("update", "UPDATE", "OLD TABLE AS taken NEW TABLE AS added",
     "(SELECT datasource_id, start FROM added UNION ALL SELECT datasource_id, start FROM taken)"),
)
SUMS = """
    count(*) AS intervals, sum(i.segments)::int8 AS segments, sum(i.rows)::int8 AS rows,
    sum(i.size_bytes)::int8 AS size_bytes, min(i.start) AS start, max(i."end") AS "end", min(i.min_time) AS min_time,
    max(i.max_time) AS max_time, min(i.version) AS lowest_version, max(i.version) AS highest_version,
    range_agg(tstzrange(i.start, i."end")) AS covered
"""
COLUMNS = """
    intervals, segments, rows, size_bytes, start, "end", min_time, max_time, lowest_version, highest_version, covered
"""
FILL = f"""
    INSERT INTO segments_intervalday (datasource_id, day, {COLUMNS})
    SELECT i.datasource_id, {DAY}, {SUMS} FROM segments_interval i WHERE i.segments > 0 GROUP BY 1, 2
"""
# Lateral: day by day through the index. A join might hash all intervals.
VIEW = f"""
    CREATE VIEW segments_daysum AS
    SELECT id, datasource_id, day, {COLUMNS} FROM segments_intervalday d
    WHERE NOT EXISTS (
        SELECT FROM segments_intervalchange c WHERE c.datasource_id = d.datasource_id AND c.day = d.day
    )
    UNION ALL
    SELECT s.id, c.datasource_id, c.day, {COLUMNS}
    FROM (SELECT DISTINCT datasource_id, day FROM segments_intervalchange) c, LATERAL (
        SELECT min(i.id) AS id, {SUMS} FROM segments_interval i
        WHERE i.datasource_id = c.datasource_id AND i.start >= c.day AND i.start < c.day + interval '24 hours'
          AND i.segments > 0
        HAVING count(*) > 0
    ) s
"""


def trigger(name: str, event: str, rows: str, changed: str) -> migrations.RunSQL:
    function = f"segments_name_days_on_{name}"
    return migrations.RunSQL(
        f"""
        CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO segments_intervalchange (datasource_id, day) SELECT DISTINCT datasource_id, {DAY} FROM {changed} c;
            RETURN NULL;
        END $$;
        CREATE TRIGGER name_days_on_{name} AFTER {event} ON segments_interval
        REFERENCING {rows} FOR EACH STATEMENT EXECUTE FUNCTION {function}();
        """,
        f"DROP TRIGGER name_days_on_{name} ON segments_interval; DROP FUNCTION {function}();",
    )


class Migration(migrations.Migration):

    dependencies = [
        ('datasources', '0003_masked_columns'),
        ('segments', '0026_events_of_quotas'),
    ]

    operations = [
        # Other indexes begin with the datasource, and by this one alone a day would be looked for in all of them.
        migrations.AlterField(
            model_name='interval',
            name='datasource',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='intervals', to='datasources.datasource'),
        ),
        migrations.AlterField(
            model_name='segment',
            name='datasource',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='segments', to='datasources.datasource'),
        ),
        migrations.CreateModel(
            name='IntervalChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateTimeField()),
                ('datasource', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='datasources.datasource')),
            ],
        ),
        migrations.CreateModel(
            name='IntervalDay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateTimeField()),
                ('intervals', models.BigIntegerField()),
                ('segments', models.BigIntegerField()),
                ('rows', models.BigIntegerField()),
                ('size_bytes', models.BigIntegerField()),
                ('start', models.DateTimeField()),
                ('end', models.DateTimeField()),
                ('min_time', models.DateTimeField(null=True)),
                ('max_time', models.DateTimeField(null=True)),
                ('lowest_version', models.CharField(max_length=30)),
                ('highest_version', models.CharField(max_length=30)),
                ('covered', controlplane.segments.interval_models.Spans()),
                ('datasource', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='datasources.datasource')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('datasource', 'day'), name='one_sum_a_day')],
            },
        ),
        *(trigger(*given) for given in TRIGGERS),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.RunSQL(VIEW, "DROP VIEW segments_daysum"),
        migrations.CreateModel(
            name='DaySum',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateTimeField()),
                ('intervals', models.BigIntegerField()),
                ('segments', models.BigIntegerField()),
                ('rows', models.BigIntegerField()),
                ('size_bytes', models.BigIntegerField()),
                ('start', models.DateTimeField()),
                ('end', models.DateTimeField()),
                ('min_time', models.DateTimeField(null=True)),
                ('max_time', models.DateTimeField(null=True)),
                ('lowest_version', models.CharField(max_length=30)),
                ('highest_version', models.CharField(max_length=30)),
                ('datasource', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='datasources.datasource')),
            ],
            options={
                'db_table': 'segments_daysum',
                'managed': False,
            },
        ),
    ]
