"""Each segment names its columns' schema; before, each repeated them. A million rows take about a minute."""

import django.db.models.deletion
from django.db import migrations, models

from controlplane.segments.schema_models import fingerprint

_FILL = """
    UPDATE segments_segment s SET schema_id = k.id FROM segments_segmentschema k
    WHERE k.datasource_id = s.datasource_id AND k.columns = s.columns
"""


def name_schemas(apps, editor):
    Segment, Schema = apps.get_model('segments', 'Segment'), apps.get_model('segments', 'SegmentSchema')
    there = Segment.objects.order_by().values_list('datasource_id', 'columns').distinct()
    Schema.objects.bulk_create(
        (Schema(datasource_id=d, fingerprint=fingerprint(columns), columns=columns) for d, columns in there),
        ignore_conflicts=True,
    )
    editor.execute(_FILL)


class Migration(migrations.Migration):

    dependencies = [
        ('datasources', '0003_masked_columns'),
        ('segments', '0034_woken_supervisors'),
    ]

    operations = [
        migrations.CreateModel(
            name='SegmentSchema',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('fingerprint', models.CharField(max_length=64)),
                ('columns', models.JSONField()),
                ('datasource', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='schemas', to='datasources.datasource')),
            ],
        ),
        migrations.AddConstraint(
            model_name='segmentschema',
            constraint=models.UniqueConstraint(fields=('datasource', 'fingerprint'), name='one_schema_per_fingerprint'),
        ),
        migrations.AddField(
            model_name='segment',
            name='schema',
            field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='segments.segmentschema'),
        ),
        # What it writes is checked at once: the table can't be changed while that is due.
        migrations.RunSQL('SET CONSTRAINTS ALL IMMEDIATE', migrations.RunSQL.noop),
        migrations.RunPython(name_schemas),
        migrations.RemoveField(model_name='segment', name='columns'),
        migrations.AlterField(
            model_name='segment',
            name='schema',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='segments.segmentschema'),
        ),
    ]
