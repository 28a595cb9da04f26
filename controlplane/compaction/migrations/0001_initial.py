from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("datasources", "0001_initial"), ("tasks", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="ConfigChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("document", models.JSONField(null=True)),
                ("suspended", models.BooleanField(db_default=False, default=False)),
                ("author", models.CharField(max_length=150)),
                ("comment", models.CharField(blank=True, max_length=500)),
                ("address", models.CharField(blank=True, max_length=45)),
                ("created_at", models.DateTimeField()),
                (
                    "datasource",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="compaction_changes", to="datasources.datasource"
                    ),
                ),
            ],
            options={"ordering": ["-id"]},
        ),
        migrations.CreateModel(
            name="Configured",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("enabled", models.BooleanField(default=True)),
                ("suspended", models.BooleanField(db_default=False, default=False)),
                ("document", models.JSONField()),
                ("updated_at", models.DateTimeField()),
                (
                    "datasource",
                    models.OneToOneField(
                        on_delete=models.CASCADE, related_name="compaction", to="datasources.datasource"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                ("id", models.CharField(max_length=300, primary_key=True, serialize=False)),
                ("interval_start", models.DateTimeField()),
                ("interval_end", models.DateTimeField()),
                ("tier", models.IntegerField()),
                ("priority", models.IntegerField(default=0)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting for a slot"),
                            ("running", "runs"),
                            ("done", "done"),
                            ("refused", "refused: its segments changed"),
                            ("failed", "failed"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("attempt", models.IntegerField(default=0)),
                ("inputs", ArrayField(base_field=models.UUIDField(), size=None)),
                ("data_schema", models.JSONField()),
                ("index_spec", models.JSONField(default=dict)),
                ("rollup", models.BooleanField()),
                ("max_rows_per_segment", models.IntegerField()),
                ("anew", models.JSONField(null=True)),
                ("partitioned_by", models.TextField(blank=True, db_default="", default="")),
                ("rows_before", models.BigIntegerField()),
                ("bytes_before", models.BigIntegerField()),
                ("rows_after", models.BigIntegerField(null=True)),
                ("bytes_after", models.BigIntegerField(null=True)),
                ("segments_after", models.IntegerField(null=True)),
                ("error", models.TextField(blank=True)),
                ("permanent", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "application",
                    models.ForeignKey(null=True, on_delete=models.SET_NULL, related_name="jobs", to="tasks.resident"),
                ),
                (
                    "datasource",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="compactions", to="datasources.datasource"
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(null=True, on_delete=models.SET_NULL, related_name="merges", to="tasks.task"),
                ),
            ],
            options={
                "ordering": ["-created_at", "-id"],
                "indexes": [
                    models.Index(fields=["datasource", "-created_at", "-id"], name="job_by_datasource"),
                    models.Index(fields=["state", "-priority", "created_at"], name="job_by_state"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ("waiting", "running")), ("task", None)),
                        fields=("datasource", "interval_start", "interval_end", "tier"),
                        name="one_open_job_per_interval_and_tier",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Rewrite",
            fields=[
                (
                    "task",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="rewrite",
                        serialize=False,
                        to="tasks.task",
                    ),
                ),
                ("interval_start", models.DateTimeField()),
                ("interval_end", models.DateTimeField()),
                (
                    "datasource",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="rewrites", to="datasources.datasource"),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["datasource", "interval_start", "interval_end"], name="rewrite_by_interval")
                ]
            },
        ),
    ]
