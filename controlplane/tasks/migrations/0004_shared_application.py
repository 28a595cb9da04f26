from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tasks", "0003_shares_application"),
    ]

    operations = [
        migrations.AddField(
            model_name="task",
            name="shared_application",
            field=models.CharField(blank=True, db_default="", default="", max_length=100),
        ),
    ]
