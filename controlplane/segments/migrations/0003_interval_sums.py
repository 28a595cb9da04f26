"""Each interval keeps the sums of its used segments; those that are there are summed up."""

from django.db import migrations, models

_SUM_UP = """
INSERT INTO segments_interval
    (datasource_id, start, "end", version, next_partition, segments, rows, size_bytes, min_time, max_time)
SELECT datasource_id, interval_start, interval_end, max(version), max(partition_num) + 1, count(*), sum(rows),
       sum(size_bytes), min(min_time), max(max_time)
FROM segments_segment WHERE used GROUP BY 1, 2, 3
ON CONFLICT (datasource_id, start, "end") DO UPDATE SET
    segments = excluded.segments, rows = excluded.rows, size_bytes = excluded.size_bytes,
    min_time = excluded.min_time, max_time = excluded.max_time
"""


class Migration(migrations.Migration):

    dependencies = [
        ('segments', '0002_receipts_by_day'),
    ]

    operations = [
        migrations.AddField(
            model_name='interval',
            name='max_time',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='interval',
            name='min_time',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='interval',
            name='rows',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='interval',
            name='segments',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='interval',
            name='size_bytes',
            field=models.BigIntegerField(default=0),
        ),
        migrations.RunSQL(_SUM_UP, migrations.RunSQL.noop),
    ]
