from uuid import uuid4

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GistIndex
from django.db import migrations, models

from controlplane.segments.migrations._sql import DAY_SUMS, DAY_TRIGGERS
from controlplane.segments.models import Spans


class Migration(migrations.Migration):
    initial = True

    dependencies = [("datasources", "0001_initial")]

    operations = [
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
                ("rewound", models.BooleanField(db_default=False, default=False)),
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
            name="Snapshot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.BigIntegerField()),
                ("changed_at", models.DateTimeField()),
                ("created_until", models.DateTimeField()),
                ("unused_after", models.DateTimeField()),
                ("leased_until", models.DateTimeField()),
                ("last_column", models.IntegerField()),
                ("root", models.CharField(max_length=1000)),
                ("path", models.CharField(max_length=1000)),
                ("segments", models.BigIntegerField()),
                ("rows", models.BigIntegerField()),
                ("size_bytes", models.BigIntegerField()),
                (
                    "datasource",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="snapshots", to="datasources.datasource"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("datasource", "number"), name="one_snapshot_per_number")
                ]
            },
        ),
        migrations.CreateModel(
            name="Manifest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("revision", models.BigIntegerField()),
                ("first_snapshot", models.BigIntegerField()),
                ("last_snapshot", models.BigIntegerField(null=True)),
                ("changed_at", models.DateTimeField()),
                ("root", models.CharField(max_length=1000)),
                ("path", models.CharField(max_length=1000)),
                ("length", models.BigIntegerField()),
                ("segments", models.BigIntegerField()),
                ("rows", models.BigIntegerField()),
                ("size_bytes", models.BigIntegerField()),
                (
                    "datasource",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="+", to="datasources.datasource"
                    ),
                ),
                (
                    "interval",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="+", to="segments.interval"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["datasource", "last_snapshot"], name="manifest_by_last"),
                    models.Index(fields=["interval"], name="manifest_by_interval"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("last_snapshot", None)),
                        fields=("datasource", "interval"),
                        name="one_manifest_per_interval",
                    ),
                    models.UniqueConstraint(fields=("path",), name="one_manifest_per_path"),
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
            name="HeldFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("path", models.CharField(max_length=1000)),
                ("holder", models.UUIDField()),
                (
                    "datasource",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="+", to="datasources.datasource"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["holder"], name="held_file_by_holder")],
                "constraints": [models.UniqueConstraint(fields=("path",), name="one_holder_per_path")],
            },
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
    ]
