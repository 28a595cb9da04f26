"""Segments may say when the first and last records of their rows came; those of before do not."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('segments', '0035_segment_schemas'),
    ]

    operations = [
        migrations.AddField(
            model_name='segmentschema',
            name='extents',
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
