"""Records that were stored with a faulty field are kept for their task's report."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('datasources', '0002_initial'),
        ('segments', '0006_rates_and_resets'),
    ]

    operations = [
        migrations.CreateModel(
            name='FaultyRecord',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task_id', models.CharField(max_length=300)),
                ('partition', models.IntegerField()),
                ('offset', models.BigIntegerField()),
                ('timestamp_ms', models.BigIntegerField(null=True)),
                ('delivery_count', models.IntegerField()),
                ('error', models.TextField()),
                ('payload', models.BinaryField(null=True)),
                ('payload_size', models.IntegerField(null=True)),
                ('created_at', models.DateTimeField()),
                ('datasource', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='faulty', to='datasources.datasource')),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='faulty', to='segments.source')),
            ],
            options={
                'indexes': [models.Index(fields=['task_id', '-id'], name='faulty_by_task')],
            },
        ),
    ]
