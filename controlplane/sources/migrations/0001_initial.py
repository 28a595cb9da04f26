
from django.db import migrations, models

from controlplane.sources.models import progress_kinds


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
                (
                    "decoded_as",
                    models.ForeignKey(
                        null=True, on_delete=models.CASCADE, related_name="+", to="sources.source"
                    ),
                ),
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
                    models.ForeignKey(null=True, on_delete=models.CASCADE, related_name="events", to="sources.source"),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("acknowledged_at", None), ("alarm", True)),
                        fields=["datasource", "kind"],
                        name="event_unacknowledged",
                    )
                ],
            },
        ),
    ]
