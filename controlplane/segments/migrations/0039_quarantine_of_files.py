from django.db import migrations, models
import django.db.models.deletion


class Migration(migrations.Migration):

    dependencies = [
        ('segments', '0038_interval_partitions'),
    ]

    operations = [
        migrations.AlterField(
            model_name='quarantinedrecord',
            name='source',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='quarantined', to='segments.source'),
        ),
        migrations.AddField(
            model_name='quarantinedrecord',
            name='place',
            field=models.TextField(db_default='', default=''),
        ),
    ]
