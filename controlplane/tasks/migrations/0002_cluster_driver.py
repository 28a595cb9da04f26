
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tasks", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="ClusterDriver",
            fields=[
                ("name", models.CharField(max_length=300, primary_key=True, serialize=False)),
                ("driver_id", models.CharField(blank=True, default="", max_length=200)),
                ("log_address", models.CharField(blank=True, default="", max_length=500)),
                ("submitted_at", models.DateTimeField()),
            ],
        ),
    ]
