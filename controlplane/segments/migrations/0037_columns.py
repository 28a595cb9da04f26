"""Columns have ids. Those of segments that are there get theirs now, in the order in which they came: their files have
none, and who reads them by their names finds ids for these.
"""

import django.db.models.deletion
from django.db import migrations, models

from controlplane.segments.schema_models import fingerprint


def hand_out(apps, editor):
    Column, Schema = apps.get_model('segments', 'Column'), apps.get_model('segments', 'SegmentSchema')
    for datasource in Schema.objects.order_by().values_list('datasource_id', flat=True).distinct():
        schemas = Schema.objects.filter(datasource_id=datasource).order_by('pk').values_list('columns', flat=True)
        found = {(c['name'], c['type']): None for columns in schemas.iterator() for c in columns}
        Column.objects.bulk_create(numbered(Column, datasource, found), batch_size=5_000)


def numbered(Column, datasource, found):
    last = 1  # that of the time
    for name, kind in found:
        number = 1 if (name, kind) == ('__time', 'timestamp') else last + 1
        element = number + 1 if kind == 'strings' else None
        last = max(last, element or number)
        mark = fingerprint([{'name': name, 'type': kind}])
        yield Column(
            datasource_id=datasource, name=name, type=kind, fingerprint=mark, number=number, element=element
        )


class Migration(migrations.Migration):

    dependencies = [
        ('datasources', '0005_clearing_datasources'),
        ('segments', '0036_segment_extents'),
    ]

    operations = [
        migrations.CreateModel(
            name='Column',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.TextField()),
                ('type', models.CharField(max_length=100)),
                ('fingerprint', models.CharField(max_length=64)),
                ('number', models.IntegerField()),
                ('element', models.IntegerField(null=True)),
                ('datasource', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='datasources.datasource')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('datasource', 'fingerprint'), name='one_id_per_column'), models.UniqueConstraint(fields=('datasource', 'number'), name='one_column_per_id')],
            },
        ),
        migrations.RunPython(hand_out, migrations.RunPython.noop),
    ]
