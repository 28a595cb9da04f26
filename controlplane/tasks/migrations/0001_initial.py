from django.conf import settings
from django.db import migrations, models

from controlplane.tasks.models import task_kinds


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("datasources", "0001_initial"),
        ("sources", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CompactionShare",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("ratio", models.FloatField()),
                ("most", models.IntegerField(null=True)),
                ("updated_at", models.DateTimeField()),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="one_share_of_compaction")]
            },
        ),
        migrations.CreateModel(
            name="Host",
            fields=[
                ("name", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("folder", models.CharField(max_length=64)),
                ("identity", models.CharField(max_length=300)),
                ("seen_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Resident",
            fields=[
                ("id", models.CharField(max_length=300, primary_key=True, serialize=False)),
                ("token_hash", models.CharField(max_length=64)),
                ("slots", models.IntegerField()),
                ("finishing", models.BooleanField(default=False)),
                ("launched_at", models.DateTimeField()),
                ("host", models.CharField(blank=True, db_default="", default="", max_length=255)),
                ("last_heartbeat_at", models.DateTimeField(null=True)),
                ("idle_since", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("error", models.TextField(blank=True)),
            ],
            options={
                "ordering": ["-launched_at"],
                "constraints": [
                    models.UniqueConstraint(
                        models.Value(1), condition=models.Q(("ended_at", None)), name="one_resident_at_a_time"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Task",
            fields=[
                ("id", models.CharField(max_length=300, primary_key=True, serialize=False)),
                ("kind", models.CharField(choices=task_kinds, max_length=20)),
                ("supervisor_id", models.CharField(blank=True, max_length=200)),
                ("spec_version", models.IntegerField(null=True)),
                ("replica_group", models.CharField(blank=True, db_default="", default="", max_length=300)),
                ("spec", models.JSONField()),
                ("batch_spec", models.JSONField(null=True)),
                ("secrets", models.TextField(blank=True)),
                ("ranges", models.JSONField(default=list)),
                (
                    "replay_mode",
                    models.CharField(
                        blank=True,
                        choices=[("ingest", "ingest"), ("produce", "produce again")],
                        db_default="",
                        max_length=10,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("PENDING", "Pending"),
                            ("RUNNING", "Running"),
                            ("SUCCESS", "Success"),
                            ("FAILED", "Failed"),
                        ],
                        default="PENDING",
                        max_length=10,
                    ),
                ),
                (
                    "goal",
                    models.CharField(
                        choices=[("continue", "Run"), ("finish", "Finish"), ("stop", "Stop")],
                        default="continue",
                        max_length=10,
                    ),
                ),
                ("indexers_wanted", models.IntegerField(default=1)),
                ("slots", models.IntegerField(default=0)),
                ("token_hash", models.CharField(blank=True, max_length=64)),
                ("created_at", models.DateTimeField()),
                ("launched_at", models.DateTimeField(null=True)),
                ("host", models.CharField(blank=True, db_default="", default="", max_length=255)),
                ("started_at", models.DateTimeField(null=True)),
                ("last_heartbeat_at", models.DateTimeField(null=True)),
                ("without_slot_since", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("last_activity_at", models.DateTimeField(null=True)),
                ("error", models.TextField(blank=True)),
                ("message", models.TextField(blank=True)),
                ("observation", models.JSONField(default=dict)),
                ("topic_missed", models.BooleanField(db_default=False, default=False)),
                ("parts", models.IntegerField(db_default=0, default=0)),
                ("parts_done", models.IntegerField(db_default=0, default=0)),
                ("unread", models.JSONField(db_default=[], default=list)),
                ("given_up", models.JSONField(db_default={}, default=dict)),
                ("quarantined_noted", models.BigIntegerField(db_default=0, default=0)),
                (
                    "datasource",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="tasks", to="datasources.datasource"),
                ),
                (
                    "replay_source",
                    models.ForeignKey(null=True, on_delete=models.CASCADE, related_name="+", to="sources.source"),
                ),
                (
                    "submitted_by",
                    models.ForeignKey(
                        null=True, on_delete=models.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-id"],
                "indexes": [
                    models.Index(fields=["-created_at", "-id"], name="task_newest_first"),
                    models.Index(fields=["status"], name="task_by_status"),
                    models.Index(fields=["supervisor_id", "-created_at", "-id"], name="task_by_supervisor"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Indexer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.IntegerField()),
                ("epoch", models.IntegerField(default=0)),
                ("state", models.CharField(default="starting", max_length=20)),
                ("pid", models.IntegerField(default=0)),
                ("in_flight", models.IntegerField(default=0)),
                ("partitions", models.JSONField(default=list)),
                ("restarts", models.IntegerField(default=0)),
                ("ack_failures", models.IntegerField(default=0)),
                ("redelivery_counts", models.JSONField(default=dict)),
                ("leases", models.JSONField(default=dict)),
                ("holding", models.JSONField(default=list)),
                ("message", models.TextField(blank=True)),
                ("last_heartbeat_at", models.DateTimeField(null=True)),
                ("task", models.ForeignKey(on_delete=models.CASCADE, related_name="indexers", to="tasks.task")),
            ],
            options={
                "ordering": ["number"],
                "constraints": [models.UniqueConstraint(fields=("task", "number"), name="one_row_per_indexer")],
            },
        ),
    ]
