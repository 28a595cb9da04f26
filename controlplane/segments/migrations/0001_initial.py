from uuid import uuid4

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, BigIntegerRangeField
from django.contrib.postgres.indexes import GistIndex
from django.db import migrations, models
from django.db.models.functions import MD5

from controlplane.segments.interval_models import Spans
from controlplane.segments.migrations._sql import CAUSE_TRIGGERS, DAY_SUMS, DAY_TRIGGERS, QUARANTINE_CAUSES, RECEIPTS
from controlplane.segments.models import progress_kinds


class Migration(migrations.Migration):
    initial = True

    dependencies = [("datasources", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Source",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(choices=progress_kinds, default="share_group", max_length=20)),
                ("cluster_id", models.CharField(max_length=100)),
                ("group", models.CharField(max_length=249)),
                ("topic", models.CharField(max_length=249)),
                ("topic_id", models.CharField(max_length=50)),
                ("current", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("looked_at", models.DateTimeField(null=True)),
                ("bounds", models.JSONField(default=dict)),
                ("undecided", models.BigIntegerField(default=0)),
                ("complete_until", models.DateTimeField(null=True)),
                ("marks", models.JSONField(default=dict)),
                (
                    "datasource",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="sources", to="datasources.datasource"),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("kind", "cluster_id", "group", "topic_id"), name="a_reader_of_a_topic_has_one_owner"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="ProgressKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("partition", models.IntegerField()),
                ("next_offset", models.BigIntegerField(null=True)),
                ("generation", models.IntegerField(default=0)),
                ("attempts", models.IntegerField(default=0)),
                ("end_offset", models.BigIntegerField(null=True)),
                ("log_start_offset", models.BigIntegerField(null=True)),
                ("observed_at", models.DateTimeField(null=True)),
                ("source", models.ForeignKey(on_delete=models.CASCADE, related_name="keys", to="segments.source")),
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
                (
                    "datasource",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="fences", to="datasources.datasource"),
                ),
                (
                    "source",
                    models.ForeignKey(null=True, on_delete=models.CASCADE, related_name="fences", to="segments.source"),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["published_on", "datasource"], name="fence_by_day")],
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
                ("fence", models.ForeignKey(on_delete=models.CASCADE, related_name="+", to="segments.indexerfence")),
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
                            models.ForeignKey(on_delete=models.CASCADE, related_name="+", to="segments.progresskey"),
                        ),
                    ],
                    options={"indexes": [GistIndex(fields=["hull"], name="receipt_by_offset")]},
                ),
            ],
        ),
        migrations.CreateModel(
            name="Feed",
            fields=[
                (
                    "datasource",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="feed",
                        serialize=False,
                        to="datasources.datasource",
                    ),
                ),
                ("latest", models.BigIntegerField(default=0)),
                ("numbered_until", models.DateTimeField(null=True)),
                ("numbered_id", models.UUIDField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="FeedEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.BigIntegerField()),
                ("publish_id", models.UUIDField()),
                ("segment_ids", ArrayField(base_field=models.UUIDField(), size=None)),
                ("published_at", models.DateTimeField()),
                (
                    "datasource",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="feed_entries", to="datasources.datasource"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("datasource", "number"), name="a_publish_number_is_given_once"),
                    models.UniqueConstraint(fields=("datasource", "publish_id"), name="a_publish_has_one_number"),
                ]
            },
        ),
        migrations.CreateModel(
            name="SegmentSchema",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("fingerprint", models.CharField(max_length=64)),
                ("columns", models.JSONField()),
                ("extents", models.BooleanField(db_default=False, default=False)),
                (
                    "datasource",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="schemas", to="datasources.datasource"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("datasource", "fingerprint"), name="one_schema_per_fingerprint")
                ]
            },
        ),
        migrations.CreateModel(
            name="Column",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField()),
                ("type", models.CharField(max_length=100)),
                ("fingerprint", models.CharField(max_length=64)),
                ("number", models.IntegerField()),
                ("element", models.IntegerField(null=True)),
                (
                    "datasource",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="+", to="datasources.datasource"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("datasource", "fingerprint"), name="one_id_per_column"),
                    models.UniqueConstraint(fields=("datasource", "number"), name="one_column_per_id"),
                ]
            },
        ),
        migrations.CreateModel(
            name="Removal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("by", models.CharField(max_length=200)),
                ("what", models.CharField(max_length=500)),
                ("segments", models.BigIntegerField(default=0)),
                ("rows", models.BigIntegerField(default=0)),
                ("size_bytes", models.BigIntegerField(default=0)),
                ("created_at", models.DateTimeField()),
                (
                    "datasource",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="removals", to="datasources.datasource"),
                ),
            ],
            options={"indexes": [models.Index(fields=["datasource", "-id"], name="removal_by_datasource")]},
        ),
        migrations.CreateModel(
            name="Segment",
            fields=[
                ("id", models.UUIDField(default=uuid4, primary_key=True, serialize=False)),
                ("interval_start", models.DateTimeField()),
                ("interval_end", models.DateTimeField()),
                ("version", models.CharField(max_length=30)),
                ("partition_num", models.IntegerField()),
                ("rows", models.BigIntegerField()),
                ("size_bytes", models.BigIntegerField()),
                ("sha256", models.CharField(max_length=64)),
                ("path", models.CharField(max_length=1000)),
                ("min_time", models.DateTimeField()),
                ("max_time", models.DateTimeField()),
                ("task_id", models.CharField(max_length=300)),
                ("used", models.BooleanField(default=True)),
                ("unused_at", models.DateTimeField(null=True)),
                ("used_again_at", models.DateTimeField(null=True)),
                ("replaced_by", models.UUIDField(null=True)),
                ("kill_began_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
                (
                    "datasource",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="segments", to="datasources.datasource"
                    ),
                ),
                (
                    "removal",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=models.DO_NOTHING,
                        related_name="+",
                        to="segments.removal",
                    ),
                ),
                (
                    "schema",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=models.DO_NOTHING,
                        related_name="+",
                        to="segments.segmentschema",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["datasource", "interval_start"], name="segment_by_interval"),
                    models.Index(fields=["task_id"], name="segment_by_task"),
                    models.Index(
                        condition=models.Q(("used", False)), fields=["datasource", "unused_at"], name="segment_unused"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("datasource", "interval_start", "interval_end", "version", "partition_num"),
                        name="one_segment_per_partition_number",
                    ),
                    models.UniqueConstraint(fields=("path",), name="one_segment_per_path"),
                ],
            },
        ),
        migrations.CreateModel(
            name="KilledSegment",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("rows", models.BigIntegerField()),
                ("size_bytes", models.BigIntegerField()),
                ("min_time", models.DateTimeField()),
                ("max_time", models.DateTimeField()),
                ("created_at", models.DateTimeField()),
                ("unused_at", models.DateTimeField()),
                ("replaced_by", models.UUIDField(null=True)),
                ("killed_at", models.DateTimeField()),
                (
                    "datasource",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="+", to="datasources.datasource"
                    ),
                ),
                (
                    "removal",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=models.DO_NOTHING,
                        related_name="+",
                        to="segments.removal",
                    ),
                ),
            ],
            options={"indexes": [models.Index(fields=["datasource", "unused_at"], name="killed_by_unused_at")]},
        ),
        migrations.CreateModel(
            name="Replacement",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("interval_start", models.DateTimeField()),
                ("interval_end", models.DateTimeField()),
                ("task_id", models.CharField(max_length=300)),
                ("taken", ArrayField(base_field=models.UUIDField(), size=None)),
                ("made", ArrayField(base_field=models.UUIDField(), size=None)),
                ("rows_before", models.BigIntegerField()),
                ("rows_after", models.BigIntegerField()),
                ("bytes_before", models.BigIntegerField()),
                ("bytes_after", models.BigIntegerField()),
                ("created_at", models.DateTimeField()),
                (
                    "datasource",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="replacements", to="datasources.datasource"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["datasource", "-created_at"], name="replacement_by_time"),
                    models.Index(fields=["task_id"], name="replacement_by_task"),
                ]
            },
        ),
        migrations.CreateModel(
            name="Interval",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("version", models.CharField(max_length=30)),
                ("next_partition", models.IntegerField(default=0)),
                ("segments", models.BigIntegerField(default=0)),
                ("rows", models.BigIntegerField(default=0)),
                ("size_bytes", models.BigIntegerField(default=0)),
                ("min_time", models.DateTimeField(null=True)),
                ("max_time", models.DateTimeField(null=True)),
                ("revision", models.BigIntegerField(db_default=0, default=0)),
                ("partitioned_by", models.TextField(db_default="", default="")),
                ("partitioned_revision", models.BigIntegerField(db_default=-1, default=-1)),
                (
                    "datasource",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="intervals", to="datasources.datasource"
                    ),
                ),
            ],
            options={
                "indexes": [GistIndex(models.Func("start", "end", function="tstzrange"), name="interval_by_span")],
                "constraints": [
                    models.UniqueConstraint(fields=("datasource", "start", "end"), name="one_row_per_interval")
                ],
            },
        ),
        migrations.CreateModel(
            name="IntervalDay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateTimeField()),
                ("intervals", models.BigIntegerField()),
                ("segments", models.BigIntegerField()),
                ("rows", models.BigIntegerField()),
                ("size_bytes", models.BigIntegerField()),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("min_time", models.DateTimeField(null=True)),
                ("max_time", models.DateTimeField(null=True)),
                ("lowest_version", models.CharField(max_length=30)),
                ("highest_version", models.CharField(max_length=30)),
                ("covered", Spans()),
                (
                    "datasource",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="+", to="datasources.datasource"
                    ),
                ),
            ],
            options={"constraints": [models.UniqueConstraint(fields=("datasource", "day"), name="one_sum_a_day")]},
        ),
        migrations.CreateModel(
            name="IntervalChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateTimeField()),
                (
                    "datasource",
                    models.ForeignKey(
                        db_constraint=False, on_delete=models.CASCADE, related_name="+", to="datasources.datasource"
                    ),
                ),
            ],
        ),
        # Triggers and a view, which Django does not make: a publish neither sums up a day nor waits for who does.
        *DAY_TRIGGERS,
        DAY_SUMS,
        migrations.CreateModel(
            name="DaySum",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateTimeField()),
                ("intervals", models.BigIntegerField()),
                ("segments", models.BigIntegerField()),
                ("rows", models.BigIntegerField()),
                ("size_bytes", models.BigIntegerField()),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("min_time", models.DateTimeField(null=True)),
                ("max_time", models.DateTimeField(null=True)),
                ("lowest_version", models.CharField(max_length=30)),
                ("highest_version", models.CharField(max_length=30)),
                (
                    "datasource",
                    models.ForeignKey(
                        db_constraint=False, on_delete=models.DO_NOTHING, related_name="+", to="datasources.datasource"
                    ),
                ),
            ],
            options={"db_table": "segments_daysum", "managed": False},
        ),
        migrations.CreateModel(
            name="QuarantinedRecord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("place", models.TextField(db_default="", default="")),
                ("task_id", models.CharField(max_length=300)),
                ("partition", models.IntegerField()),
                ("offset", models.BigIntegerField()),
                ("timestamp_ms", models.BigIntegerField(null=True)),
                ("delivery_count", models.IntegerField()),
                ("reason", models.CharField(max_length=20)),
                ("error", models.TextField()),
                ("cause", models.CharField(db_default="", default="", max_length=16)),
                ("key", models.BinaryField(null=True)),
                ("payload", models.BinaryField(null=True)),
                ("headers", models.BinaryField(default=b"[]")),
                ("cut", models.BooleanField(db_default=False, default=False)),
                ("file_header", models.BinaryField(db_default=b"", default=b"")),
                ("publish_id", models.UUIDField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("kept", "kept"),
                            ("replaying", "being replayed"),
                            ("stored", "stored by a replay"),
                            ("thrown_away", "thrown away by a replay"),
                            ("produced", "produced again"),
                        ],
                        default="kept",
                        max_length=12,
                    ),
                ),
                ("replay_id", models.CharField(blank=True, max_length=300)),
                ("replays", models.IntegerField(default=0)),
                ("ended_at", models.DateTimeField(null=True)),
                ("produced_partition", models.IntegerField(null=True)),
                ("produced_offset", models.BigIntegerField(null=True)),
                ("created_at", models.DateTimeField()),
                (
                    "datasource",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="quarantined", to="datasources.datasource"
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        null=True, on_delete=models.CASCADE, related_name="quarantined", to="segments.source"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["datasource", "-id"], name="quarantine_by_datasource"),
                    models.Index(fields=["task_id", "-id"], name="quarantine_by_task"),
                    models.Index(fields=["datasource", "cause", "-id"], name="quarantine_by_cause"),
                    models.Index(models.F("source"), MD5("key"), name="quarantine_by_key"),
                    models.Index(
                        condition=models.Q(("replay_id", ""), _negated=True),
                        fields=["replay_id", "id"],
                        name="quarantine_by_replay",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("source", "partition", "offset"), name="a_record_is_quarantined_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="CauseSum",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("cause", models.CharField(max_length=16)),
                ("reason", models.CharField(max_length=20)),
                ("hour", models.DateTimeField()),
                ("records", models.BigIntegerField()),
                ("kept", models.BigIntegerField()),
                ("first_at", models.DateTimeField(null=True)),
                ("last_at", models.DateTimeField(null=True)),
                (
                    "datasource",
                    models.ForeignKey(
                        db_constraint=False, on_delete=models.CASCADE, related_name="+", to="datasources.datasource"
                    ),
                ),
            ],
            options={"indexes": [models.Index(fields=["datasource", "cause"], name="cause_sum")]},
        ),
        # So do causes: triggers count them, a view sums them up.
        *CAUSE_TRIGGERS,
        QUARANTINE_CAUSES,
        migrations.CreateModel(
            name="QuarantineCause",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("cause", models.CharField(max_length=16)),
                ("reason", models.CharField(max_length=20)),
                ("records", models.BigIntegerField()),
                ("kept", models.BigIntegerField()),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                (
                    "datasource",
                    models.ForeignKey(
                        db_constraint=False, on_delete=models.DO_NOTHING, related_name="+", to="datasources.datasource"
                    ),
                ),
            ],
            options={"db_table": "segments_quarantinecause", "managed": False},
        ),
        migrations.CreateModel(
            name="FaultyRecord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("task_id", models.CharField(max_length=300)),
                ("partition", models.IntegerField()),
                ("offset", models.BigIntegerField()),
                ("timestamp_ms", models.BigIntegerField(null=True)),
                ("delivery_count", models.IntegerField()),
                ("error", models.TextField()),
                ("cause", models.CharField(db_default="", default="", max_length=16)),
                ("payload", models.BinaryField(null=True)),
                ("payload_size", models.IntegerField(null=True)),
                ("created_at", models.DateTimeField()),
                (
                    "datasource",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="faulty", to="datasources.datasource"),
                ),
                ("source", models.ForeignKey(on_delete=models.CASCADE, related_name="faulty", to="segments.source")),
            ],
            options={
                "indexes": [
                    models.Index(fields=["task_id", "-id"], name="faulty_by_task"),
                    models.Index(fields=["task_id", "cause", "-id"], name="faulty_by_cause"),
                ]
            },
        ),
        migrations.CreateModel(
            name="SourceEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("topic_recreated", "The topic was deleted and recreated"),
                            ("gap", "Retention removed records before they were read"),
                            ("repaired", "Records that the broker had archived were read again"),
                            ("offset_reset", "A stored offset was reset"),
                            ("partitions_added", "Partitions were added to the topic"),
                            ("purged", "A rule purged quarantined records"),
                            ("early_duplicate", "A record was already settled at its first delivery"),
                            ("task_failed", "A task failed"),
                            ("restarted", "An indexer was restarted"),
                            ("quarantined", "Records were quarantined"),
                            ("refused", "A publish was refused because of a record"),
                            ("failing", "Repeated failures"),
                            ("quota", "A quota ended a manual task"),
                            ("woken", "An idle supervisor reads again"),
                        ],
                        max_length=20,
                    ),
                ),
                ("alarm", models.BooleanField(default=False)),
                ("detail", models.TextField()),
                ("task_id", models.CharField(blank=True, max_length=300)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("acknowledged_at", models.DateTimeField(null=True)),
                ("acknowledged_by", models.CharField(blank=True, max_length=150)),
                (
                    "datasource",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="source_events", to="datasources.datasource"
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(null=True, on_delete=models.CASCADE, related_name="events", to="segments.source"),
                ),
            ],
            options={"ordering": ["-id"]},
        ),
        migrations.CreateModel(
            name="LagSample",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("resolution_s", models.IntegerField()),
                ("at", models.DateTimeField()),
                ("observed_at", models.DateTimeField()),
                ("lag", models.BigIntegerField()),
                ("partitions", ArrayField(base_field=models.BigIntegerField(), size=None)),
                ("in_flight", models.BigIntegerField()),
                ("processed", models.BigIntegerField()),
                ("redelivered", models.BigIntegerField()),
                ("quarantined", models.BigIntegerField(db_default=0, default=0)),
                ("ended", models.BigIntegerField(db_default=0, default=0)),
                (
                    "source",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="lag_samples", to="segments.source"),
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
    ]
