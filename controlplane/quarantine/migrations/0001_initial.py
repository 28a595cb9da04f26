
from django.db import migrations, models
from django.db.models.functions import MD5

from controlplane.quarantine.migrations._sql import CAUSE_TRIGGERS, QUARANTINE_CAUSES


class Migration(migrations.Migration):
    initial = True

    dependencies = [("datasources", "0001_initial"), ("sources", "0001_initial")]

    operations = [
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
                        null=True, on_delete=models.CASCADE, related_name="quarantined", to="sources.source"
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
        migrations.CreateModel(
            name="DeadLetterImport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("topic", models.CharField(max_length=249)),
                ("topic_id", models.CharField(max_length=50)),
                ("own", models.BooleanField()),
                ("running", models.BooleanField(default=False)),
                ("positions", models.JSONField(default=dict)),
                ("ends", models.JSONField(default=dict)),
                ("problem", models.TextField(blank=True, default="")),
                ("asked_by", models.CharField(max_length=150)),
                ("asked_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "source",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="dead_letter_imports", to="sources.source"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("source", "topic_id"), name="a_topic_has_one_import")
                ]
            },
        ),
        migrations.CreateModel(
            name="DeadLetter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("partition", models.IntegerField()),
                ("offset", models.BigIntegerField()),
                ("origin_partition", models.IntegerField(null=True)),
                ("origin_offset", models.BigIntegerField(null=True)),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("imported", "imported"),
                            ("stored", "already stored"),
                            ("quarantined", "already quarantined"),
                            ("settled", "settled without a row"),
                            ("waiting", "not settled yet"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "dead_letter_import",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="letters", to="quarantine.deadletterimport"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("dead_letter_import", "partition", "offset"), name="a_dead_letter_is_imported_once"
                    )
                ]
            },
        ),
        # Triggers count causes, a view sums them up.
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
            options={"db_table": "quarantine_quarantinecause", "managed": False},
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
                ("source", models.ForeignKey(on_delete=models.CASCADE, related_name="faulty", to="sources.source")),
            ],
            options={
                "indexes": [
                    models.Index(fields=["task_id", "-id"], name="faulty_by_task"),
                    models.Index(fields=["task_id", "cause", "-id"], name="faulty_by_cause"),
                ]
            },
        ),
    ]
