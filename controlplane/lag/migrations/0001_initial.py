
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models



class Migration(migrations.Migration):
    initial = True

    dependencies = [("sources", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="LagSample",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("resolution_s", models.IntegerField()),
                ("at", models.DateTimeField()),
                ("observed_at", models.DateTimeField()),
                ("lag", models.BigIntegerField()),
                ("partitions", ArrayField(base_field=models.BigIntegerField(), size=None)),
                ("passed", ArrayField(base_field=models.BigIntegerField(), default=list, size=None)),
                ("in_flight", models.BigIntegerField()),
                ("processed", models.BigIntegerField()),
                ("beside", models.BigIntegerField(db_default=0, default=0)),
                ("redelivered", models.BigIntegerField()),
                ("quarantined", models.BigIntegerField(db_default=0, default=0)),
                ("ended", models.BigIntegerField(db_default=0, default=0)),
                (
                    "source",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="lag_samples", to="sources.source"),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["resolution_s", "at"], name="lag_sample_by_age")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("source", "resolution_s", "at"), name="one_sample_a_stretch_of_time"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="UnreadTimes",
            fields=[
                (
                    "source",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="unread_times",
                        serialize=False,
                        to="sources.source",
                    ),
                ),
                ("observed_at", models.DateTimeField()),
                ("problem", models.TextField(default="")),
                ("retention", models.JSONField(default=dict)),
                ("oldest", models.JSONField(default=dict)),
            ],
        ),
    ]
