"""Records that were stored although a field of theirs was no good are counted."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('segments', '0003_interval_sums'),
    ]

    operations = [
        migrations.AddField(
            model_name='writer',
            name='processed_with_error',
            field=models.BigIntegerField(default=0),
        ),
    ]
