from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('datasources', '0004_deleted_datasources'),
    ]

    operations = [
        migrations.AddField(
            model_name='datasource',
            name='clearing',
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
