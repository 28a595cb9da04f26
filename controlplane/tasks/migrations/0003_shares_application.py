from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tasks", "0002_cluster_driver"),
    ]

    operations = [
        migrations.AddField(
            model_name="task",
            name="shares_application",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
