
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, BigIntegerRangeField
from django.contrib.postgres.indexes import GistIndex
from django.db import migrations, models

from controlplane.publishing.migrations._sql import RECEIPTS


class Migration(migrations.Migration):
    initial = True

    dependencies = [("datasources", "0001_initial"), ("sources", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="ProgressKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("partition", models.IntegerField()),
                ("next_offset", models.BigIntegerField(null=True)),
                ("generation", models.IntegerField(default=0)),
                ("began_at", models.BigIntegerField(null=True)),
                ("attempts", models.IntegerField(default=0)),
                ("begin_offset", models.BigIntegerField(null=True)),
                ("end_offset", models.BigIntegerField(null=True)),
                ("log_start_offset", models.BigIntegerField(null=True)),
                ("observed_at", models.DateTimeField(null=True)),
                ("source", models.ForeignKey(on_delete=models.CASCADE, related_name="keys", to="sources.source")),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("source", "partition"), name="one_key_per_partition")]
            },
        ),
        migrations.CreateModel(
            name="SettledRange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("span", BigIntegerRangeField()),
                ("settled_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(models.Func("span", function="lower"), name="settled_by_offset")],
                "constraints": [ExclusionConstraint(expressions=[("span", "&&")], name="an_offset_is_settled_once")],
            },
        ),
        migrations.CreateModel(
            name="IndexerFence",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("task_id", models.CharField(max_length=300)),
                ("number", models.IntegerField()),
                ("epoch", models.IntegerField(default=0)),
                ("published", models.BigIntegerField(default=0)),
                ("rolled_up", models.BigIntegerField(default=0)),
                ("further_rows", models.BigIntegerField(default=0)),
                ("thrown_away", models.BigIntegerField(default=0)),
                ("unparseable", models.BigIntegerField(default=0)),
                ("duplicates", models.BigIntegerField(default=0)),
                ("redelivered", models.BigIntegerField(default=0)),
                ("quarantined", models.BigIntegerField(default=0)),
                ("filtered", models.BigIntegerField(default=0)),
                ("outside_window", models.BigIntegerField(default=0)),
                ("tombstones", models.BigIntegerField(default=0)),
                ("processed_with_error", models.BigIntegerField(default=0)),
                ("input_bytes", models.BigIntegerField(default=0)),
                ("polled", models.BigIntegerField(default=0)),
                ("segments", models.BigIntegerField(default=0)),
                ("size_bytes", models.BigIntegerField(default=0)),
                ("publishes", models.BigIntegerField(default=0)),
                ("replayed", models.BigIntegerField(default=0)),
                ("replay", models.BooleanField(default=False)),
                ("bounded", models.BooleanField(db_default=False, default=False)),
                ("merges", models.BooleanField(db_default=False, default=False)),
                ("rewinds", models.BooleanField(db_default=False, default=False)),
                ("released_before", models.BigIntegerField(default=0)),
                ("released_now", models.BigIntegerField(default=0)),
                ("redundant_before", models.BigIntegerField(default=0)),
                ("redundant_now", models.BigIntegerField(default=0)),
                ("redelivered_before", models.BigIntegerField(default=0)),
                ("redelivered_now", models.BigIntegerField(default=0)),
                ("started_at", models.DateTimeField(null=True)),
                ("first_publish_at", models.DateTimeField(null=True)),
                ("last_publish_at", models.DateTimeField(null=True)),
                ("published_on", models.DateField(null=True)),
                ("published_today", models.BigIntegerField(db_default=0, default=0)),
                ("summed", models.BooleanField(db_default=False, default=False)),
                (
                    "datasource",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="fences", to="datasources.datasource"),
                ),
                (
                    "source",
                    models.ForeignKey(null=True, on_delete=models.CASCADE, related_name="fences", to="sources.source"),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["published_on", "datasource"], name="fence_by_day"),
                    models.Index(
                        condition=models.Q(("merges", False), ("summed", False)),
                        fields=["datasource"],
                        name="fence_not_summed",
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("task_id", "number"), name="one_fence_per_indexer")],
            },
        ),
        migrations.CreateModel(
            name="Publish",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("epoch", models.IntegerField()),
                ("abandoned", models.BooleanField(default=False)),
                ("segment_ids", models.JSONField(default=list)),
                ("counters", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField()),
                ("fence", models.ForeignKey(on_delete=models.CASCADE, related_name="+", to="publishing.indexerfence")),
            ],
            options={"indexes": [models.Index(fields=["fence", "created_at"], name="publish_by_fence")]},
        ),
        migrations.SeparateDatabaseAndState(
            # Django does not make tables with partitions.
            database_operations=[RECEIPTS],
            state_operations=[
                migrations.CreateModel(
                    name="Receipt",
                    fields=[
                        ("id", models.BigAutoField(primary_key=True, serialize=False)),
                        ("publish_id", models.UUIDField()),
                        ("task_id", models.CharField(max_length=300)),
                        ("indexer", models.IntegerField()),
                        ("hull", BigIntegerRangeField()),
                        ("outcomes", models.JSONField()),
                        ("segment_ids", models.JSONField()),
                        ("replay", models.BooleanField(default=False)),
                        ("created_at", models.DateTimeField()),
                        (
                            "key",
                            models.ForeignKey(on_delete=models.CASCADE, related_name="+", to="publishing.progresskey"),
                        ),
                    ],
                    options={"indexes": [GistIndex(fields=["hull"], name="receipt_by_offset")]},
                ),
            ],
        ),
        migrations.CreateModel(
            name="Rewind",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("spec", models.JSONField()),
                ("secrets", models.TextField(blank=True)),
                ("supervisor_id", models.CharField(blank=True, max_length=200)),
                ("spec_version", models.IntegerField(null=True)),
                ("choice", models.JSONField()),
                ("dry_run", models.BooleanField(db_default=False, default=False)),
                ("by", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField()),
                (
                    "datasource",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="rewinds", to="datasources.datasource"),
                ),
                ("source", models.ForeignKey(on_delete=models.CASCADE, related_name="rewinds", to="sources.source")),
            ],
            options={"indexes": [models.Index(fields=["datasource", "-id"], name="rewind_by_datasource")]},
        ),
        migrations.CreateModel(
            name="RewindPart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.IntegerField()),
                ("interval_start", models.DateTimeField(null=True)),
                ("interval_end", models.DateTimeField(null=True)),
                ("taken", ArrayField(base_field=models.UUIDField())),
                ("made", ArrayField(base_field=models.UUIDField(), default=list)),
                ("ranges", models.JSONField()),
                ("others", models.JSONField(default=list)),
                ("reading", models.IntegerField(default=0)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("done", "done"),
                            ("read", "read"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                            ("undone", "undone"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("reason", models.TextField(blank=True)),
                ("attempts", models.IntegerField(default=0)),
                ("task_id", models.CharField(blank=True, max_length=300)),
                ("publish_ids", ArrayField(base_field=models.UUIDField(), default=list)),
                ("removal", models.BigIntegerField(null=True)),
                ("rows_before", models.BigIntegerField(default=0)),
                ("rows_after", models.BigIntegerField(default=0)),
                ("before", models.JSONField(default=dict)),
                ("after", models.JSONField(default=dict)),
                ("retired", models.JSONField(default=dict)),
                ("held", models.JSONField(default=dict)),
                ("changes", models.JSONField(default=dict)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "rewind",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="parts", to="publishing.rewind"),
                ),
            ],
            options={
                "ordering": ["number"],
                "indexes": [
                    models.Index(fields=["task_id"], name="rewind_part_by_task"),
                    models.Index(
                        condition=models.Q(("state", "waiting")), fields=["rewind"], name="rewind_part_waiting"
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("rewind", "number"), name="one_part_per_number")],
            },
        ),
        migrations.CreateModel(
            name="RewindPiece",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("epoch", models.IntegerField()),
                ("reading", models.IntegerField(default=0)),
                ("ranges", models.JSONField()),
                ("request", models.TextField()),
                ("rows", models.BigIntegerField()),
                ("created_at", models.DateTimeField()),
                ("fence", models.ForeignKey(on_delete=models.CASCADE, related_name="+", to="publishing.indexerfence")),
                (
                    "part",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="pieces", to="publishing.rewindpart"),
                ),
            ],
            options={"ordering": ["created_at", "id"]},
        ),
    ]
