from django.conf import settings
from django.db import migrations, models
from django.utils import timezone


class Migration(migrations.Migration):
    initial = True

    dependencies = [("datasources", "0001_initial"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="Supervisor",
            fields=[
                ("id", models.CharField(max_length=200, primary_key=True, serialize=False)),
                ("follows", models.IntegerField(null=True)),
                ("pattern_asked", models.CharField(db_default="", default="", max_length=1000)),
                ("topics_matched", models.IntegerField(null=True)),
                ("version", models.IntegerField(default=1)),
                ("in_force", models.IntegerField(null=True)),
                ("suspended", models.BooleanField(default=False)),
                ("terminated_at", models.DateTimeField(null=True)),
                ("detailed_state", models.CharField(default="PENDING", max_length=40)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("failures", models.IntegerField(default=0)),
                ("next_start_at", models.DateTimeField(null=True)),
                ("recent_errors", models.JSONField(default=list)),
                ("look_due_at", models.DateTimeField(null=True)),
                ("contacted_at", models.DateTimeField(null=True)),
                ("failed_runs", models.IntegerField(default=0)),
                ("good_runs", models.IntegerField(default=0)),
                ("run_errors", models.JSONField(default=list)),
                ("steady", models.BooleanField(default=False)),
                ("partitions", models.IntegerField(null=True)),
                ("topic_missed", models.CharField(db_default="", default="", max_length=300)),
                ("group_looked_at", models.DateTimeField(null=True)),
                ("group_drift", models.JSONField(default=list)),
                ("handoff_asked_at", models.DateTimeField(null=True)),
                ("decided_task_count", models.IntegerField(null=True)),
                ("scaling_checked_at", models.DateTimeField(null=True)),
                ("scaling_since", models.DateTimeField(default=timezone.now)),
                ("scaling_reason", models.CharField(db_default="", default="", max_length=20)),
                ("scaling_text", models.TextField(db_default="", default="")),
                ("terminations", models.JSONField(default=list)),
                ("ends_seen", models.JSONField(null=True)),
                ("inactive_since", models.DateTimeField(null=True)),
                ("idle_since", models.DateTimeField(null=True)),
                ("ran_at", models.DateTimeField(null=True)),
                ("calm_until", models.DateTimeField(null=True)),
                (
                    "datasource",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="supervisors", to="datasources.datasource"
                    ),
                ),
                (
                    "fills",
                    models.ForeignKey(
                        null=True, on_delete=models.CASCADE, related_name="backfills", to="supervisors.supervisor"
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        null=True, on_delete=models.CASCADE, related_name="children", to="supervisors.supervisor"
                    ),
                ),
            ],
            options={"ordering": ["id"]},
        ),
        migrations.CreateModel(
            name="SpecVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.IntegerField()),
                ("spec", models.JSONField()),
                ("secrets", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True, on_delete=models.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "supervisor",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="versions", to="supervisors.supervisor"),
                ),
            ],
            options={
                "ordering": ["-version"],
                "constraints": [models.UniqueConstraint(fields=("supervisor", "version"), name="one_spec_per_version")],
            },
        ),
        migrations.CreateModel(
            name="ScaleAction",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("before", models.IntegerField()),
                ("after", models.IntegerField()),
                ("reason", models.TextField()),
                (
                    "supervisor",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="scale_actions", to="supervisors.supervisor"
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["supervisor", "-id"], name="scale_action_by_supervisor")],
            },
        ),
        migrations.CreateModel(
            name="Switch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(default=timezone.now)),
                ("suspended", models.BooleanField()),
                ("version", models.IntegerField()),
                (
                    "supervisor",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="switches", to="supervisors.supervisor"),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["supervisor", "-id"], name="switch_by_supervisor")],
            },
        ),
    ]
