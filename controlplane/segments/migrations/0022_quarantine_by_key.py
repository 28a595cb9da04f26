"""Quarantined records are looked for by key."""

from django.db import migrations, models
from django.db.models.functions import MD5


class Migration(migrations.Migration):

    dependencies = [('segments', '0021_complete_until')]

    operations = [
        migrations.AddIndex(
            model_name='quarantinedrecord',
            index=models.Index(models.F('source'), MD5('key'), name='quarantine_by_key'),
        ),
    ]
